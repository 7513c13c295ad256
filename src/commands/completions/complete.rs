//! Completing references to jobs while they are typed, from what is on the board.
//!
//! A shell asks at every press of a key: whatever goes wrong is silence, and soon.

use std::{ffi::OsStr, time::Duration};

use clap::CommandFactory;
use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate},
};
use futures_util::TryStreamExt;

use crate::{
    board::{
        self, Board, Detail, JobRef, Order, Query, Which,
        open::{Bounds, open},
    },
    commands::Cli,
    config::{Config, Environment, Flags},
    job::{Entry, Job, Origin, Shelf},
    output::{Text, short},
};

/// How long a shell is kept waiting.
const PATIENCE: Duration = Duration::from_millis(300);

/// How many jobs are offered.
const MOST: usize = 50;

/// Answers a shell that asks for completions; returns whether it was one that called.
pub(crate) fn answer_shell() -> bool {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(Cli::command)
        .try_complete(std::env::args_os(), here.as_deref())
        .unwrap_or_default()
}

/// Completes references to jobs on the board.
pub(crate) fn jobs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| on_shelf(Shelf::Board, typed))
}

/// Completes references to jobs in the trash.
pub(crate) fn trashed_jobs() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| on_shelf(Shelf::Trash, typed))
}

/// Completes references to jobs on the board or in the trash.
pub(crate) fn jobs_or_trashed() -> ArgValueCompleter {
    ArgValueCompleter::new(|typed: &OsStr| {
        let mut all = on_shelf(Shelf::Board, typed);
        all.extend(on_shelf(Shelf::Trash, typed));
        all
    })
}

fn on_shelf(shelf: Shelf, typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else {
        return Vec::new();
    };
    look(shelf, &typed.to_ascii_lowercase()).unwrap_or_default()
}

fn look(shelf: Shelf, typed: &str) -> anyhow::Result<Vec<CompletionCandidate>> {
    let config = Config::load(flags(std::env::args()), &Environment::of_process())?;
    // Nobody is asked for a password at the press of a key.
    let board = open(
        &config.board.value.url,
        PATIENCE,
        None,
        Bounds {
            max_details: config.max_details.value,
            history: config.history.value,
        },
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let found = runtime.block_on(async {
        let found = tokio::time::timeout(PATIENCE, matching(&*board, shelf, typed)).await;
        board.close().await;
        found
    });
    Ok(found??)
}

/// Returns which board the words typed so far are about.
fn flags(words: impl Iterator<Item = String>) -> Flags {
    let words: Vec<_> = words.skip_while(|word| word != "--").collect();
    let value = |name: &str| {
        words.iter().enumerate().find_map(|(at, word)| {
            let assigned = word.strip_prefix(name)?;
            match assigned.strip_prefix('=') {
                Some(value) => Some(value.to_owned()),
                None if assigned.is_empty() => words.get(at + 1).cloned(),
                None => None,
            }
        })
    };
    Flags {
        board: value("--board"),
        config: value("--config").map(Into::into),
        ..Flags::default()
    }
}

async fn matching(
    board: &dyn Board,
    shelf: Shelf,
    typed: &str,
) -> board::Result<Vec<CompletionCandidate>> {
    let mut entries = board.entries(Query {
        shelf,
        which: Which::All,
        order: Order::Rank,
        detail: Detail::Brief,
    });
    let mut candidates = Vec::new();
    while candidates.len() < MOST
        && let Some(entry) = entries.try_next().await?
    {
        if let Entry::Job(job) = entry
            && !matches!(job.origin, Origin::Beside(_))
            && job.uuid.starts_with(typed)
            // The shell takes what it is offered as it is.
            && job.uuid.parse::<JobRef>().is_ok()
        {
            candidates.push(candidate(&job, typed));
        }
    }
    Ok(candidates)
}

fn candidate(job: &Job, typed: &str) -> CompletionCandidate {
    let uuid = match typed.len() < short(&job.uuid).len() {
        true => short(&job.uuid),
        false => &job.uuid,
    };
    let about = Text::from(format!("{} {}", job.name, job.state()));
    CompletionCandidate::new(uuid).help(Some(about.to_string().into()))
}
