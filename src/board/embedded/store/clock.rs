//! One moment on two clocks, and the boot that it belongs to.
//!
//! Claims expire by the boot clock, which users cannot set and all processes share. It restarts with the machine, so
//! each deadline is also stored by the wall clock.

use std::{fs, time::Duration};

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, clock_gettime};

#[derive(Debug, Clone, Copy)]
pub(crate) struct BoardClock {
    /// In milliseconds.
    pub(crate) boot: i64,
    /// In microseconds.
    pub(crate) wall: i64,
}

impl BoardClock {
    pub(crate) fn now() -> Self {
        let boot = clock_gettime(ClockId::Boottime);
        Self {
            boot: boot.tv_sec * 1000 + boot.tv_nsec / 1_000_000,
            wall: Utc::now().timestamp_micros(),
        }
    }

    pub(crate) fn time(self) -> DateTime<Utc> {
        from_micros(self.wall)
    }

    pub(crate) fn wall_millis(self) -> i64 {
        self.wall / 1000
    }

    /// Returns this deadline on the boot clock and on the wall clock.
    pub(crate) fn after(self, term: Duration) -> (i64, i64) {
        let ahead = i64::try_from(term.as_millis()).unwrap_or(i64::MAX / 4);
        (
            self.boot.saturating_add(ahead),
            self.wall_millis().saturating_add(ahead),
        )
    }
}

/// Reads a stored time; one outside the calendar becomes the epoch.
pub(crate) fn from_micros(micros: i64) -> DateTime<Utc> {
    DateTime::from_timestamp_micros(micros).unwrap_or_default()
}

pub(crate) fn boot_id() -> String {
    // If the kernel does not report a boot, deadlines count as those of one long boot.
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.map_or("unknown".to_owned(), |id| id.trim().to_owned())
}
