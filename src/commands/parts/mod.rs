//! What several commands share: choosing jobs, batches, dry runs, drafts, running under a claim.

pub(super) mod done;
pub(super) mod draft;
pub(super) mod dry_run;
pub(super) mod dump_format;
pub(super) mod early_format;
pub(super) mod failures;
pub(super) mod forgotten;
pub(super) mod json;
pub(super) mod line_reader;
pub(super) mod liveness;
pub(super) mod loader;
pub(super) mod misuse;
pub(super) mod peers;
pub(super) mod reason;
pub(super) mod scrape;
pub(super) mod select;
pub(super) mod settle;
pub(super) mod shared_trash;
pub(super) mod signature;
pub(super) mod tally;
pub(super) mod target;
pub(super) mod unconfirmed;
pub(super) mod under_claim;
pub(super) mod unused;
pub(super) mod verb;
pub(super) mod words;
