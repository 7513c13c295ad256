//! A progress bar on a terminal's stderr. Only this module uses indicatif.

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
    io,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::process::signal;

/// Faster work shows no bar.
const PATIENCE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
    /// Whether the terminal shows its own progress sign, too.
    has_sign: bool,
    sign: OnceCell<Option<Sign>>,
}

impl Progress {
    pub(super) fn new(
        what: impl Into<Cow<'static, str>>,
        total: Option<u64>,
        (is_wanted, has_sign): (bool, bool),
    ) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = match total {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} ({per_sec}, {eta})",
            None => "{spinner} {msg} {human_pos} ({per_sec})",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        Self {
            bar,
            start: Instant::now(),
            is_wanted,
            has_sign,
            sign: OnceCell::new(),
        }
    }

    pub(crate) fn add(&self, done: u64) {
        self.bar.inc(done);
        if !self.is_wanted || self.start.elapsed() <= PATIENCE {
            return;
        }
        if self.bar.is_hidden() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        if self.has_sign
            && let Some(sign) = self.sign.get_or_init(Sign::raise)
        {
            sign.show(self.bar.position(), self.bar.length());
        }
    }

    /// Lets other text be written to the terminal without tearing the bar.
    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The terminal's own progress sign, in its tab or the task bar, until it is cleared (OSC 9;4).
#[derive(Debug)]
struct Sign(Cell<Option<(u8, u64)>>);

impl Sign {
    const REMOVED: (u8, u64) = (0, 0);
    const UNCERTAIN: (u8, u64) = (3, 0);

    /// Returns a sign that is cleared when this process ends, or `None` where that is impossible.
    fn raise() -> Option<Self> {
        let raised = signal::before_the_end(|| tell(Self::REMOVED));
        raised.ok().map(|()| Self(Cell::new(None)))
    }

    fn show(&self, done: u64, total: Option<u64>) {
        let shown = match total {
            Some(total) => (1, (done.saturating_mul(100) / total.max(1)).min(100)),
            None => Self::UNCERTAIN,
        };
        if self.0.replace(Some(shown)) != Some(shown) {
            tell(shown);
        }
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        tell(Self::REMOVED);
    }
}

/// Sends the state to the terminal, without blocking on a stopped one.
fn tell((state, percent): (u8, u64)) {
    let soon = Timespec {
        tv_sec: 0,
        tv_nsec: 200_000_000,
    };
    let stderr = io::stderr();
    let mut terminal = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut terminal, Some(&soon)).is_ok_and(|ready| ready > 0) {
        let sequence = format!("\x1b]9;4;{state};{percent}\x1b\\");
        // A lost update does no harm.
        let _ = rustix::io::write(&stderr, sequence.as_bytes());
    }
}
