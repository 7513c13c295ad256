//! What may be the matter with a board, and how it is told: findings under codes that stay.

use serde::Serialize;

use self::{
    Group::{Claims, Conductors, Connection, Keys, Local, Octavia, Server},
    Severity::{Error, Note, Warning},
};
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
    /// How bad it is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub(crate) enum Severity ("severity", str::eq) {
        Note => "note",
        Warning => "warning",
        Error => "error",
    }
}

named! {
    /// What may be the matter.
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
        SharedTrash => "shared-trash",
        NeverLapsing => "never-lapsing",
        HeldByDead => "held-by-dead",
        NotRenewed => "not-renewed",
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
        BookWithoutJob => "book-without-job",
        PendingWithoutJob => "pending-without-job",
    }
}

/// What each is about, how bad it is, and what comes of it.
const MEANINGS: [(Code, Group, Severity, &str); Code::ALL.len()] = [
    (
        Code::RightsMissing,
        Connection,
        Error,
        "what needs these rights is refused",
    ),
    (
        Code::ServerAway,
        Connection,
        Warning,
        "fewer servers may fail before the board is gone",
    ),
    (
        Code::TlsExpires,
        Connection,
        Warning,
        "from then on nobody reaches the board",
    ),
    (
        Code::Evicts,
        Server,
        Error,
        "claims and jobs are removed when the server is full, and jobs are performed twice or \
                 never",
    ),
    (
        Code::NotPersistent,
        Server,
        Warning,
        "all jobs are gone when the server starts again",
    ),
    (
        Code::PersistenceFails,
        Server,
        Error,
        "what is posted is lost when the server starts again, or refused even now",
    ),
    (
        Code::WritableReplica,
        Server,
        Error,
        "what is done here is undone by the master, and its users do not see it",
    ),
    (
        Code::ReplicaLags,
        Server,
        Warning,
        "if the master fails, what it has not got is lost, claims and jobs alike",
    ),
    (
        Code::WritableByOthers,
        Server,
        Error,
        "other users of this machine can post what your conductors run",
    ),
    (
        Code::Damaged,
        Server,
        Error,
        "jobs are lost, and reading or writing fails",
    ),
    (
        Code::DiskFull,
        Server,
        Warning,
        "soon nothing can be posted or settled",
    ),
    (
        Code::LogLarge,
        Server,
        Warning,
        "every process reads it when it starts, and the disk fills",
    ),
    (Code::WrongType, Keys, Error, "whoever uses this key fails"),
    (
        Code::StrayKeys,
        Keys,
        Warning,
        "they take room for ever, and a job that gets this key has them",
    ),
    (
        Code::SequenceBehind,
        Keys,
        Warning,
        "new jobs get the numbers of others, and come out of turn",
    ),
    (Code::Malformed, Keys, Error, "nobody can claim it"),
    (
        Code::RecordUnreadable,
        Keys,
        Warning,
        "no conductor can claim it",
    ),
    (
        Code::SharedTrash,
        Keys,
        Note,
        "`list --trash` leaves them out without --shared",
    ),
    (
        Code::NeverLapsing,
        Claims,
        Warning,
        "if its owner is gone, the job waits for ever, and so does who waits for it",
    ),
    (
        Code::HeldByDead,
        Claims,
        Error,
        "the job is performed by nobody",
    ),
    (
        Code::NotRenewed,
        Claims,
        Warning,
        "it lapses soon, and another one may perform the job a second time",
    ),
    (
        Code::LockBroken,
        Claims,
        Error,
        "it names nobody, so that nobody can claim the job or settle it",
    ),
    (
        Code::Exhausted,
        Claims,
        Warning,
        "whoever takes it next puts it into the trash",
    ),
    (
        Code::ClockAhead,
        Claims,
        Warning,
        "ages and delays are wrong by as much, here or there",
    ),
    (
        Code::NoConductor,
        Conductors,
        Note,
        "jobs wait until somebody claims them",
    ),
    (
        Code::Silent,
        Conductors,
        Warning,
        "its claims lapse, and its jobs are tried again",
    ),
    (
        Code::SameName,
        Conductors,
        Error,
        "they own each other's claims, and settle jobs that they do not perform",
    ),
    (
        Code::Unsettled,
        Conductors,
        Error,
        "the job was performed and is still on the board; it may be performed again",
    ),
    (
        Code::CommandsAndPeers,
        Conductors,
        Warning,
        "Python conductors take commands, too, and trash what they cannot run",
    ),
    (
        Code::ConfigWritable,
        Local,
        Error,
        "others can choose which board you use, and what runs to get its password",
    ),
    (
        Code::PasswordReadable,
        Local,
        Error,
        "others can read the password of the board",
    ),
    (
        Code::Kernel,
        Local,
        Error,
        "commands are not watched as they should be, or not at all",
    ),
    (
        Code::OddConfig,
        Octavia,
        Note,
        "Octavia does something else than its configuration seems to say, or jobboard does",
    ),
    (
        Code::BookWithoutJob,
        Octavia,
        Warning,
        "what was to be done is not done by anybody, and its logbook stays for ever",
    ),
    (
        Code::PendingWithoutJob,
        Octavia,
        Error,
        "it stays as it is, and its users can do nothing about it",
    ),
];

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
    /// What we may do there.
    Connection,
    /// How whatever serves it is set up.
    Server,
    /// What is stored that belongs to no job, or is not what it should be.
    Keys {
        /// The highest number of a job that was seen.
        highest: Option<i64>,
    },
}

/// Something that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Evidence {
    pub(crate) what: &'static str,
    pub(crate) value: String,
}

/// What mends something.
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

/// Something that is the matter.
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

    /// Adds something that was seen.
    pub(crate) fn seen(mut self, what: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        self.evidence.push(Evidence { what, value });
        self
    }
}

/// What a look at one part has shown.
#[derive(Debug, Default)]
pub(crate) struct Examined {
    pub(crate) findings: Vec<Finding>,
    /// What could not be seen, and why.
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
