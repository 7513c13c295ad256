//! What to do about an error, where that is not plain.
//!
//! `JOB` in a command stands for the job that the error is about.

use super::{CommandError, Trying};
use crate::{
    board::{BoardError, JobRef},
    suggest::Hint,
};

pub(super) const LOOK_AT_IT: &str = "nothing was done; `jobboard show JOB` shows how it is now";

#[derive(Debug)]
pub(super) struct WayOut {
    pub(super) hint: Hint,
    pub(super) job: Option<String>,
}

impl WayOut {
    pub(super) fn new(hint: impl Into<Hint>, trying: Option<&Trying>) -> Self {
        Self {
            hint: hint.into(),
            job: trying.and_then(|trying| trying.job.clone()),
        }
    }
}

pub(super) fn of_command(error: &CommandError, trying: Option<&Trying>) -> Option<WayOut> {
    let hint: Hint = match error {
        CommandError::Usage { hint, .. } | CommandError::Refused { hint, .. } => hint.clone()?,
        CommandError::Unheard { .. } => {
            "`jobboard owner JOB` shows whether it is; `jobboard abandon --force JOB` frees it"
                .into()
        }
        CommandError::Yours { hint, .. } => hint.clone(),
        CommandError::Nothing(_) => match verb(trying) {
            "claim" => "with --wait 1m as well it waits for one".into(),
            "show the flow of" => "`jobboard explain JOB` says why it is where it is".into(),
            "resume" => "`jobboard status` shows what is paused".into(),
            _ => "`jobboard claim JOB` claims it".into(),
        },
        CommandError::UnreadableOwner => "`jobboard abandon --force JOB` frees it".into(),
        CommandError::NotHeldBy(_) => {
            "nothing was done; `jobboard owner JOB` shows who holds it".into()
        }
        CommandError::NoConductor => "`jobboard conductors` shows who is at work".into(),
        CommandError::NotKnown { .. } => {
            "with --gone-ok it counts as complete; `jobboard list --history` shows what is remembered"
                .into()
        }
        CommandError::InVain(_) => {
            "`jobboard list --trash` and `jobboard list --history` show how jobs ended".into()
        }
        CommandError::TimedOut(_) => "`jobboard list` shows what is on the board".into(),
        // Each of the several was told of by itself, and a command has said what there is to say.
        CommandError::Partly { .. } | CommandError::Command(_) | CommandError::Ours(_) => {
            return None;
        }
    };
    let mut way_out = WayOut::new(hint, trying);
    if let CommandError::Unheard { job, .. } = error {
        way_out.job = Some(job.clone());
    }
    Some(way_out)
}

pub(super) fn of_board(error: &BoardError, trying: Option<&Trying>) -> Option<WayOut> {
    let mut way_out = WayOut::new(board_hint(error, trying)?, trying);
    match error {
        BoardError::Malformed { key, .. } => way_out.job = Some(format!("key:{key}")),
        BoardError::Exists { uuid, .. } => way_out.job = Some(uuid.clone()),
        _ => {}
    }
    Some(way_out)
}

fn board_hint(error: &BoardError, trying: Option<&Trying>) -> Option<Hint> {
    if let Some(hint) = verb_hint(error, trying) {
        return Some(hint);
    }
    let hint = match error {
        BoardError::Ambiguous { wanted, .. }
            if wanted.parse().is_ok_and(|it: JobRef| it.is_exact()) =>
        {
            "several records have it; name one by its key; nothing was done"
        }
        BoardError::Ambiguous { .. } => "give more of the uuid; nothing was done",
        BoardError::Postponed { .. } => "`jobboard claim JOB` claims it all the same",
        BoardError::NotHeldBack => {
            "nothing was done: it can be claimed already; `jobboard show JOB` shows it"
        }
        BoardError::Changed => LOOK_AT_IT,
        BoardError::Exists { .. } => "nothing was done; `jobboard show JOB` shows the one there is",
        BoardError::TrashTaken { .. } => {
            "nothing was done; `jobboard list --trash --shared` shows it: restore it on its board, or \
             purge it, first"
        }
        BoardError::NumberTaken { .. } => {
            "nothing was done; it can be restored once that one is gone from the board"
        }
        BoardError::NameTaken { .. } => {
            "`jobboard conductors` shows who is at work; choose another --name"
        }
        BoardError::Crowded { .. } => "`jobboard conductors` shows the first of them",
        BoardError::Malformed { .. } => "`jobboard trash --force JOB` takes it off the board",
        BoardError::Unfit { .. } => {
            "`jobboard claim JOB` alone claims it all the same; `jobboard trash --force JOB` takes it \
             off the board"
        }
        BoardError::OtherName { hint, .. } => return Some(Hint::clone(hint)),
        BoardError::Occupied { remedy, .. } => return Some(Hint::clone(remedy)),
        BoardError::Unsupported { hint, .. } => (*hint)?,
        BoardError::NoFolder { .. } => "with --create the folder is made, too",
        BoardError::Denied { .. } => "`jobboard config` shows which board is used, and as whom",
        BoardError::Failed { .. } => {
            "`jobboard config` shows which board is used, and who chose it"
        }
        // All of these depend on it.
        BoardError::NoSuchJob
        | BoardError::AlreadyClaimed { .. }
        | BoardError::NotClaimed
        | BoardError::NotOwner { .. }
        | BoardError::Unreachable { .. }
        | BoardError::Misdirected { .. }
        | BoardError::Unknown { .. } => return None,
    };
    Some(hint.into())
}

fn verb_hint(error: &BoardError, trying: Option<&Trying>) -> Option<Hint> {
    let verb = verb(trying);
    // Whether more follows it, as in `consume --failed`.
    let word = verb.split(' ').next().unwrap_or_default();
    let has_job = trying.is_some_and(|trying| trying.job.is_some());
    let hint = match (error, word) {
        (BoardError::NoSuchJob, word) if has_job && !matches!(word, "show" | "wait") => {
            "`jobboard show JOB` looks for it in the trash and in the history, too"
        }
        (BoardError::NoSuchJob, _) => {
            "`jobboard list` shows the jobs on the board; --trash and --history, those that left it"
        }
        (BoardError::AlreadyClaimed { .. }, "retry") => {
            "nothing was done; if whoever has it is gone, `jobboard abandon --force JOB` frees it"
        }
        (BoardError::AlreadyClaimed { .. }, _) => {
            "`jobboard claim --next` claims the best job that is free; if the holder of this one is \
             gone, `jobboard abandon --force JOB` frees it"
        }
        (BoardError::NotClaimed, "trash" | "consume") => {
            return Some(by_force(
                verb,
                "`jobboard {} --force JOB` does it though nobody has it",
            ));
        }
        (BoardError::NotClaimed, "abandon") => "it is free already: `jobboard show JOB` shows it",
        (BoardError::NotClaimed, _) => "`jobboard claim JOB` claims it",
        (BoardError::NotOwner { .. }, "trash" | "consume" | "abandon") => {
            return Some(by_force(
                verb,
                "`jobboard {} --force JOB` does it whoever has it; --who NAME acts as its owner",
            ));
        }
        (BoardError::NotOwner { .. }, _) => {
            "--who NAME acts as its owner; `jobboard abandon --force JOB` frees it"
        }
        (BoardError::Malformed { .. }, "retry") => "nothing was done; `jobboard show JOB` shows it",
        (BoardError::Unreachable { .. } | BoardError::Misdirected { .. }, "ping") => {
            "`jobboard config` shows which board is used, and who chose it"
        }
        (BoardError::Unreachable { .. } | BoardError::Misdirected { .. }, _) => {
            "`jobboard ping` shows whether the board answers"
        }
        (BoardError::Unknown { .. }, _) if has_job => {
            "`jobboard show JOB` shows whether it was done"
        }
        (BoardError::Unknown { .. }, _) => "`jobboard list` shows whether it was done",
        _ => return None,
    };
    Some(hint.into())
}

fn verb(trying: Option<&Trying>) -> &'static str {
    trying.map_or("", |trying| trying.verb)
}

/// Fills in the command that was tried, with what follows it, as in `consume --failed`.
fn by_force(verb: &str, text: &'static str) -> Hint {
    let words: Vec<_> = verb.split(' ').collect();
    Hint::new(text, [&words])
}
