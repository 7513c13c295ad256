//! The label that every descendant of a command inherits from the kernel.
//!
//! A process can leave its group, session, environment and, once they died, its parents. It keeps its resource
//! limits. The limit on real-time CPU time has no effect while it is out of reach, and has spare bits for a label.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use uuid::Uuid;

use super::group::facts;
#[cfg(test)]
use super::simulation;

pub(crate) const JOB: &str = "JOBBOARD_JOB";

/// The guard finds its conductor's commands by this variable; its value is the mark.
///
/// The conductor's name would not do: its successor may use it while the old guard still searches.
pub(crate) const MARK: &str = "JOBBOARD_GUARD";

/// This bit marks a limit as ours: in microseconds, more than a hundred thousand years.
const OURS: u64 = 1 << 62;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Label(u64);

impl Label {
    pub(crate) fn new(mark: &str, uuid: &str) -> Self {
        Self(OURS | digest(mark) << 34 >> 2 | digest(uuid) >> 32)
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        (number >> 62 == 1).then_some(Self(number))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn conductor(self) -> u32 {
        // Thirty bits.
        u32::try_from((self.0 ^ OURS) >> 32).unwrap_or_default()
    }

    pub(crate) fn job(self) -> u32 {
        // The lower half.
        u32::try_from(self.0 << 32 >> 32).unwrap_or_default()
    }

    pub(crate) fn of_job(uuid: &str) -> u32 {
        Self::new("", uuid).job()
    }

    /// Labels this process and its descendants, unless the limit is really in use.
    pub(super) fn put_on(self) {
        let before = getrlimit(Resource::Rttime);
        // A process below a command of ours carries a label already.
        let is_free = before.maximum.is_none() && before.current.is_none_or(|it| it & OURS != 0);
        let labelled = Rlimit {
            current: Some(self.0),
            maximum: None,
        };
        if is_free {
            // Refused only where a system call filter forbids it.
            let _ = setrlimit(Resource::Rttime, labelled);
        }
    }

    /// Returns the label that a process carries, or else the one that follows from its environment.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        #[cfg(test)]
        if simulation::is_ours(pid) {
            return simulation::label(pid);
        }
        Self::carried_by(pid).or_else(|| {
            let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
            Self::in_environment(&environ)
        })
    }

    /// Returns the label that a process carries: cheaper than reading its environment.
    pub(crate) fn carried_by(pid: Pid) -> Option<Self> {
        #[cfg(test)]
        if simulation::is_ours(pid) {
            return simulation::label(pid);
        }
        Self::in_limits(str::from_utf8(&facts(pid, "limits")?).ok()?)
    }

    fn in_limits(limits: &str) -> Option<Self> {
        let mut lines = limits.lines();
        let rest = lines.find_map(|line| line.strip_prefix("Max realtime timeout"))?;
        Self::from_number(rest.split_ascii_whitespace().next()?.parse().ok()?)
    }

    fn in_environment(environ: &[u8]) -> Option<Self> {
        let value = |name: &str| {
            let mut variables = environ.split(|&byte| byte == 0);
            variables.find_map(|it| it.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
        };
        let job = value(JOB).unwrap_or_default();
        Some(Self::new(
            str::from_utf8(value(MARK)?).ok()?,
            str::from_utf8(job).ok()?,
        ))
    }
}

/// The same in all releases: a release must find the leftovers of another.
fn digest(text: &str) -> u64 {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
        .as_u64_pair()
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_identifies_conductor_and_job() {
        let label = Label::new("a", "1");
        let (same_conductor, same_job) = (Label::new("a", "2"), Label::new("b", "1"));
        assert!(label != same_conductor && label != same_job);
        assert_eq!(label.conductor(), same_conductor.conductor());
        assert_ne!(label.conductor(), same_job.conductor());
        assert_eq!([label, same_job].map(Label::job), [Label::of_job("1"); 2]);
        assert_ne!(label.job(), same_conductor.job());
        assert_eq!(Label::from_number(label.number()), Some(label));
        for foreign in [0, 200_000, u64::MAX] {
            assert_eq!(Label::from_number(foreign), None);
        }
    }

    #[test]
    fn label_is_read_from_the_environment() {
        let environ = b"A=1\0JOBBOARD_JOB=1\0JOBBOARD_GUARD=a\0";
        assert_eq!(Label::in_environment(environ), Some(Label::new("a", "1")));
        assert_eq!(Label::in_environment(b"JOBBOARD_JOB=1\0"), None);
    }
}
