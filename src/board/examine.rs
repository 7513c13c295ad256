//! What may be the matter with a board, and how it is told: findings under codes that stay.

use serde::Serialize;

use super::BoardError;
use crate::{names::named, suggest::Suggestion};

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

/// Declares the problem codes, each with its group, severity and impact.
macro_rules! codes {
    ($($Group:ident { $($Code:ident = $name:tt, $Severity:ident: $impact:literal;)+ })+) => {
        named! {
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
            pub(crate) enum Code ("check", str::eq) { $($($Code => $name,)+)+ }
        }

        impl Code {
            pub(crate) fn meaning(self) -> (Group, Severity, &'static str) {
                match self {
                    $($(Self::$Code => (Group::$Group, Severity::$Severity, $impact),)+)+
                }
            }
        }
    };
}

codes! {
    Connection {
        RightsMissing = "missing-rights", Error: "what needs these rights is refused";
        ServerAway = "server-unreachable", Warning: "fewer servers may fail before the board is gone";
        TlsExpires = "certificate-expires", Warning: "from then on nobody reaches the board";
    }
    Server {
        Evicts = "evicts-keys", Error:
            "claims and jobs are removed when the server is full, and jobs are performed twice or \
             never";
        NotPersistent = "not-persistent", Warning: "all jobs are gone when the server starts again";
        PersistenceFails = "persistence-failing", Error:
            "what is posted is lost when the server starts again, or refused even now";
        WritableReplica = "writable-replica", Error:
            "what is done here is undone by the master, and its users do not see it";
        ReplicaLags = "replica-lagging", Warning:
            "if the master fails, what it has not got is lost, claims and jobs alike";
        WritableByOthers = "writable-by-others", Error:
            "other users of this machine can post what your conductors run";
        Damaged = "damaged-file", Error: "jobs are lost, and reading or writing fails";
        DiskFull = "disk-full", Warning: "soon nothing can be posted or settled";
        LogLarge = "large-log", Warning:
            "every process reads it when it starts, and the disk fills";
    }
    Keys {
        WrongType = "wrong-type", Error: "whoever uses this key fails";
        StrayKeys = "stray-keys", Warning:
            "they take room for ever, and a job that gets this key has them";
        SequenceBehind = "sequence-behind", Warning:
            "new jobs get the numbers of others, and come out of turn";
        Malformed = "unreadable-record", Error: "nobody can claim it";
        RecordUnreadable = "unreadable-sidecar", Warning: "no conductor can claim it";
        ForeignUuid = "uuid-mismatch", Warning:
            "whoever names it by its uuid reaches another job, or none";
        SharedTrash = "shared-trash", Note: "`list --trash` leaves them out without --shared";
    }
    Claims {
        NeverLapsing = "claim-never-expires", Warning:
            "if its owner is gone, the job waits for ever, and so does who waits for it";
        HeldByDead = "owner-dead", Error: "the job is performed by nobody";
        NotRenewed = "claim-not-renewed", Warning:
            "it lapses soon, and another one may perform the job a second time";
        UnfinishedMove = "unfinished-move", Warning:
            "the copies on the target board stay claimed, and no one can run them";
        BlocksPosters = "blocks-posters", Error:
            "whoever posts waits for each job on the board: requests and failovers come to a stand";
        LockBroken = "broken-lock", Error:
            "it names nobody, so that nobody can claim the job or settle it";
        Exhausted = "retries-exhausted", Warning: "whoever takes it next puts it into the trash";
        ClockAhead = "clock-skew", Warning: "ages and delays are wrong by as much, here or there";
    }
    Conductors {
        NoConductor = "no-conductor", Note: "jobs wait until somebody claims them";
        Silent = "conductor-silent", Warning: "its claims lapse, and its jobs are tried again";
        SameName = "duplicate-name", Error:
            "they own each other's claims, and settle jobs that they do not perform";
        Unsettled = "unsettled-job", Error:
            "the job was performed and is still on the board; it may be performed again";
        CommandsAndPeers = "breaks-peers", Warning:
            "Python conductors take commands, too, and trash what they cannot run";
    }
    Local {
        ConfigWritable = "writable-config", Error:
            "others can choose which board you use, and what runs to get its password";
        PasswordReadable = "readable-password", Error: "others can read the password of the board";
        Kernel = "unsupported-kernel", Error: "commands are not watched as they should be, or not at all";
    }
    Octavia {
        OddConfig = "suspicious-config", Note:
            "Octavia does something else than its configuration seems to say, or jobboard does";
        ShortColumns = "short-columns", Warning:
            "what does not fit is not written, and its job is tried for ever";
        BookWithoutJob = "logbook-without-job", Warning:
            "what was to be done is not done by anybody, and its logbook stays for ever";
        PendingWithoutJob = "pending-without-job", Error:
            "it stays as it is, and its users can do nothing about it";
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
    Mends(Suggestion, Vec<String>),
    /// A command of ours that shows more.
    Shows(Suggestion),
    /// A command of somebody else.
    Elsewhere(Suggestion),
}

impl Remedy {
    pub(crate) fn mends(words: &'static str, jobs: &[String]) -> Self {
        Self::Mends(Suggestion::of(words), jobs.to_vec())
    }

    pub(crate) fn shows(words: &'static str) -> Self {
        Self::Shows(Suggestion::of(words))
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
