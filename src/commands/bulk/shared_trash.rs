//! Filters the trash that sibling boards share.

use super::select::{Chosen, Named};
use crate::{
    board::Board,
    context::Context,
    exit::CommandError,
    job::{Entry, Origin},
    suggest::Hint,
};

/// Whether to include jobs that other boards put into a shared trash.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct SharedArgs {
    /// Include jobs that other boards put into the shared trash
    ///
    /// On ZooKeeper, boards below the same node share one TaskFlow trash. Without this option, only this board's own
    /// jobs are included. Jobs that a Python service trashed have no recorded board: listings include them, but other
    /// commands act on them only if you name each one.
    #[arg(long)]
    pub(crate) shared: bool,
}

impl SharedArgs {
    pub(crate) fn admits(self, entry: &Entry) -> bool {
        self.shared || !matches!(entry.origin(), Origin::Beside(_))
    }

    /// Drops the jobs of other boards from a selection, with a note.
    ///
    /// A named job of another board is rejected. A named job without an origin is accepted.
    pub(crate) fn narrow(self, ctx: &Context, board: &dyn Board, chosen: &mut Chosen) {
        if self.shared {
            return;
        }
        if !chosen.is_bulk() {
            return refuse_others(board, chosen, "use --board {}, or --shared to act here");
        }
        let all = chosen.jobs.len();
        let is_here = |entry: &Entry| *entry.origin() == Origin::Here;
        let jobs = &mut chosen.jobs;
        jobs.retain(|named| named.entry.as_ref().is_ok_and(is_here));
        match all - chosen.jobs.len() {
            0 => {}
            others => ctx.out.note(format!(
                "skipped because they belong to another or an unknown board: {others} of {all} (name \
                    them, or use --shared)"
            )),
        }
    }
}

/// Rejects named jobs of other boards that share the trash; `{}` in the hint is the board.
pub(crate) fn refuse_others(board: &dyn Board, chosen: &mut Chosen, hint: &'static str) {
    for Named { entry, .. } in &mut chosen.jobs {
        if let Ok(Origin::Beside(other)) = entry.as_ref().map(Entry::origin) {
            *entry = Err(not_ours(board.url(), other, hint));
        }
    }
}

fn not_ours(here: &str, path: &str, hint: &'static str) -> anyhow::Error {
    let message =
        format!("the job belongs to the board {path}, which shares its trash with this one");
    let hint = Hint::new(hint, [&[&with_path(here, path)]]);
    CommandError::refused(message).hint(hint).into()
}

fn with_path(url: &str, path: &str) -> String {
    let host = url.find("://").map_or(0, |at| at + 3);
    let end = url[host..].find('/').map_or(url.len(), |at| host + at);
    let query = url.find('?').map_or("", |at| &url[at..]);
    format!("{}{path}{query}", &url[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_path_is_quoted_in_a_hint() {
        let error = not_ours("zk://h/a", "/b' $(touch c)x", "use --board {}");
        let Some(CommandError::Refused { hint, .. }) = error.downcast_ref() else {
            panic!("{error:?}");
        };
        let word = r#"use --board 'zk://h/b'"'"' $(touch c)x'"#;
        let hint = hint.as_ref().unwrap().to_string();
        assert!(hint.starts_with(word), "{hint}");
    }

    #[test]
    fn url_of_a_sibling_board_keeps_everything_but_the_path() {
        for (url, other) in [
            ("zk://h1,h2:2182/a/b", "zk://h1,h2:2182/a/c"),
            ("zk://me@h/a/b?chroot=/x", "zk://me@h/a/c?chroot=/x"),
        ] {
            assert_eq!(with_path(url, "/a/c"), other);
        }
    }
}
