//! Notes on boards where Python services also end jobs.

use crate::{board::Board, context::Context, output::Format};

const UNSEEN: &str = "jobs that Python services end on this board are not in the history";

/// Notes which ended jobs the history lacks.
pub(crate) fn remark(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() && ctx.out.format() == Format::Table {
        ctx.out.remark(UNSEEN);
    }
}

/// Notes why a job may not be found.
pub(crate) fn note(ctx: &Context, board: &dyn Board) {
    if board.capabilities().has_peers() {
        ctx.out.note(UNSEEN);
    }
}
