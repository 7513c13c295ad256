//! Changing a board: each change is one transaction.

pub(super) mod claim;
pub(super) mod marker;
pub(super) mod numbered;
pub(super) mod post;
pub(super) mod settle;
pub(super) mod trash;
