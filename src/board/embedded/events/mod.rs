//! Board events: the journal, and the signal that wakes its readers.

pub(super) mod journal;
pub(super) mod watch;
