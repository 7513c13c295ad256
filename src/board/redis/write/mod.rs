//! Changing a board: posts, and the scripts in which every other change is one step.

pub(super) mod change;
pub(super) mod load;
pub(super) mod post;
pub(super) mod scripts;
