//! The closed list of codes. A code is the same word in every output, and an anchor in `docs/troubleshooting.md`.

use serde::Serialize;

use crate::names::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
    pub(crate) enum Group ("group", str::eq) {
        Connection => "connection",
        Server => "server",
        Keys => "keys",
        Jobs => "jobs",
        Conductors => "conductors",
        Local => "local",
        Octavia => "octavia",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
    pub(crate) enum Severity ("severity", str::eq) {
        Ok => "ok",
        Note => "note",
        Warning => "warning",
        Error => "error",
    }
}

/// Declares the codes, each with its group, severity and impact. A state is not a problem and has no impact.
macro_rules! codes {
    ($($Group:ident { $($Code:ident = $name:tt, $Severity:ident: $impact:literal;)+ })+) => {
        named! {
            #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
            pub(crate) enum Code ("code", str::eq) { $($($Code => $name,)+)+ }
        }

        /// A pattern of the codes of a group.
        macro_rules! codes_of {
            $(($Group) => { $($crate::problem::Code::$Code)|+ };)+
        }

        pub(crate) use codes_of;

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
        MissingRights = "missing-rights", Error: "operations that need these rights fail";
        ServerUnreachable = "server-unreachable", Warning: "the board tolerates fewer server failures";
        CertificateExpires = "certificate-expires", Warning: "after the expiry no client can connect";
    }
    Server {
        EvictsKeys = "evicts-keys", Error:
            "a full server removes claims and jobs, so jobs run twice or never";
        MemoryFull = "memory-full", Error: "clients cannot post, claim or settle jobs";
        NotPersistent = "not-persistent", Warning: "a restart of the server loses all jobs";
        PersistenceFailing = "persistence-failing", Error:
            "a restart of the server loses new jobs, or the server already rejects them";
        WritableReplica = "writable-replica", Error:
            "the master overwrites every change made here, and its clients never see the change";
        ReplicaLagging = "replica-lagging", Warning:
            "if the master fails, claims and jobs that are not yet replicated are lost";
        WritableByOthers = "writable-by-others", Error:
            "other users of this machine can post commands that your conductors run";
        DamagedFile = "damaged-file", Error: "jobs are lost, and reading or writing fails";
        DiskFull = "disk-full", Warning: "clients soon cannot post or settle jobs";
        LargeLog = "large-log", Warning:
            "every process reads the log when it starts, and the disk fills up";
    }
    Keys {
        WrongType = "wrong-type", Error: "every command that uses this key fails";
        StrayKeys = "stray-keys", Warning:
            "the keys take up space forever, and a new job with the same key inherits them";
        UnreadableEntry = "unreadable-entry", Warning:
            "a pause that cannot be read pauses no job, and an unreadable registration hides a conductor";
        SequenceBehind = "sequence-behind", Warning:
            "new jobs get the numbers of existing jobs and run out of order";
        SharedTrash = "shared-trash", Note: "`list --trash` hides these jobs without --shared";
    }
    Jobs {
        Ready = "ready", Ok: "";
        Running = "running", Ok: "";
        Waiting = "waiting", Ok: "";
        BackingOff = "backing-off", Ok: "";
        Paused = "paused", Ok: "";
        ClaimExpiresSoon = "claim-expires-soon", Ok: "";
        Trashed = "trashed", Ok: "";
        Ended = "ended", Ok: "";
        UnknownJob = "unknown-job", Warning: "";
        Unavailable = "unavailable", Ok: "";
        OwnerDead = "owner-dead", Error: "the owner cannot finish the job";
        OwnerStopped = "owner-stopped", Error:
            "the job waits until the owner runs again or its claim expires";
        BrokenLock = "broken-lock", Error:
            "the lock names no owner, so no worker can claim or settle the job";
        BlocksPosters = "blocks-posters", Error:
            "posters wait for every job on the board, so requests and failovers stop";
        UnreadableRecord = "unreadable-record", Error: "no worker can claim the job";
        UnreadableSidecar = "unreadable-sidecar", Error: "no conductor can claim the job";
        UnsettledJob = "unsettled-job", Error:
            "the job ran but is still on the board, so it may run again";
        InvalidCommand = "invalid-command", Error: "no conductor can ever run the job as posted";
        ConductorRefuses = "conductor-refuses", Error: "the job waits until the conductor may run it";
        NoMatchingConductor = "no-matching-conductor", Error:
            "the job waits until a conductor accepts it";
        ExcessiveDelay = "excessive-delay", Error: "no conductor claims the job before the delay ends";
        ClaimNotRenewed = "claim-not-renewed", Warning:
            "the claim expires soon, and another worker may run the job a second time";
        ClaimNeverExpires = "claim-never-expires", Warning:
            "if the owner is gone, the job waits forever, and so does every client that waits \
             for it";
        UnfinishedMove = "unfinished-move", Warning:
            "the copies on the target board stay claimed, and no worker can run them";
        RetriesExhausted = "retries-exhausted", Warning:
            "the next conductor that claims the job moves it to the trash";
        Failed = "failed", Warning: "the job stays in the trash until you retry or purge it";
        BreaksPeers = "breaks-peers", Warning:
            "Python services fail on the job, or trash what they cannot run";
        UuidMismatch = "uuid-mismatch", Warning:
            "a reference by uuid finds another job, or none";
        ClockSkew = "clock-skew", Warning: "ages and delays are wrong by this amount";
        FlowWithoutClaim = "flow-without-claim", Warning:
            "the next worker that claims the job repeats the work of the running one";
        NoConductor = "no-conductor", Note: "jobs wait until a worker claims them";
    }
    Conductors {
        ConductorSilent = "conductor-silent", Warning: "it claims no jobs until it runs again";
        DuplicateName = "duplicate-name", Error:
            "each conductor owns the other's claims, and may settle jobs that the other is running";
    }
    Local {
        WritableConfig = "writable-config", Error:
            "other users can choose your board and the program that prints its password";
        ReadablePassword = "readable-password", Error: "other users can read the password of the \
                                                        board";
        UnsupportedKernel = "unsupported-kernel", Error: "jobboard can supervise commands only partly or \
                                               not at all";
    }
    Octavia {
        SuspiciousConfig = "suspicious-config", Note:
            "Octavia or jobboard does not behave as its configuration suggests";
        ShortColumns = "short-columns", Warning:
            "values that do not fit are not stored, and their jobs are retried forever";
        LogbookWithoutJob = "logbook-without-job", Warning:
            "no worker finishes the flow, and its logbook stays forever";
        StuckLoadBalancer = "stuck-load-balancer", Error:
            "the load balancer stays in this state, and its users cannot change it";
    }
}

/// A pattern for all codes that do not describe a job. A `match` must then list the codes of jobs.
macro_rules! no_job_code {
    () => {
        $crate::problem::codes_of!(Connection)
            | $crate::problem::codes_of!(Server)
            | $crate::problem::codes_of!(Keys)
            | $crate::problem::codes_of!(Conductors)
            | $crate::problem::codes_of!(Local)
            | $crate::problem::codes_of!(Octavia)
    };
}

pub(crate) use no_job_code;

impl Code {
    pub(crate) fn group(self) -> Group {
        self.meaning().0
    }

    pub(crate) fn severity(self) -> Severity {
        self.meaning().1
    }

    /// Whether the code is a problem, and not the ordinary state of a job.
    pub(crate) fn is_problem(self) -> bool {
        let (.., impact) = self.meaning();
        !impact.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_named_as_their_variants() {
        for code in Code::ALL {
            let variant = format!("{code:?}");
            let words = code.name().split('-');
            let words = words.map(|word| word[..1].to_uppercase() + &word[1..]);
            assert_eq!(variant, words.collect::<String>());
        }
    }
}
