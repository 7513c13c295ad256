//! The schedule for ending a command.

use std::time::Duration;

use super::{Deadlines, GuardedCommand};
use crate::process::{clock::Boottime, group::ProcessGroup, lineage::CommandOrigin};

/// The pause of a guard before it checks for remains again.
pub(super) const PAUSE: Duration = Duration::from_millis(25);

/// The guard gives up on killed processes after this long: the kernel holds them.
pub(super) const PERSISTENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub(super) struct KillSchedule {
    pub(super) ward: GuardedCommand,
    next: Option<(KillStep, Boottime)>,
}

/// A step against a command after its lease was not renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillStep {
    Terminate,
    Kill,
}

impl KillSchedule {
    pub(super) fn of(ward: GuardedCommand) -> Self {
        Self {
            ward,
            next: Some((KillStep::Terminate, ward.limits.terminate)),
        }
    }

    pub(super) fn origin(self, group: Option<ProcessGroup>) -> CommandOrigin {
        CommandOrigin {
            group,
            label: self.ward.label,
        }
    }

    pub(super) fn due(self) -> Option<Boottime> {
        self.next.map(|(_, due)| due)
    }

    pub(super) fn step(&mut self, now: Boottime) -> Option<KillStep> {
        let Deadlines { kill, .. } = self.ward.limits;
        let (step, _) = self.next.filter(|(_, due)| *due <= now)?;
        Some(match step {
            KillStep::Terminate if now < kill => {
                self.next = Some((KillStep::Kill, kill));
                KillStep::Terminate
            }
            _ => {
                self.next = Some((KillStep::Kill, now + PAUSE));
                KillStep::Kill
            }
        })
    }

    /// Ends the schedule once a killed command has no remains, or does not end.
    pub(super) fn conclude(&mut self, is_anything_left: bool, now: Boottime) {
        if !is_anything_left || self.ward.limits.kill + PERSISTENCE <= now {
            self.next = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::label::Label;

    fn at(millis: u64) -> Boottime {
        Boottime::from_nanos(millis * 1_000_000)
    }

    fn course() -> KillSchedule {
        KillSchedule::of(GuardedCommand {
            limits: Deadlines {
                terminate: at(100),
                kill: at(200),
            },
            label: Label::new("a", "1"),
        })
    }

    #[test]
    fn command_is_terminated_once_then_killed_until_it_is_gone() {
        let mut course = course();
        assert_eq!((course.step(at(99)), course.due()), (None, Some(at(100))));
        assert_eq!(course.step(at(101)), Some(KillStep::Terminate));
        assert_eq!((course.step(at(150)), course.due()), (None, Some(at(200))));
        for now in [at(200), at(300)] {
            assert_eq!(course.step(now), Some(KillStep::Kill));
            course.conclude(true, now);
            assert_eq!(course.due(), Some(now + PAUSE));
        }
        course.conclude(false, at(300));
        assert_eq!(course.due(), None);
    }

    #[test]
    fn late_enforcement_kills_immediately() {
        let mut course = course();
        assert_eq!(course.step(at(250)), Some(KillStep::Kill));
        course.conclude(true, at(200) + PERSISTENCE);
        assert_eq!(course.due(), None);
    }
}
