//! The clock of leases: it continues while the machine sleeps, and no user can set it.

use std::{
    ops::{Add, Sub},
    os::fd::OwnedFd,
    time::Duration,
};

use chrono::{DateTime, Utc};
use rustix::{
    io,
    time::{
        ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
        clock_gettime, timerfd_create, timerfd_settime,
    },
};
use tokio::time;

#[cfg(test)]
use super::simulation;
use crate::watched_fd::WatchedFd;

/// On CLOCK_BOOTTIME, which all processes of a machine share. Unlike tokio's clock it continues during a suspension,
/// when leases expire too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Boottime(Duration);

impl Boottime {
    pub(crate) fn now() -> Self {
        #[cfg(test)]
        if let Some(now) = simulation::uptime() {
            return Self(now);
        }
        // This clock starts at zero, so it is in the range of a duration.
        let now = Duration::try_from(clock_gettime(ClockId::Boottime));
        Self(now.unwrap_or_default())
    }

    pub(crate) fn since(self, other: Self) -> Duration {
        self.0.saturating_sub(other.0)
    }

    pub(crate) fn from_nanos(nanos: u64) -> Self {
        Self(Duration::from_nanos(nanos))
    }

    pub(crate) fn as_nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    pub(crate) fn remaining(self) -> Duration {
        self.0.saturating_sub(Self::now().0)
    }

    pub(crate) fn is_past(self) -> bool {
        self <= Self::now()
    }
}

impl Add<Duration> for Boottime {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration))
    }
}

impl Sub<Duration> for Boottime {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration))
    }
}

#[derive(Debug)]
pub(crate) struct Timer(pub(super) OwnedFd);

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self(timerfd_create(TimerfdClockId::Boottime, flags)?))
    }

    /// Sets the time. A past one makes it readable immediately, `None` never.
    pub(crate) fn set(&self, when: Option<Boottime>) -> io::Result<()> {
        // A value of zero means never to the kernel.
        let nanos = when.map_or(0, |when| when.as_nanos().max(1));
        let value = Timespec {
            tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(nanos % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once)?;
        Ok(())
    }
}

/// Counts a suspension of the machine too.
pub(crate) async fn sleep_until(when: Boottime) {
    #[cfg(test)]
    if simulation::uptime().is_some() {
        return time::sleep(when.remaining()).await;
    }
    if let Ok(timer) = armed(when) {
        timer.wait().await;
    }
    // Without a spare descriptor, short naps come close.
    while !when.is_past() {
        time::sleep(when.remaining().min(Duration::from_millis(200))).await;
    }
}

/// Returns the system time, which users can change.
pub(crate) fn wall() -> DateTime<Utc> {
    #[cfg(test)]
    if let Some(now) = simulation::wall() {
        return now;
    }
    Utc::now()
}

fn armed(when: Boottime) -> std::io::Result<WatchedFd> {
    let timer = Timer::new()?;
    timer.set(Some(when))?;
    WatchedFd::new(timer.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sleep_ends_at_its_moment_and_not_before() {
        let asked = Boottime::now();
        let until = asked + Duration::from_millis(30);
        sleep_until(until).await;
        assert!(until.is_past());
    }

    #[tokio::test]
    async fn elapsed_moment_is_not_waited_for() {
        time::timeout(Duration::from_secs(5), sleep_until(Boottime::from_nanos(0)))
            .await
            .unwrap();
    }

    #[test]
    fn moment_round_trips() {
        let now = Boottime::now();
        assert_eq!(Boottime::from_nanos(now.as_nanos()), now);
    }
}
