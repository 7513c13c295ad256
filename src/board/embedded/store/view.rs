//! The parameters of one read: its moment, and how much of a posting it needs.

use super::clock::Moment;
use crate::board::wire::posting::Limit;

#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    pub(crate) now: Moment,
    pub(super) is_same_boot: bool,
    pub(crate) limit: Limit,
}

impl View {
    /// Returns a writer's view, whose deadlines are always on the clock of this boot.
    pub(crate) fn of_this_boot(now: Moment) -> Self {
        Self {
            now,
            is_same_boot: true,
            limit: Limit::USUAL,
        }
    }

    pub(crate) fn reading(self, limit: Limit) -> Self {
        Self { limit, ..self }
    }

    /// Returns the time on the boot clock, unless the stored times belong to another boot.
    pub(crate) fn boot_time(&self) -> Option<i64> {
        self.is_same_boot.then_some(self.now.boot)
    }

    /// Returns the column to compare with [`deadline`](Self::deadline).
    pub(crate) fn expires_column(&self) -> &'static str {
        if self.is_same_boot {
            "expires_boot"
        } else {
            "expires_wall"
        }
    }

    /// Returns the time, on the clock of that column, by which a claim has expired.
    pub(crate) fn deadline(&self) -> i64 {
        if self.is_same_boot {
            self.now.boot
        } else {
            self.now.wall / 1000
        }
    }
}
