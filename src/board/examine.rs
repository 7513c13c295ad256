//! What may be the matter with a board, and how it is told: findings under codes that stay.

mod meanings;

use serde::Serialize;

use self::meanings::MEANINGS;
use super::BoardError;
use crate::names::named;

named! {
    /// What belongs together, and can be looked at by itself.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum Group ("group", str::eq) {
        Connection => "connection",
        Server => "server",
        Keys => "keys",
        Claims => "claims",
        Conductors => "conductors",
        Local => "local",
        Octavia => "octavia",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub(crate) enum Severity ("severity", str::eq) {
        Note => "note",
        Warning => "warning",
        Error => "error",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
    pub(crate) enum Code ("check", str::eq) {
        RightsMissing => "rights-missing",
        ServerAway => "server-away",
        TlsExpires => "tls-expires",
        Evicts => "evicts",
        NotPersistent => "not-persistent",
        PersistenceFails => "persistence-fails",
        WritableReplica => "writable-replica",
        ReplicaLags => "replica-lags",
        WritableByOthers => "writable-by-others",
        Damaged => "damaged",
        DiskFull => "disk-full",
        LogLarge => "log-large",
        WrongType => "wrong-type",
        StrayKeys => "stray-keys",
        SequenceBehind => "sequence-behind",
        Malformed => "malformed",
        RecordUnreadable => "record-unreadable",
        ForeignUuid => "foreign-uuid",
        SharedTrash => "shared-trash",
        NeverLapsing => "never-lapsing",
        HeldByDead => "held-by-dead",
        NotRenewed => "not-renewed",
        UnfinishedMove => "unfinished-move",
        BlocksPosters => "blocks-posters",
        LockBroken => "lock-broken",
        Exhausted => "exhausted",
        ClockAhead => "clock-ahead",
        NoConductor => "no-conductor",
        Silent => "silent",
        SameName => "same-name",
        Unsettled => "unsettled",
        CommandsAndPeers => "commands-and-peers",
        ConfigWritable => "config-writable",
        PasswordReadable => "password-readable",
        Kernel => "kernel",
        OddConfig => "odd-config",
        ShortColumns => "short-columns",
        BookWithoutJob => "book-without-job",
        PendingWithoutJob => "pending-without-job",
    }
}

impl Code {
    /// Returns the group it is in, how bad it is, and what comes of it.
    pub(crate) fn meaning(self) -> (Group, Severity, &'static str) {
        let (_, group, severity, consequence) = MEANINGS[self as usize];
        (group, severity, consequence)
    }
}

/// A part of a board that the board itself has to look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Connection,
    /// How whatever serves it is set up.
    Server,
    /// What is stored that belongs to no job, or is not what it should be.
    Keys {
        highest: Option<i64>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Evidence {
    pub(crate) what: &'static str,
    pub(crate) value: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// A command of ours, and the jobs that it is to be about, of which each is looked at again.
    Mends(Vec<String>, Vec<String>),
    /// Words of a command of ours that shows more.
    Shows(Vec<String>),
    /// A command line for something else.
    Elsewhere(String),
}

impl Remedy {
    /// Takes the words of a command of ours that mends these jobs; none of the words has a space.
    pub(crate) fn mends(words: &str, jobs: &[String]) -> Self {
        let words = words.split(' ').map(str::to_owned).collect();
        Self::Mends(words, jobs.to_vec())
    }

    /// Takes those of one that shows more.
    pub(crate) fn shows(words: &str) -> Self {
        Self::Shows(words.split(' ').map(str::to_owned).collect())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) code: Code,
    pub(crate) summary: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) remedy: Remedy,
}

impl Finding {
    pub(crate) fn new(code: Code, summary: impl Into<String>, remedy: Remedy) -> Self {
        Self {
            code,
            summary: summary.into(),
            evidence: Vec::new(),
            remedy,
        }
    }

    pub(crate) fn seen(mut self, what: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        self.evidence.push(Evidence { what, value });
        self
    }
}

#[derive(Debug, Default)]
pub(crate) struct Examined {
    pub(crate) findings: Vec<Finding>,
    pub(crate) unseen: Vec<(String, Option<BoardError>)>,
}

impl Examined {
    pub(crate) fn add(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    pub(crate) fn unseen(&mut self, what: impl Into<String>, why: impl Into<Option<BoardError>>) {
        self.unseen.push((what.into(), why.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_own_meaning() {
        for (code, (about, ..)) in Code::ALL.iter().zip(MEANINGS) {
            assert_eq!(*code, about);
        }
    }
}
