//! The jobs with a name, for commands that got a name in place of a reference.

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use crate::{
    board::{self, Board, BoardError, Detail, Query},
    exit::CommandError,
    job::{Entry, Location},
    output::short,
    suggest::Hint,
};

const SAMPLE: usize = 5;

/// A verb, and where it looks for its jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scope {
    pub(crate) verb: &'static str,
    pub(crate) locations: &'static [Location],
    /// Whether the command also selects jobs by options such as --name.
    pub(crate) is_bulk: bool,
}

impl Scope {
    pub(crate) fn board(verb: &'static str) -> Self {
        Self::single(verb, &[Location::Board])
    }

    pub(crate) fn everywhere(verb: &'static str) -> Self {
        Self::single(verb, &[Location::Board, Location::Trash, Location::History])
    }

    fn single(verb: &'static str, locations: &'static [Location]) -> Self {
        Self {
            verb,
            locations,
            is_bulk: false,
        }
    }

    pub(super) fn command(self) -> &'static str {
        self.verb.split(' ').next().unwrap_or_default()
    }
}

pub(super) struct Namesakes<'a> {
    name: &'a str,
    pub(super) found: Vec<Entry>,
    pub(super) count: usize,
}

impl<'a> Namesakes<'a> {
    /// Finds the jobs with this name: the preferred ones, or else all; in the history, the last one.
    pub(super) async fn find(
        board: &dyn Board,
        locations: &[Location],
        name: &'a str,
        preferred: impl Fn(&Entry) -> bool,
    ) -> board::Result<Self> {
        let (mut all, mut best) = ((Vec::new(), 0), (Vec::new(), 0));
        for location in locations {
            let is_history = *location == Location::History;
            if is_history && all.1 + best.1 > 0 {
                break;
            }
            let most = if is_history { 1 } else { SAMPLE };
            let mut entries = board.entries(Query::all(*location, Detail::Brief));
            loop {
                let entry = match entries.try_next().await {
                    Ok(None) => break,
                    Ok(Some(entry)) if entry.job().is_some_and(|it| it.name == name) => entry,
                    Ok(Some(_)) => continue,
                    // Without the right to read the history, the other places still count.
                    Err(BoardError::Denied { .. } | BoardError::Unsupported(_)) if is_history => {
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let (found, count) = match preferred(&entry) {
                    true => &mut best,
                    false => &mut all,
                };
                *count += 1;
                if is_history {
                    found.retain(|it| ended_on(it) >= ended_on(&entry));
                }
                if found.len() < most {
                    found.push(entry);
                }
            }
        }
        let (mut found, mut count) = if best.1 > 0 { best } else { all };
        // A trashed run of a unique job has the same uuid as the job on the board.
        if count == found.len() {
            found.dedup_by(|trashed, it| trashed.reference() == it.reference());
            count = found.len();
        }
        Ok(Self { name, found, count })
    }

    pub(super) fn only(&self, verb: &str, board: &str) -> Result<String, CommandError> {
        let name = self.name.to_owned();
        match self.found.as_slice() {
            [] => Err(CommandError::NoSuchName {
                name,
                board: board.to_owned(),
            }),
            [entry] => Ok(entry.reference().into_owned()),
            [first, ..] => Err(CommandError::Namesakes {
                verb: match verb == "trash" && first.holding().is_none() {
                    true => "trash --force".to_owned(),
                    false => verb.to_owned(),
                },
                jobs: self.list(SAMPLE, |reference| reference),
                count: self.count,
                name,
                first: first.reference().into_owned(),
                is_in_trash: first.job().is_some_and(|it| it.location == Location::Trash),
            }),
        }
    }

    /// Names the jobs for a command that takes no name; never acts on them. `None` without such a job.
    pub(super) fn answer(&self, scope: Scope) -> Option<CommandError> {
        let (verb, name, count) = (scope.verb, self.name, self.count);
        let words: Vec<_> = verb.split(' ').collect();
        let first = self.found.first()?.reference();
        let (first, command) = (short(&first), words.first().unwrap_or(&""));
        // Other arguments may be secret, so the answer does not repeat them.
        let typed = std::env::args_os().skip_while(|it| it != command);
        let one = match typed.count() == words.len() + 1 {
            true => Hint::new("`jobboard {} {}`", [&words, &[first]]),
            false => Hint::new(
                "repeat the command with {} in place of {}",
                [&[first], &[name]],
            ),
        };
        Some(match count {
            1 => CommandError::usage(format!(
                "{command} requires a uuid; the job named {name} has the uuid {first}"
            ))
            .hint(one),
            _ => {
                let jobs = self.list(3, short);
                let hint = match scope.is_bulk {
                    true => Hint::new(
                        "use `jobboard {} {}` for one job, or `jobboard {} --name {}` for all",
                        [&words, &[first], &words, &[name]],
                    ),
                    false => one,
                };
                let message =
                    format!("{command} requires a uuid; {count} jobs are named {name}: {jobs}");
                CommandError::usage(message).hint(hint)
            }
        })
    }

    fn list(&self, most: usize, shown: fn(&str) -> &str) -> String {
        let named = |entry: &Entry| format!("{} ({})", shown(&entry.reference()), entry.state());
        let jobs: Vec<_> = self.found.iter().take(most).map(named).collect();
        match self.count - jobs.len() {
            0 => jobs.join(", "),
            more => format!("{} and {more} more", jobs.join(", ")),
        }
    }
}

fn ended_on(entry: &Entry) -> Option<DateTime<Utc>> {
    entry.job()?.ended.as_ref().map(|it| it.on)
}
