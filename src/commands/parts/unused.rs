//! A board on which nothing is found: it may never have been one.

use anyhow::Context as _;

use crate::{
    board::{Board, Health},
    context::Context,
    output::Format,
};

/// Says that a listing is empty, and why that may be.
pub(crate) async fn say_none(ctx: &Context, board: &dyn Board, what: &str) -> anyhow::Result<()> {
    if !say_if_unused(ctx, board).await? && ctx.out.format() == Format::Table {
        ctx.out.note(what);
    }
    Ok(())
}

/// Tells an empty board from one that never was, such as a misspelt one.
pub(crate) async fn say_if_unused(ctx: &Context, board: &dyn Board) -> anyhow::Result<bool> {
    let health = board
        .health()
        .await
        .with_context(|| ctx.trying("list", "the jobs"))?;
    note_if_unused(ctx, board, &health);
    Ok(!health.is_used)
}

pub(crate) fn note_if_unused(ctx: &Context, board: &dyn Board, health: &Health) {
    if !health.is_used {
        ctx.out
            .note(format!("no job was ever posted on {}", board.name()));
    }
}
