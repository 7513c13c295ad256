//! What happens on a board: the journal, and what wakes those who read it.

pub(super) mod journal;
pub(super) mod signal;
pub(super) mod watch;
