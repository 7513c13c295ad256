//! What a board test needs beyond a board: scratch boards beside it, and ways to cause failures.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDateTime, Utc};
use uuid::Uuid;

use super::{Board, Result, error::Unsupported};

/// The beginning of the names of scratch boards.
pub(super) const SCRATCH_PREFIX: &str = "selftest-";

/// The time in a scratch name, to the second and without characters that a URL escapes.
const TIME: &str = "%Y%m%dT%H%M%SZ";

pub(crate) fn new_name(now: DateTime<Utc>) -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("{SCRATCH_PREFIX}{}-{}", now.format(TIME), &random[..8])
}

pub(crate) fn made_on(name: &str) -> Option<DateTime<Utc>> {
    let (time, random) = name.strip_prefix(SCRATCH_PREFIX)?.rsplit_once('-')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    let time = NaiveDateTime::parse_from_str(time, TIME).ok()?;
    is_random.then(|| time.and_utc())
}

pub(super) fn require_scratch(name: &str) -> Result<()> {
    match made_on(name) {
        Some(_) => Ok(()),
        None => Err(Unsupported::Removal.into()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

#[async_trait]
pub(crate) trait Testable: Board {
    /// Creates this board empty, and marks it as scratch.
    ///
    /// Everything else created for it is marked and deleted with it.
    async fn make_scratch(&self) -> Result<()>;

    /// Returns the names of the scratch boards beside this one.
    async fn scratches(&self) -> Result<Vec<String>>;

    /// Deletes this scratch board, which its users have closed.
    async fn erase(&self) -> Result<()>;

    /// Breaks the connection as a network failure does: pending requests get no reply.
    ///
    /// The next exchange reconnects.
    async fn cut(&self) -> Result<()>;

    /// Whether a cut takes longer than a request, as for a session that moves to another connection.
    fn is_cut_slow(&self) -> bool {
        false
    }

    /// Returns which acknowledged changes a failure could lose with this setup, if any.
    async fn loss(&self) -> Result<Option<Loss>>;

    /// Returns the server's time; `None` if the board uses this machine's clock.
    async fn clock(&self) -> Result<Option<DateTime<Utc>>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_name_contains_its_creation_time() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        assert_eq!(made_on(&new_name(now)), Some(now));
        for name in [
            "",
            "jobs",
            "selftest-",
            "selftest-20270115T080000Z",
            "selftest-20270115T080000Z-",
            "selftest-20270115T080000Z-1a2b3c4",
            "selftest-20270115T080000Z-1a2b3c4x",
            "selftest-2027-1a2b3c4d",
            "x-selftest-20270115T080000Z-1a2b3c4d",
        ] {
            assert_eq!(made_on(name), None, "{name}");
            assert!(require_scratch(name).is_err());
        }
    }
}
