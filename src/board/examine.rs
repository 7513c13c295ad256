//! Problems of a board, reported as findings under stable codes.

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
        RightsMissing = "missing-rights", Error: "operations that need these rights fail";
        ServerAway = "server-unreachable", Warning: "the board tolerates fewer server failures";
        TlsExpires = "certificate-expires", Warning: "after the expiry no client can connect";
    }
    Server {
        Evicts = "evicts-keys", Error:
            "a full server removes claims and jobs, so jobs run twice or never";
        NotPersistent = "not-persistent", Warning: "a restart of the server loses all jobs";
        PersistenceFails = "persistence-failing", Error:
            "a restart of the server loses new jobs, or the server already rejects them";
        WritableReplica = "writable-replica", Error:
            "the master overwrites every change made here, and its clients never see the change";
        ReplicaLags = "replica-lagging", Warning:
            "if the master fails, claims and jobs that are not yet replicated are lost";
        WritableByOthers = "writable-by-others", Error:
            "other users of this machine can post commands that your conductors run";
        Damaged = "damaged-file", Error: "jobs are lost, and reading or writing fails";
        DiskFull = "disk-full", Warning: "soon jobs can be neither posted nor settled";
        LogLarge = "large-log", Warning:
            "every process reads the log when it starts, and the disk fills up";
    }
    Keys {
        WrongType = "wrong-type", Error: "every command that uses this key fails";
        StrayKeys = "stray-keys", Warning:
            "the keys use space forever, and a new job with the same key inherits them";
        SequenceBehind = "sequence-behind", Warning:
            "new jobs get the numbers of existing jobs and run out of order";
        Malformed = "unreadable-record", Error: "no worker can claim the job";
        RecordUnreadable = "unreadable-sidecar", Warning: "no conductor can claim the job";
        ForeignUuid = "uuid-mismatch", Warning:
            "a reference by uuid finds another job, or none";
        SharedTrash = "shared-trash", Note: "`list --trash` hides these jobs without --shared";
    }
    Claims {
        NeverLapsing = "claim-never-expires", Warning:
            "if the owner is gone, the job waits forever, and so does every client that waits \
             for it";
        HeldByDead = "owner-dead", Error: "no process runs the job";
        NotRenewed = "claim-not-renewed", Warning:
            "the claim expires soon, and another worker may run the job a second time";
        UnfinishedMove = "unfinished-move", Warning:
            "the copies on the target board stay claimed, and no worker can run them";
        BlocksPosters = "blocks-posters", Error:
            "posters wait for every job on the board, so requests and failovers stop";
        LockBroken = "broken-lock", Error:
            "the lock names no owner, so no worker can claim or settle the job";
        Exhausted = "retries-exhausted", Warning: "the next conductor that claims the job moves \
                                                   it to the trash";
        ClockAhead = "clock-skew", Warning: "ages and delays are wrong by this amount";
    }
    Conductors {
        NoConductor = "no-conductor", Note: "jobs wait until a worker claims them";
        Silent = "conductor-silent", Warning: "the claims of the conductor expire, and other \
                                               conductors retry its jobs";
        SameName = "duplicate-name", Error:
            "each conductor owns the claims of the other and settles jobs that it does not run";
        Unsettled = "unsettled-job", Error:
            "the job ran but is still on the board, so it may run again";
        CommandsAndPeers = "breaks-peers", Warning:
            "Python conductors also claim commands, and trash jobs that they cannot run";
    }
    Local {
        ConfigWritable = "writable-config", Error:
            "other users can choose your board and the program that prints its password";
        PasswordReadable = "readable-password", Error: "other users can read the password of the \
                                                        board";
        Kernel = "unsupported-kernel", Error: "jobboard supervises commands incompletely, or not \
                                               at all";
    }
    Octavia {
        OddConfig = "suspicious-config", Note:
            "Octavia or jobboard does not behave as its configuration suggests";
        ShortColumns = "short-columns", Warning:
            "values that do not fit are not stored, and their jobs are retried forever";
        BookWithoutJob = "logbook-without-job", Warning:
            "no worker finishes the flow, and its logbook stays forever";
        PendingWithoutJob = "pending-without-job", Error:
            "the object stays in this state, and its users cannot change it";
    }
}

/// A part of a board that its backend must examine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Connection,
    /// The server's configuration.
    Server,
    /// Stored data that is malformed or belongs to no job.
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
    /// A `jobboard` command that fixes the jobs named here; each is examined again first.
    Mends(Suggestion, Vec<String>),
    /// A `jobboard` command that shows details.
    Shows(Suggestion),
    /// Another program's command.
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
