//! What a test of a board takes beyond what boards do: scratch boards beside it, and ways to hurt.

use async_trait::async_trait;
use chrono::{DateTime, NaiveDateTime, Utc};
use uuid::Uuid;

use super::{Board, BoardError, Result};

/// Begins the names of boards that are to be thrown away.
pub(super) const MARK: &str = "selftest-";

/// The time in such a name, to the second and without anything that a URL would escape.
const TIME: &str = "%Y%m%dT%H%M%SZ";

/// Names a board that is to be thrown away: when it was made, and what tells it from others.
pub(crate) fn new_name(now: DateTime<Utc>) -> String {
    let random = Uuid::new_v4().simple().to_string();
    format!("{MARK}{}-{}", now.format(TIME), &random[..8])
}

/// Returns when a board of this name was made; none, if it is not one to be thrown away.
pub(crate) fn made_on(name: &str) -> Option<DateTime<Utc>> {
    let (time, random) = name.strip_prefix(MARK)?.rsplit_once('-')?;
    let is_random = random.len() == 8 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    let time = NaiveDateTime::parse_from_str(time, TIME).ok()?;
    is_random.then(|| time.and_utc())
}

/// Refuses to remove a board that somebody may want to keep.
pub(super) fn require_scratch(name: &str) -> Result<()> {
    match made_on(name) {
        Some(_) => Ok(()),
        None => Err(BoardError::Unsupported {
            board: "a board that is not a scratch board",
            operation: "be removed",
            hint: None,
        }),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
}

#[async_trait]
pub(crate) trait Testable: Board {
    /// Makes this board, with nothing on it, and marks it as one that is to be thrown away.
    ///
    /// What has to be made for it besides is marked as well, and goes with it.
    async fn make_scratch(&self) -> Result<()>;

    /// Returns the names of the boards beside this one that are so marked.
    async fn scratches(&self) -> Result<Vec<String>>;

    /// Removes this board with all it has, if it is called as one to be thrown away; whoever used it has
    /// closed it.
    async fn erase(&self) -> Result<()>;

    /// Breaks the connection off as a network would: what is under way has no answer.
    ///
    /// The next exchange connects anew.
    async fn cut(&self) -> Result<()>;

    /// Returns what of that which was acknowledged a failure could lose, as it is set up; none, if nothing.
    async fn loss(&self) -> Result<Option<Loss>>;

    /// Returns the time of whatever serves the board; none, where that is ours.
    async fn clock(&self) -> Result<Option<DateTime<Utc>>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_when_it_was_made_and_no_other_name_does() {
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
