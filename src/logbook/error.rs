//! Why a logbook cannot be read.

use std::time::Duration;

use thiserror::Error;

use crate::duration;

#[derive(Debug, Error)]
pub(crate) enum LogbookError {
    #[error("the database did not answer within {}", duration::exact(*.0))]
    Slow(Duration),
    #[error(
        "this program was built without the feature `{0}`: the packages have it, and so has what \
         `cargo install --path . --features {0}` makes"
    )]
    #[cfg_attr(all(feature = "mysql", feature = "postgres"), expect(dead_code))]
    LeftOut(&'static str),
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    #[error("the database denies it: {0}")]
    Denied(String),
    /// There are no such tables, or others than are known.
    #[error("the database has no logbooks of TaskFlow as they are known here: {0}")]
    Schema(String),
    #[error("the database refuses the question: {0}")]
    Refused(String),
    #[error("what the database says of {0} makes no sense")]
    Nonsense(&'static str),
}
