//! Hints for errors without an obvious remedy.
//!
//! `JOB` in a command stands for the job that the error is about.

use super::{CommandError, Trying, verb};
use crate::{
    board::{
        BoardError, JobRef,
        error::{ErrorSource, NodeConflict, Unsupported},
        net::cause::{ServerCause, ServerProblem},
    },
    glob::literal,
    job::Location,
    logbook::LogbookError,
    output::can_ask,
    suggest::Hint,
};

const RUNNING: &str = "`jobboard conductors` shows the running jobs";

const LIST: &str = "`jobboard list` shows the jobs on the board; add `--trash` or `--history` for \
                    jobs that have left it";

pub(super) const LOOK_AT_IT: &str = "nothing changed; `jobboard show JOB` shows its current \
                                     state";

#[derive(Debug)]
pub(super) struct JobHint {
    pub(super) hint: Hint,
    pub(super) job: Option<String>,
}

impl JobHint {
    pub(super) fn new(hint: impl Into<Hint>, trying: Option<&Trying>) -> Self {
        Self {
            hint: hint.into(),
            job: trying.and_then(|trying| trying.job.clone()),
        }
    }
}

pub(super) fn of_command(error: &CommandError, trying: Option<&Trying>) -> Option<JobHint> {
    let hint: Hint = match error {
        CommandError::Usage { hint, .. } | CommandError::Refused { hint, .. } => hint.clone()?,
        CommandError::MaybeClaimed { .. } => {
            "`jobboard owner JOB` shows who holds the claim; `jobboard abandon --force JOB` \
             releases the claim"
                .into()
        }
        CommandError::AlreadyYours { hint, .. } | CommandError::Mend { hint, .. } => hint.clone(),
        CommandError::Nothing(_) => match verb_of(trying) {
            verb::CLAIM => "add `--wait 1m` to wait for a job".into(),
            verb::SHOW_FLOW => "`jobboard explain JOB` shows its state and the reason".into(),
            verb::RESUME => "`jobboard status` lists the pauses".into(),
            verb::MEND => "`jobboard mend` lists all stuck load balancers".into(),
            _ => "`jobboard claim JOB` claims the job".into(),
        },
        CommandError::UnreadableOwner => "`jobboard abandon --force JOB` releases the claim".into(),
        CommandError::NotHeldBy(_) => {
            "nothing changed; `jobboard owner JOB` shows who holds the claim".into()
        }
        CommandError::NoConductor(_) => "`jobboard conductors` lists the running conductors".into(),
        CommandError::NoSuchName { .. } => LIST.into(),
        CommandError::Elsewhere(location) => elsewhere(*location, verb_of(trying)).into(),
        CommandError::Namesakes {
            verb,
            name,
            first,
            is_in_trash,
            ..
        } => namesakes(verb, name, first, *is_in_trash),
        CommandError::NotKnown { .. } => {
            "check the reference and the board (`jobboard config`); `jobboard list --history` \
             lists the jobs that have ended, and --gone-ok treats an unknown job as complete"
                .into()
        }
        CommandError::Canary { .. } => "`jobboard show --output JOB` prints its output".into(),
        CommandError::JobFailed { job: Some(_), .. }
        | CommandError::NotAllDone { job: Some(_), .. } => {
            "`jobboard explain JOB` shows the reason and the fix".into()
        }
        CommandError::NotAllDone { has_failed, .. } => not_all_done(*has_failed).into(),
        CommandError::JobFailed { job: None, .. } => {
            "`jobboard list --trash` and `jobboard list --history` show how the jobs ended".into()
        }
        CommandError::TimedOut(_) if trying.is_some_and(|it| it.job.is_some()) => {
            "`jobboard explain JOB` shows its state and the reason".into()
        }
        CommandError::NoSlot(_) => RUNNING.into(),
        CommandError::TimedOut(_) if verb_of(trying) == verb::TRY_CANARY => RUNNING.into(),
        CommandError::TimedOut(_) => "`jobboard list` shows the jobs on the board".into(),
        CommandError::OutOfReach(_) => "`jobboard ping` tests the connection".into(),
        // Each failure was reported separately, and a command prints its own errors.
        CommandError::Partly { .. }
        | CommandError::Command(_)
        | CommandError::NotRun { .. }
        | CommandError::OwnError(_) => return None,
    };
    let mut job_hint = JobHint::new(hint, trying);
    match error {
        CommandError::MaybeClaimed { job, .. } | CommandError::Canary { job, .. } => {
            job_hint.job = Some(job.clone());
        }
        CommandError::JobFailed { job, .. } | CommandError::NotAllDone { job, .. } => {
            job_hint.job.clone_from(job)
        }
        _ => {}
    }
    Some(job_hint)
}

fn namesakes(verb: &str, name: &str, first: &str, is_in_trash: bool) -> Hint {
    let (words, name) = (verb.split(' ').collect::<Vec<_>>(), literal(name));
    let text = match (words[0], is_in_trash) {
        ("trash", _) => {
            let text = "use `jobboard {} {}` for one job, or `jobboard {} --name {}` for all";
            return Hint::new(text, [&words, &[first], &words, &[&*name]]);
        }
        (_, true) => {
            "name one by its uuid, as in `jobboard {} {}`; `jobboard list --trash --name {}` lists those in the trash"
        }
        (_, false) => {
            "name one by its uuid, as in `jobboard {} {}`; `jobboard list --name {}` lists those on the board"
        }
    };
    Hint::new(text, [&words, &[first], &[&*name]])
}

fn not_all_done(has_failed: bool) -> &'static str {
    match has_failed {
        true => "`jobboard doctor` shows the reasons",
        false => "without -q, `jobboard conduct` logs each skipped job with its reason",
    }
}

fn elsewhere(location: Location, verb: &str) -> &'static str {
    match (location, verb) {
        (Location::Board, verb::PURGE) => "`jobboard trash --force JOB` moves it to the trash",
        (Location::Board, _) => "nothing changed; `jobboard show JOB` shows the job",
        (Location::Trash, verb::TRASH) => {
            "`jobboard purge JOB` deletes it for good; `jobboard restore JOB` puts it back"
        }
        (Location::Trash, verb::CHANGE) => {
            "to change it before it runs, pause its name, then `jobboard restore JOB`, change it, \
             and resume the name"
        }
        (Location::Trash, _) => "`jobboard restore JOB` puts it back on the board",
        (Location::History, _) => "`jobboard show JOB` shows how it ended",
    }
}

pub(super) fn of_board(error: &BoardError, trying: Option<&Trying>) -> Option<JobHint> {
    let mut job_hint = JobHint::new(board_hint(error, trying)?, trying);
    match error {
        BoardError::Malformed { key, .. } => job_hint.job = Some(format!("key:{key}")),
        BoardError::Exists { uuid, .. } => job_hint.job = Some(uuid.clone()),
        _ => {}
    }
    Some(job_hint)
}

pub(super) fn of_logbook(error: &LogbookError, trying: Option<&Trying>) -> Option<JobHint> {
    let hint = match error {
        // Its message already has the remedy.
        LogbookError::LeftOut(_) => return None,
        _ => "`jobboard config` shows the database and where it is configured",
    };
    Some(JobHint::new(hint, trying))
}

fn board_hint(error: &BoardError, trying: Option<&Trying>) -> Option<Hint> {
    if let Some(hint) = verb_hint(error, trying) {
        return Some(hint);
    }
    if let (BoardError::Denied { .. }, Some(file)) = (error, error.board_file()) {
        if matches!(file.try_exists(), Ok(false)) {
            return Some("choose a writable file: `--board sqlite:PATH`".into());
        }
        let file = file.to_string_lossy();
        let text = "`ls -l {}` shows who may read and write the board file";
        return Some(Hint::new(text, [&[&file]]));
    }
    let hint = match error {
        BoardError::Ambiguous { wanted, .. }
            if wanted.parse().is_ok_and(|it: JobRef| it.is_exact()) =>
        {
            "several records share this reference, so name one by its key, as in key:TEXT"
        }
        BoardError::Ambiguous { .. } => "give more digits of the uuid",
        BoardError::MayStillRun { .. } => {
            "nothing changed; if you know that its command has ended, add --now"
        }
        BoardError::NotDelayed => "nothing changed; `jobboard show JOB` shows the job",
        BoardError::Changed => LOOK_AT_IT,
        BoardError::Exists { .. } => "nothing changed; `jobboard show JOB` shows the existing job",
        BoardError::NodeConflict(NodeConflict::InTrash(_)) => {
            "nothing changed; `jobboard list --trash --shared` shows the other job: restore it \
             on its board, or purge it, then repeat"
        }
        BoardError::NodeConflict(NodeConflict::OnBoard(_)) => {
            "nothing changed; repeat the command when the other job has left the board"
        }
        BoardError::NameTaken { .. } => {
            "choose another --name; `jobboard conductors` lists the names in use, and `jobboard \
             doctor` the registrations that cannot be read"
        }
        BoardError::Crowded { .. } => "`jobboard conductors` lists the first of them",
        BoardError::Malformed { .. } => {
            "`jobboard trash --force JOB` moves the record to the trash"
        }
        BoardError::Unclaimable { .. } => {
            "`jobboard claim JOB` without other options claims the job anyway; `jobboard trash \
             --force JOB` moves the job to the trash"
        }
        BoardError::NotOpened { hint, .. } => return Some(Hint::clone(hint)),
        BoardError::NodeConflict(NodeConflict::Children { remedy, .. }) => {
            return Some(Hint::clone(remedy));
        }
        BoardError::Unsupported(error) => unsupported(error, verb_of(trying))?,
        BoardError::NoDirectory { .. } => "add `--create` to create the directory",
        BoardError::Denied { .. } => {
            "`jobboard config` shows the board's URL, the user and the source of the password"
        }
        BoardError::Failed { source, .. } => of_failure(source),
        BoardError::NoSuchJob
        | BoardError::Delayed { .. }
        | BoardError::AlreadyClaimed { .. }
        | BoardError::NotClaimed
        | BoardError::NotOwner { .. }
        | BoardError::Unreachable { .. }
        | BoardError::Misdirected { .. }
        | BoardError::Unknown { .. } => return None,
    };
    Some(hint.into())
}

fn of_failure(source: &ErrorSource) -> &'static str {
    let problem = source.downcast_ref().map(ServerProblem::cause);
    match problem {
        Some(ServerCause::OutOfMemory | ServerCause::CannotSave) => {
            "`jobboard doctor` shows the problem of the server and the fix"
        }
        // The text of SQLite for a file.
        None if source.to_string().contains("disk is full") => {
            "`jobboard doctor` shows the free space on the disk of the board"
        }
        _ => "`jobboard config` shows the board in use and where it is configured",
    }
}

fn unsupported(error: &Unsupported, verb: &str) -> Option<&'static str> {
    Some(match *error {
        Unsupported::ExpiringClaims if verb == verb::EXTEND => {
            "a claim on this board lasts as long as its owner's session"
        }
        Unsupported::ExpiringClaims => "--hold keeps the claim until you press Ctrl-C",
        Unsupported::PeerOrder => "--sort rank lists jobs in claim order",
        Unsupported::NameWithoutNumber => "`jobboard purge key:TEXT` removes it from the trash",
        Unsupported::Server { remedy, .. } => remedy,
        Unsupported::Removal => return None,
    })
}

fn verb_hint(error: &BoardError, trying: Option<&Trying>) -> Option<Hint> {
    let deed = verb_of(trying);
    // The verb may have options, as in `consume --failed`.
    let word = deed.split(' ').next().unwrap_or_default();
    let has_job = trying.is_some_and(|trying| trying.job.is_some());
    let hint = match (error, word) {
        (BoardError::NoSuchJob, _) => LIST,
        (
            BoardError::AlreadyClaimed { owner: Some(owner) }
            | BoardError::NotOwner {
                owner: Some(owner), ..
            },
            _,
        ) if owner.is_of_move() => {
            "a move to another board holds the job; if the move was interrupted, `jobboard doctor` \
             shows how to finish it"
        }
        (BoardError::AlreadyClaimed { .. }, verb::RETRY | verb::CHANGE) => {
            "nothing changed; if the owner is gone, `jobboard abandon --force JOB` releases the \
             claim"
        }
        (BoardError::AlreadyClaimed { .. }, _) => {
            "`jobboard claim --next` claims another job; if the owner of this one is gone, \
             `jobboard abandon --force JOB` releases the claim"
        }
        (BoardError::NotClaimed, verb::TRASH | verb::CONSUME) => {
            return Some(by_force(
                deed,
                "`jobboard {} JOB` also works on an unclaimed job",
            ));
        }
        (BoardError::NotClaimed, verb::ABANDON) => {
            "the job needs no release; `jobboard show JOB` shows its state"
        }
        (BoardError::NotClaimed, _) => "`jobboard claim JOB` claims the job",
        (BoardError::NotOwner { .. }, verb::TRASH | verb::CONSUME | verb::ABANDON) => {
            return Some(by_force(
                deed,
                "if the claim is yours under another name, add `--who NAME`; if the owner is gone, use \
                 `jobboard {} JOB`",
            ));
        }
        (BoardError::NotOwner { .. }, _) => {
            "if the claim is yours under another name, add `--who NAME`; if the owner is gone, `jobboard abandon --force JOB` \
             releases the claim"
        }
        (BoardError::Malformed { .. }, verb::RETRY) => {
            "nothing changed; `jobboard show JOB` shows the record"
        }
        (BoardError::Unclaimable { .. }, verb::RETRY) => {
            "nothing changed; `jobboard help unreadable-sidecar` explains the problem"
        }
        (BoardError::Misdirected { .. }, _) if error.board_file().is_some() => {
            "correct the board's URL (--board or JOBBOARD_URL), or create the directory; `jobboard \
             config` shows where the URL is set"
        }
        (BoardError::Unreachable { .. } | BoardError::Misdirected { .. }, _) => {
            "check the server, or correct the board's URL (--board or JOBBOARD_URL); `jobboard \
             config` shows where it is set"
        }
        (BoardError::Unknown { .. }, _) if has_job => "`jobboard show JOB` shows the outcome",
        (BoardError::Unknown { .. }, _) => "`jobboard list` shows the outcome",
        _ => return None,
    };
    Some(hint.into())
}

fn verb_of(trying: Option<&Trying>) -> &'static str {
    trying.map_or("", |trying| trying.verb)
}

fn by_force(verb: &str, text: &'static str) -> Hint {
    // Without a terminal, the command with --force would be refused for lack of --yes.
    let yes = (!can_ask()).then_some("--yes");
    let words: Vec<_> = verb.split(' ').chain(["--force"]).chain(yes).collect();
    Hint::new(text, [&words])
}
