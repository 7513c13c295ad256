//! Reads the partial command line, and asks the board for completions within a short time limit.

use std::{
    collections::HashSet,
    sync::mpsc::{self, Sender},
    thread,
    time::{Duration, Instant},
};

use chrono::Utc;
use clap_complete::engine::CompletionCandidate;
use futures_util::TryStreamExt;

use crate::{
    board::{
        self, Board, Detail, JobRef, Order, Query, Which,
        open::{Bounds, open},
    },
    commands::retry,
    config::{Config, Environment, Flags},
    job::{Entry, Job, Location, Origin},
    output::{Text, short},
};

const COMPLETION_TIMEOUT: Duration = Duration::from_millis(300);

const MAX_OFFERS: usize = 50;

#[derive(Debug, Clone, Copy)]
pub(super) enum BoardValue {
    Job(JobRange),
    Name,
    Owner,
    Conductor,
    Pause,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct JobRange {
    locations: &'static [Location],
    which: Which,
    is_fit: fn(&Entry) -> bool,
}

impl JobRange {
    /// With --force some commands accept more jobs.
    pub(super) fn of(command: &str) -> Self {
        let claimed: fn(&Entry) -> bool = |entry| entry.holding().is_some();
        let (locations, which, is_fit): (&'static [Location], _, fn(&Entry) -> bool) = match command
        {
            "claim" => (&[Location::Board], Which::Unclaimed, |_| true),
            "change" => (&Location::LIVE, Which::Unclaimed, |_| true),
            "consume" | "trash" => (&[Location::Board], Which::All, |entry| {
                entry.holding().is_some() || typed_words().iter().any(|word| word == "--force")
            }),
            "abandon" | "extend" | "owner" => (&[Location::Board], Which::All, claimed),
            "restore" | "purge" => (&[Location::Trash], Which::All, |_| true),
            "retry" => (&Location::LIVE, Which::All, |entry| {
                retry::judge(entry, Utc::now(), false, false).is_ok()
            }),
            "show" | "explain" => (&Location::LIVE, Which::All, |_| true),
            _ => (&[Location::Board], Which::All, |_| true),
        };
        Self {
            locations,
            which,
            is_fit,
        }
    }
}

pub(super) fn ask(wanted: BoardValue, typed: &str) -> Vec<CompletionCandidate> {
    let end = Instant::now() + COMPLETION_TIMEOUT;
    let (sender, found) = mpsc::channel();
    let named = match wanted {
        // A job on the command line is not offered twice.
        BoardValue::Job(_) => typed_words().into_iter().rev().skip(1).collect(),
        _ => HashSet::new(),
    };
    let offer = Offer {
        typed: typed.to_owned(),
        seen: named,
        sender,
    };
    // A thread that blocks on a name or a file ends with this process.
    let _ = thread::Builder::new().spawn(move || look(wanted, offer));
    let rest = || end.saturating_duration_since(Instant::now());
    let found = std::iter::from_fn(|| found.recv_timeout(rest()).ok());
    let mut found: Vec<_> = found.collect();
    if !matches!(wanted, BoardValue::Job(_)) {
        found.sort();
    }
    let candidate = |(text, help): (String, String)| {
        let help = Some(help).filter(|help| !help.is_empty());
        CompletionCandidate::new(text).help(help.map(Into::into))
    };
    found.into_iter().map(candidate).collect()
}

fn look(wanted: BoardValue, mut offer: Offer) -> anyhow::Result<()> {
    let config = Config::load(typed_flags(), &Environment::of_process())?;
    let bounds = Bounds {
        max_details: config.max_details.value,
        history: config.history.value,
    };
    let url = &config.board.value.url;
    let board = open(url, COMPLETION_TIMEOUT, config.password_at_hand(), bounds)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let gathered =
            tokio::time::timeout(COMPLETION_TIMEOUT, gather(wanted, &*board, &mut offer)).await;
        board.close().await;
        Ok(gathered??)
    })
}

async fn gather(wanted: BoardValue, board: &dyn Board, offer: &mut Offer) -> board::Result<()> {
    let (jobs, order) = match wanted {
        BoardValue::Job(fitting) => (fitting, Order::Rank),
        BoardValue::Name | BoardValue::Owner => (JobRange::of(""), Order::Any),
        BoardValue::Conductor => {
            for conductor in board.conductors().await? {
                offer.add(&conductor.name, &format!("on {}", conductor.host));
            }
            return Ok(());
        }
        BoardValue::Pause => {
            for pause in board.pauses().await? {
                offer.add(&pause.names, &pause.to_string());
            }
            return Ok(());
        }
    };
    for &location in jobs.locations {
        let mut entries = board.entries(Query {
            location,
            which: jobs.which,
            order,
            detail: Detail::Brief,
        });
        while let Some(entry) = entries.try_next().await?
            && offer.seen.len() < MAX_OFFERS
        {
            let owner = entry.holding().and_then(|holding| holding.owner.as_ref());
            match (wanted, &entry, owner) {
                (BoardValue::Job(_), Entry::Job(job), _) if (jobs.is_fit)(&entry) => offer.job(job),
                (BoardValue::Name, ..) => offer.add(&entry.name(), ""),
                (BoardValue::Owner, _, Some(owner)) => offer.add(&owner.text(), ""),
                _ => {}
            }
        }
    }
    Ok(())
}

struct Offer {
    typed: String,
    seen: HashSet<String>,
    sender: Sender<(String, String)>,
}

impl Offer {
    fn job(&mut self, job: &Job) {
        self.typed.make_ascii_lowercase();
        let reference = job.reference();
        let uuid = match self.typed.len() < short(&reference).len() {
            true => short(&reference),
            false => &*reference,
        };
        let is_ours = !matches!(job.origin, Origin::Beside(_)) && uuid.parse::<JobRef>().is_ok();
        let owner = job
            .owner()
            .map_or_else(String::new, |it| format!(" by {it}"));
        if is_ours {
            self.add(uuid, &format!("{} {}{owner}", job.name, job.state()));
        }
    }

    fn add(&mut self, text: &str, help: &str) {
        let begins = text.starts_with(&self.typed);
        if begins && is_harmless(text) && self.seen.insert(text.to_owned()) {
            // The receiver may have timed out.
            let _ = self
                .sender
                .send((text.to_owned(), Text::from(help).to_string()));
        }
    }
}

/// Whether the text, written by other users, is safe in a shell, also between quotes.
pub(super) fn is_harmless(text: &str) -> bool {
    let is_plain = |it: char| it.is_alphanumeric() || "_@%+=:,./-*?[]".contains(it);
    !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain)
}

/// Returns the partial command line that the shell passes.
pub(super) fn typed_words() -> Vec<String> {
    let words = std::env::args_os().skip(2);
    words.map(|word| plain(&word.to_string_lossy())).collect()
}

pub(super) fn typed_flags() -> Flags {
    let words = typed_words();
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

/// Removes quotes as the shell would; the last one may still be open.
fn plain(word: &str) -> String {
    let (mut text, mut open, mut characters) = (String::new(), None, word.chars());
    while let Some(character) = characters.next() {
        match (character, open) {
            ('\'' | '"', None) => open = Some(character),
            (quote, Some(begin)) if quote == begin => open = None,
            ('\\', None | Some('"')) => text.extend(characters.next()),
            (character, _) => text.push(character),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn quotes_are_removed_from_a_word() {
        for (typed, expected) in [
            ("state=UN", "state=UN"),
            ("'state=UN", "state=UN"),
            (r"age\>", "age>"),
            (
                r#"'name="big one" and '"s\"t""#,
                r#"name="big one" and s"t"#,
            ),
            (r"it'\'s", r"it\s"),
        ] {
            assert_eq!(plain(typed), expected, "{typed}");
        }
    }
}
