//! A progress bar on a terminal's stderr. Only this module uses indicatif.

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Faster work shows no bar.
const BAR_DELAY: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
}

impl Progress {
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
        if self.is_wanted && self.bar.is_hidden() && self.start.elapsed() > BAR_DELAY {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    pub(crate) fn suspend<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
