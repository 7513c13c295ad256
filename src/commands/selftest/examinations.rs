//! Tests that only read: the setup of the board, and the clocks.

use chrono::{TimeDelta, Utc};
use tokio::time::{self, Instant};

use super::{
    promise::{Assessment, Grade, Promise},
    report::Findings,
};
use crate::{
    board::{
        BoardError,
        examine::{Access, Examined, Part},
        scratch::Testable,
    },
    exit::chain,
    problem::{Code, Fix, Severity},
};

/// The tolerated clock drift, as a fraction.
const DRIFT: f64 = 0.005;

const APART: f64 = 1.0;

pub(super) async fn settings(board: &dyn Testable, end: Instant, findings: &mut Findings) {
    for (part, promise, sound) in [
        (
            Part::Server,
            Promise::Durable,
            "the server settings keep acknowledged data",
        ),
        (
            Part::Connection(Access::Change),
            Promise::Rights,
            "the user has all permissions that a board needs",
        ),
    ] {
        match time::timeout_at(end, board.examine(part)).await {
            Ok(Ok(seen)) => grade(seen, promise, sound, findings),
            Ok(Err(error)) => findings.grade(promise, Assessment::untried(chain(&error))),
            Err(_) => findings.grade(promise, Assessment::untried("out of time")),
        }
    }
    // A missing right is reported above.
    if let Ok(Ok(Some(loss))) = time::timeout_at(end, board.loss()).await {
        findings.grade(Promise::Durable, Assessment::weak(loss.what, loss.remedy));
    }
}

/// Grades the findings: errors break the promise, lesser ones weaken it.
fn grade(seen: Examined, promise: Promise, sound: &str, findings: &mut Findings) {
    for problem in seen.problems {
        let grade = match (problem.severity, problem.code) {
            // The test that needs the right or the memory grades these.
            (_, Code::MissingRights | Code::MemoryFull)
            | (Severity::Warning | Severity::Note | Severity::Ok, _) => Grade::Weak,
            (Severity::Error, _) => Grade::Broken,
        };
        let command = problem.fix.and_then(Fix::into_elsewhere);
        let why = format!("{}: {}", problem.summary, problem.impact);
        let seen = Assessment::new(grade, why);
        findings.grade(promise, Assessment { command, ..seen });
    }
    let unseen = seen.unseen.into_iter().map(|(what, why)| match why {
        Some(why) => format!("{what}: {}", chain(&why)),
        None => what,
    });
    let unseen: Vec<_> = unseen.collect();
    let seen = match &unseen[..] {
        [] => Assessment::ok(sound),
        all => Assessment::untried(format!("not checked: {}", all.join("; "))),
    };
    findings.grade(promise, seen);
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Tick {
    at: Instant,
    /// The offset of the server's clock and its uncertainty, in seconds.
    offset: f64,
    doubt: f64,
}

impl Tick {
    /// Compares the clocks; `None` for a local board. The quickest of a few reads is the most precise.
    pub(super) async fn look(board: &dyn Testable) -> Result<Option<Self>, BoardError> {
        let mut best: Option<Self> = None;
        for _ in 0..3 {
            let (at, before) = (Instant::now(), Utc::now());
            let Some(there) = board.clock().await? else {
                return Ok(None);
            };
            let doubt = at.elapsed() / 2;
            let ahead = there - before - TimeDelta::from_std(doubt).unwrap_or_default();
            let is_in_millis = there.timestamp_subsec_micros() % 1000 == 0;
            let doubt = doubt.as_secs_f64() + if is_in_millis { 1e-3 } else { 1e-6 };
            if best.is_none_or(|it| doubt < it.doubt) {
                let offset = ahead.as_seconds_f64();
                best = Some(Self { at, offset, doubt });
            }
        }
        Ok(best)
    }

    pub(super) fn until(self, later: Self) -> Assessment {
        let passed = (later.at - self.at).as_secs_f64().max(1e-3);
        let (offset, changed) = (later.offset, later.offset - self.offset);
        let doubt = (self.doubt + later.doubt) / passed;
        if (changed / passed).abs() > DRIFT + doubt {
            Assessment::weak(
                format!(
                    "the server clock drifted {changed:+.2} s in {passed:.0} s; claims expire too early or too late"
                ),
                "check the time synchronization; a virtual machine may have been paused",
            )
        } else if offset.abs() > APART {
            Assessment::weak(
                format!(
                    "the server clock differs by {offset:+.1} s; ages and delays are wrong by that much"
                ),
                "synchronize the clocks with NTP; claims use one clock and are safe",
            )
        } else {
            let apart = offset.abs().max(later.doubt) * 1e3;
            Assessment::ok(format!(
                "the server clock agrees with ours within {apart:.1} ms"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn drifting_clock_differs_from_a_wrong_clock() {
        let now = Instant::now();
        let tick = |seconds: u64, offset: f64| Tick {
            at: now + Duration::from_secs(seconds),
            offset,
            doubt: 1e-3,
        };
        let grade = |before: f64, after: f64| tick(0, before).until(tick(10, after)).grade;
        assert_eq!(grade(0.2, 0.201), Grade::Ok);
        assert_eq!(grade(60.0, 60.001), Grade::Weak);
        assert_eq!(grade(0.0, 0.5), Grade::Weak);
        assert_eq!(grade(0.0, -0.5), Grade::Weak);
    }
}
