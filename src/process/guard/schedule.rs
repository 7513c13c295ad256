//! The schedule for ending a command.

use std::time::Duration;

use super::{Deadlines, GuardedCommand};
use crate::process::{clock::Boottime, group::ProcessGroup, lineage::CommandOrigin};

/// The pause of a guard before it checks for remains again.
pub(super) const CHECK_PAUSE: Duration = Duration::from_millis(25);

/// The guard gives up on killed processes after this long: the kernel holds them.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub(super) struct KillSchedule {
    pub(super) command: GuardedCommand,
    next: Option<(KillStep, Boottime)>,
}

/// A step against a command after its lease was not renewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillStep {
    Terminate,
    Kill,
}

impl KillSchedule {
    pub(super) fn of(command: GuardedCommand) -> Self {
        Self {
            command,
            next: Some((KillStep::Terminate, command.deadlines.terminate)),
        }
    }

    pub(super) fn origin(self, group: Option<ProcessGroup>) -> CommandOrigin {
        CommandOrigin {
            group,
            label: self.command.label,
        }
    }

    pub(super) fn due(self) -> Option<Boottime> {
        self.next.map(|(_, due)| due)
    }

    pub(super) fn step(&mut self, now: Boottime) -> Option<KillStep> {
        let Deadlines { kill, .. } = self.command.deadlines;
        let (step, _) = self.next.filter(|(_, due)| *due <= now)?;
        Some(match step {
            KillStep::Terminate if now < kill => {
                self.next = Some((KillStep::Kill, kill));
                KillStep::Terminate
            }
            _ => {
                self.next = Some((KillStep::Kill, now + CHECK_PAUSE));
                KillStep::Kill
            }
        })
    }

    /// Ends the schedule once a killed command has no remains, or does not end.
    pub(super) fn conclude(&mut self, is_anything_left: bool, now: Boottime) {
        if !is_anything_left || self.command.deadlines.kill + KILL_TIMEOUT <= now {
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

    fn schedule() -> KillSchedule {
        KillSchedule::of(GuardedCommand {
            deadlines: Deadlines {
                terminate: at(100),
                kill: at(200),
            },
            label: Label::new("a", "1"),
        })
    }

    #[test]
    fn command_is_terminated_once_then_killed_until_it_is_gone() {
        let mut schedule = schedule();
        assert_eq!(
            (schedule.step(at(99)), schedule.due()),
            (None, Some(at(100)))
        );
        assert_eq!(schedule.step(at(101)), Some(KillStep::Terminate));
        assert_eq!(
            (schedule.step(at(150)), schedule.due()),
            (None, Some(at(200)))
        );
        for now in [at(200), at(300)] {
            assert_eq!(schedule.step(now), Some(KillStep::Kill));
            schedule.conclude(true, now);
            assert_eq!(schedule.due(), Some(now + CHECK_PAUSE));
        }
        schedule.conclude(false, at(300));
        assert_eq!(schedule.due(), None);
    }

    #[test]
    fn late_enforcement_kills_immediately() {
        let mut schedule = schedule();
        assert_eq!(schedule.step(at(250)), Some(KillStep::Kill));
        schedule.conclude(true, at(200) + KILL_TIMEOUT);
        assert_eq!(schedule.due(), None);
    }
}
