//! Errors of reading logbooks.

use std::time::Duration;

use thiserror::Error;

use crate::duration;

#[derive(Debug, Error)]
pub(crate) enum LogbookError {
    #[error("the database did not reply within {}", duration::exact(*.0))]
    Slow(Duration),
    #[error(
        "this build of jobboard lacks the feature `{0}`; install a package, or build with `cargo \
         install --path . --features {0}`"
    )]
    #[cfg_attr(all(feature = "mysql", feature = "postgres"), expect(dead_code))]
    LeftOut(&'static str),
    #[error("the database is unreachable: {0}")]
    Unreachable(String),
    #[error("the database denies access: {0}")]
    Denied(String),
    #[error("the database has no TaskFlow logbooks of a supported version: {0}")]
    Schema(String),
    #[error("the database rejects the query: {0}")]
    Refused(String),
    #[error("the database returned invalid data for {0}")]
    Nonsense(&'static str),
}
