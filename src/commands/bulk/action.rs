//! The actions of the verbs as data, for commands and plans.

use serde::{Deserialize, Serialize};

use super::{act::Verb, references::Scope, select::Chosen};
use crate::{
    exit::verb,
    job::{AuditEntry, Edit, Location},
};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    Abandon { force: Force, now: bool },
    Consume { force: Force, failed: bool },
    Trash { force: Force, failed: bool },
    Restore,
    Retry { keep_attempts: bool },
    Change(Edit),
    Purge,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Force {
    None,
    /// An operator's decision about the job as seen.
    Any,
    /// An operator's decision about this owner's claim.
    Of(String),
}

impl Action {
    pub(crate) fn verb(&self) -> Verb {
        let (now, past) = match self {
            Self::Abandon { .. } => (verb::ABANDON, "abandoned"),
            // The suggestion repeats the option.
            Self::Consume { failed: true, .. } => ("consume --failed", "consumed"),
            Self::Consume { .. } => (verb::CONSUME, "consumed"),
            Self::Trash { failed: true, .. } => ("trash --failed", "trashed"),
            Self::Trash { .. } => (verb::TRASH, "trashed"),
            Self::Restore => ("restore", "restored"),
            Self::Retry { .. } => (verb::RETRY, AuditEntry::RETRIED),
            Self::Change(_) => (verb::CHANGE, "changed"),
            Self::Purge => (verb::PURGE, "purged"),
        };
        Verb { now, past }
    }

    pub(crate) fn locations(&self) -> &'static [Location] {
        match self {
            Self::Abandon { .. } | Self::Consume { .. } | Self::Trash { .. } => &[Location::Board],
            Self::Restore | Self::Purge => &[Location::Trash],
            Self::Retry { .. } | Self::Change(_) => &Location::LIVE,
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        let verb = match self {
            Self::Abandon { .. } if self.is_forced() => "abandon --force",
            Self::Consume { .. } if self.is_forced() => "consume --force",
            Self::Trash { .. } if self.is_forced() => "trash --force",
            _ => self.verb().now,
        };
        Scope {
            verb,
            locations: self.locations(),
            is_bulk: true,
        }
    }

    pub(super) fn force(&self) -> Option<&Force> {
        match self {
            Self::Abandon { force, .. }
            | Self::Consume { force, .. }
            | Self::Trash { force, .. } => Some(force),
            Self::Restore | Self::Retry { .. } | Self::Change(_) | Self::Purge => None,
        }
    }

    pub(super) fn is_failure(&self) -> bool {
        matches!(
            self,
            Self::Consume { failed: true, .. } | Self::Trash { failed: true, .. }
        )
    }

    pub(super) fn is_forced(&self) -> bool {
        self.force().is_some_and(|force| *force != Force::None)
    }

    /// Returns the question to ask first; `{}` in it is the number of jobs.
    pub(super) fn question(&self, chosen: &Chosen) -> Option<String> {
        let verb = self.verb().now;
        if self.is_forced() {
            return Some(format!("{verb} {{}} by force?"));
        }
        match self {
            Self::Purge => Some("purge {} permanently?".to_owned()),
            Self::Abandon { .. }
            | Self::Consume { .. }
            | Self::Trash { .. }
            | Self::Restore
            | Self::Retry { .. }
            | Self::Change(_) => chosen.is_bulk().then(|| format!("{verb} {{}}?")),
        }
    }
}
