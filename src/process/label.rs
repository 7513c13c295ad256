//! The label that the kernel hands down from a command to all that comes of it.
//!
//! A process can leave its group, its session, its environment and, once they have died, its parents.
//! What it takes along are its limits. The one on the time of real-time threads binds nobody as long
//! as it is beyond reach, and has room for more than a time.

use std::fs;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use uuid::Uuid;

use super::group::facts;

pub(crate) const JOB: &str = "JOBBOARD_JOB";

/// The variable by which the guard knows the commands of its conductor; its value is the mark.
///
/// Not the name of the conductor, which the next one may have while this one's guard still looks.
pub(crate) const MARK: &str = "JOBBOARD_GUARD";

/// By this bit a limit is one of ours: in microseconds, more than a hundred thousand years.
const OURS: u64 = 1 << 62;

/// Tells the processes of one job, performed by one conductor, from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Label(u64);

impl Label {
    pub(crate) fn new(mark: &str, uuid: &str) -> Self {
        Self(OURS | digest(mark) << 34 >> 2 | digest(uuid) >> 32)
    }

    /// Takes a label as another process of this machine told it; `None` if it is none.
    pub(crate) fn from_number(number: u64) -> Option<Self> {
        (number >> 62 == 1).then_some(Self(number))
    }

    /// Returns the label in the form in which it is told to another process.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    pub(crate) fn conductor(self) -> u32 {
        // Thirty bits of it.
        u32::try_from((self.0 ^ OURS) >> 32).unwrap_or_default()
    }

    /// Returns the part of it by which a job is known, whoever performs that.
    pub(crate) fn job(self) -> u32 {
        // The lower half of it.
        u32::try_from(self.0 << 32 >> 32).unwrap_or_default()
    }

    pub(crate) fn of_job(uuid: &str) -> u32 {
        Self::new("", uuid).job()
    }

    /// Has all that is started carry it, until what is returned is dropped.
    ///
    /// `None` if somebody has really set the limit, which then stays as it is.
    pub(crate) fn hand_down(self) -> Option<HandedDown> {
        let before = getrlimit(Resource::Rttime);
        // Whoever runs below a command of ours has a label already.
        let is_free = before.maximum.is_none() && before.current.is_none_or(|it| it & OURS != 0);
        let labelled = Rlimit {
            current: Some(self.0),
            maximum: None,
        };
        is_free.then_some(())?;
        setrlimit(Resource::Rttime, labelled).ok()?;
        Some(HandedDown(before))
    }

    /// Returns the label that a process carries, or else the one that its environment amounts to.
    pub(crate) fn of(pid: Pid) -> Option<Self> {
        Self::carried_by(pid).or_else(|| {
            let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
            Self::in_environment(&environ)
        })
    }

    /// Returns the label that a process carries, which costs less to see than an environment.
    pub(crate) fn carried_by(pid: Pid) -> Option<Self> {
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

/// While it lives, a label is handed down.
pub(crate) struct HandedDown(Rlimit);

impl Drop for HandedDown {
    fn drop(&mut self) {
        // It may be what it was a moment ago.
        let _ = setrlimit(Resource::Rttime, self.0);
    }
}

/// The same for all releases: one may have to find what another one has left.
fn digest(text: &str) -> u64 {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes())
        .as_u64_pair()
        .0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_both_the_conductor_and_the_job() {
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
    fn an_environment_amounts_to_a_label() {
        let environ = b"A=1\0JOBBOARD_JOB=1\0JOBBOARD_GUARD=a\0";
        assert_eq!(Label::in_environment(environ), Some(Label::new("a", "1")));
        assert_eq!(Label::in_environment(b"JOBBOARD_JOB=1\0"), None);
    }
}
