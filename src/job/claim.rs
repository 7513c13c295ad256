//! Claims: owners, fencing tokens and leases.

use std::{
    borrow::Cow,
    fmt,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::{Job, JobKey, attempts::boundary, shortened};

/// The prefix of the owner name that a move uses on both boards.
pub(crate) const MOVER: &str = "move:";

/// The name of a claim's holder.
///
/// Bytes, because peers compare names by bytes and may have written invalid text.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Owner(Vec<u8>);

/// In bytes. Usual names have at most a host twice, and a uuid.
pub(crate) const MAX_BRIEF: usize = 192;

/// The length of each end of a longer text in its brief form.
const BRIEF_END: usize = 80;

/// Cuts a long text in the middle, where a hash of the whole replaces the rest.
pub(crate) fn brief(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_BRIEF {
        return Cow::Borrowed(text);
    }
    let head = boundary(text, BRIEF_END);
    let tail = boundary(text, text.len() - BRIEF_END);
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let hash = hasher.finish();
    Cow::Owned(format!("{}…{hash:016x}…{}", &text[..head], &text[tail..]))
}

#[derive(Debug, Error)]
pub(crate) enum InvalidOwner {
    #[error("an owner name must not be empty or blank")]
    Empty,
    #[error("an owner name must not contain control characters")]
    Control,
    #[error("an owner name must not be longer than {} bytes", Owner::MAX_BYTES)]
    TooLong,
}

impl Owner {
    /// In bytes. A longer name on a board is unreadable.
    pub(crate) const MAX_BYTES: usize = 4096;

    pub(crate) fn new(name: &str) -> Result<Self, InvalidOwner> {
        if name.trim().is_empty() {
            return Err(InvalidOwner::Empty);
        }
        if name.chars().any(char::is_control) {
            return Err(InvalidOwner::Control);
        }
        if name.len() > Self::MAX_BYTES {
            return Err(InvalidOwner::TooLong);
        }
        Ok(Self(name.as_bytes().to_vec()))
    }

    pub(crate) fn from_stored(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Shortens a long name for groups and caches, which may hold hundreds of thousands. It keeps both ends, and a hash
    /// keeps it distinct.
    pub(crate) fn brief(&self) -> Cow<'_, Self> {
        match self.0.len() > MAX_BRIEF {
            true => Cow::Owned(Self(brief(&self.text()).into_owned().into_bytes())),
            false => Cow::Borrowed(self),
        }
    }

    pub(crate) fn into_brief(self) -> Self {
        match self.brief() {
            Cow::Owned(brief) => brief,
            Cow::Borrowed(_) => self,
        }
    }

    /// Whether both are the same name, or one is the brief form of the other.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.brief() == other.brief()
    }

    /// Whether a move to another board claims under this name.
    pub(crate) fn is_of_move(&self) -> bool {
        self.0.starts_with(MOVER.as_bytes())
    }

    /// Returns the name as text, with replacement characters for invalid bytes.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({:?})", self.text())
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shortened(&self.text()))
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&shortened(&self.text()))
    }
}

/// Numbers the claims of a board: decimal text, greater with every claim.
///
/// Together with the owner it identifies a claim: a job lost and won again by the same name has a new fence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Fence(pub(crate) String);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClaimEnd {
    #[serde(rename = "none")]
    Never,
    Timed,
    /// The end of its owner's session.
    Session,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Holding {
    /// `None` if the owner on the board is unreadable.
    pub(crate) owner: Option<Owner>,
    pub(crate) end: ClaimEnd,
    pub(crate) expires_in: Option<Duration>,
    /// How long it lasts after its owner's last sign of life, where that is more precise than `expires_in`.
    pub(crate) outlives: Option<Duration>,
    pub(crate) claimed_on: Option<DateTime<Utc>>,
    pub(crate) fence: Option<Fence>,
}

impl Holding {
    pub(crate) fn new(owner: Option<Owner>, end: ClaimEnd, fence: Option<Fence>) -> Self {
        Self {
            owner,
            end,
            expires_in: None,
            outlives: None,
            claimed_on: None,
            fence,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    Indefinite,
    For(Duration),
    /// Renewed by us: for this long each time, or while our session lives.
    Lease(Duration),
}

impl Term {
    pub(crate) fn duration(self) -> Option<Duration> {
        match self {
            Self::Indefinite => None,
            Self::For(term) | Self::Lease(term) => Some(term),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claimant {
    pub(crate) owner: Owner,
    pub(crate) term: Term,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) key: JobKey,
    pub(crate) owner: Owner,
    /// `None` addresses a claim by its owner's name alone, as for claims by hand.
    pub(crate) fence: Option<Fence>,
    pub(crate) term: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Claimed {
    pub(crate) job: Job,
    pub(crate) fence: Fence,
    /// Whether the sidecar knew no earlier claim.
    pub(crate) is_first: bool,
}

impl Claimed {
    /// Identifies the claim, for its renewal by this term.
    pub(crate) fn claim(&self, owner: &Owner, term: Duration) -> Claim {
        Claim {
            key: self.job.key.clone(),
            owner: owner.clone(),
            fence: Some(self.fence.clone()),
            term,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brief_owner_keeps_its_ends_and_stays_distinct() {
        let long = |middle: &str| {
            let name = format!(
                "ada@h:{}{middle}{}:h:42:c0ffee01",
                "ü".repeat(99),
                "é".repeat(99)
            );
            Owner::from_stored(name)
        };
        let (one, other) = (long("1"), long("2"));
        let brief = one.brief().into_owned();
        assert!(brief.as_bytes().len() <= MAX_BRIEF, "{brief}");
        assert!(brief.text().starts_with("ada@h:ü"), "{brief}");
        assert!(brief.text().ends_with("é:h:42:c0ffee01"), "{brief}");
        assert_eq!(*brief.brief(), brief);
        assert!(brief.is(&one) && !brief.is(&other));
        assert_eq!(
            *Owner::from_stored("ada").brief(),
            Owner::from_stored("ada")
        );
        assert!(!Owner::from_stored(vec![0xff; 500]).is(&Owner::from_stored(vec![0xff; 501])));
    }
}
