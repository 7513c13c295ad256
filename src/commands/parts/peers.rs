//! What is not known of a board whose jobs are not all ended by `jobboard`.

use crate::{board::Board, context::Context, output::Format};

/// What is to be known of the past of a board that has peers.
const UNSEEN: &str = "jobs that Python services end on this board are not in the history";

/// Says to whoever reads of the past what is not in it.
pub(crate) fn remark(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() && ctx.out.format() == Format::Table {
        ctx.out.remark(UNSEEN);
    }
}

/// Says to whoever did not find a job why that may be.
pub(crate) fn note(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() {
        ctx.out.note(UNSEEN);
    }
}
