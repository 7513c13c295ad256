//! How far long work has come, on a terminal's stderr; the only place that knows indicatif.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Work that is done sooner than this shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);

/// A count of what is done, shown once it has taken a while.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
}

impl Progress {
    /// Starts to count; with a total it becomes a bar, without one a number.
    pub(super) fn new(
        what: impl Into<Cow<'static, str>>,
        total: Option<u64>,
        is_wanted: bool,
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
        }
    }

    pub(crate) fn add(&self, done: u64) {
        self.bar.inc(done);
        if self.is_wanted && self.bar.is_hidden() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
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
