//! Notes on boards without records, whose name may be wrong, and on boards that Python services share.

use anyhow::Context as _;

use crate::{
    board::{Board, Health},
    context::Context,
    diagnosis::is_silent,
    output::Format,
    suggest::Suggestion,
};

const UNSEEN: &str = "jobs that Python services end on this board are not in the history";

pub(crate) async fn note_empty(
    ctx: &Context,
    board: &dyn Board,
    what: &str,
    skips_trash: bool,
) -> anyhow::Result<()> {
    let health = look(ctx, board).await?;
    if health.is_used && ctx.out.format() == Format::Table {
        ctx.out.note(match health.trashed {
            trashed if skips_trash && trashed > 0 => {
                let trash = Suggestion::of("list --trash").on(&ctx.program());
                format!("{what}; {trashed} in the trash: `{trash}`")
            }
            _ => what.to_owned(),
        });
    }
    Ok(())
}

/// Notes a board on which no job was ever posted: its name may be misspelt.
pub(crate) async fn look(ctx: &Context, board: &dyn Board) -> anyhow::Result<Health> {
    let trying = || ctx.trying("list", "the jobs");
    let health = board.health().await.with_context(trying)?;
    note_if_unused(ctx, board, &health);
    Ok(health)
}

pub(crate) fn note_if_unused(ctx: &Context, board: &dyn Board, health: &Health) {
    if !health.is_used {
        let unused = unused(board, board.url());
        ctx.out.note(match board.capabilities().has_peers() {
            true => {
                let config = Suggestion::of("config").on(&ctx.program());
                format!("{unused}; check the board's address: `{config}`")
            }
            false => unused,
        });
    }
}

/// The note about a board without a trace of any job. A server may have lost them all.
pub(crate) fn unused(board: &dyn Board, name: &str) -> String {
    let loss = match board.capabilities().has_peers() {
        true => ", or the server lost all jobs",
        false => "",
    };
    format!("no job was ever posted on {name}{loss}")
}

/// Notes that no conductor runs the unclaimed jobs that a command waits for.
pub(crate) async fn note_without_conductor(ctx: &Context, board: &dyn Board, names: &[&str]) {
    let wait = match names {
        [] => return,
        [name] => format!("{name} waits until a worker claims it"),
        _ => "the jobs wait until a worker claims them".to_owned(),
    };
    let conductors = board.conductors().await;
    if conductors.is_ok_and(|all| all.iter().all(is_silent)) {
        ctx.out.note(format!("no conductor is running; {wait}"));
    }
}

pub(crate) fn note_peers_at_terminal(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() && ctx.out.format() == Format::Table {
        ctx.out.note_at_terminal(UNSEEN);
    }
}

pub(crate) fn note_peers(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() {
        ctx.out.note(UNSEEN);
    }
}

pub(crate) fn no_history(why: &str) -> String {
    format!("warning: the history is not recorded: {why}")
}
