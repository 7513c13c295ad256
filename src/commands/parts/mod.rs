//! Parts that commands share: drafts, Octavia resources, notes, problems, metrics, limited waits, and commands under a claim.

pub(super) mod draft;
pub(super) mod logbook;
pub(super) mod notes;
pub(super) mod octavia;
pub(super) mod problems;
pub(super) mod reason;
pub(super) mod scrape;
pub(super) mod unconfirmed;
pub(super) mod under_claim;
pub(super) mod waiting;
pub(super) mod words;
