//! The one table of what findings mean.

use super::{
    Code,
    Group::{self, Claims, Conductors, Connection, Keys, Local, Octavia, Server},
    Severity::{self, Error, Note, Warning},
};

/// What each is about, how bad it is, and what comes of it.
pub(super) const MEANINGS: [(Code, Group, Severity, &str); Code::ALL.len()] = [
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
        Code::BlocksPosters,
        Claims,
        Error,
        "whoever posts waits for each job on the board: requests and failovers come to a stand",
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
        Code::ShortColumns,
        Octavia,
        Warning,
        "what does not fit is not written, and its job is tried for ever",
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
