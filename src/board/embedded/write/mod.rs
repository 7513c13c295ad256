//! Changing a board: each function is one step inside a transaction.

pub(super) mod change;
mod edit;
pub(super) mod load;
pub(super) mod settle;
