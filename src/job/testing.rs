//! A job for tests that are about something else.

use super::{History, Job, JobKey, Origin, Priority, Shelf};

impl Job {
    /// Makes a job on a board that nobody has claimed, of which nothing more is known than its name.
    pub(crate) fn named(name: &str) -> Self {
        Self {
            key: JobKey::new("k"),
            uuid: "u".to_owned(),
            name: name.to_owned(),
            priority: Priority::Normal,
            sequence: None,
            created_on: None,
            last_modified: None,
            holding: None,
            is_blocked: false,
            origin: Origin::Here,
            is_unfit: false,
            is_denied: false,
            raw: Vec::new(),
            trashed_on: None,
            ended: None,
            shelf: Shelf::Board,
            book: None,
            details: None,
            history: History::default(),
            size: 0,
            problem: None,
        }
    }
}
