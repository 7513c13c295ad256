//! Performing jobs under claims that are kept alive.
//!
//! Nothing here prints, parses arguments or reads the environment: what a command is to see, and
//! by what it is found, comes in from above, and what became of it goes back there.

pub(crate) mod clock;
pub(crate) mod front;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod here;
pub(crate) mod lease;
pub(crate) mod performance;
pub(crate) mod process;
pub(crate) mod signal;
pub(crate) mod terminal;
