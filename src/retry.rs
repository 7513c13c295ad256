//! Decides how a job is settled from how its attempt ended.

use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};
use serde_json::Value;

use crate::{
    backoff::{doubled, jittered},
    board::chain,
    duration,
    job::{Aftermath, Attempts, CapturedOutput, Decision, Failure, Job, Owner},
    process::{child::CommandEnd, clock, command::NotRun},
};

/// A command exits with this code to ask for a later retry: a temporary failure.
pub(crate) const TRY_LATER: i32 = 75;

pub(crate) const MAX_ATTEMPTS: u32 = 5;

/// The longest back-off that the options allow. A longer delay was not written by a conductor.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_secs(365 * 24 * 3600);

/// The fate of a job after its command failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OnFailure {
    /// Release the job for a retry
    #[default]
    Abandon,
    /// Remove the job
    Consume,
    /// Move the job to the trash immediately
    Trash,
}

/// The retry policy given on the command line.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RetryPolicy {
    /// Attempts before a job goes to the trash, unless the job sets its own limit
    #[arg(long, value_name = "N", default_value_t = MAX_ATTEMPTS,
          value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts: u32,

    /// Highest retry limit that a job may set
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_attempts_max: Option<u32>,

    /// Initial back-off after a failure; doubles with each further failure
    #[arg(long, value_name = "DURATION", value_parser = back_off, default_value = "1s")]
    retry_delay: Duration,

    /// Maximum back-off (up to 365d)
    #[arg(long, value_name = "DURATION", value_parser = back_off, default_value = "5m")]
    retry_max: Duration,

    /// What to do with a job whose command fails
    #[arg(long, value_enum, value_name = "FATE", default_value_t)]
    on_failure: OnFailure,
}

fn back_off(text: &str) -> Result<Duration, String> {
    let bounds = (Duration::ZERO, MAX_BACKOFF);
    duration::within(text, bounds, "a back-off lasts at most 365d")
}

/// Returns the retry limit: the job's own or `usual`, at most `most`.
pub(crate) fn retry_limit(own: Option<u32>, usual: u32, most: Option<u32>) -> u32 {
    own.unwrap_or(usual).min(most.unwrap_or(u32::MAX))
}

#[derive(Debug)]
pub(crate) enum AttemptEnd {
    Ended(CommandEnd),
    TimedOut(Duration),
    /// The conductor had to end it, or may no longer start it.
    Interrupted,
    /// This machine could not start it now.
    NoRoom,
    NotRun(NotRun),
    Spent,
}

pub(crate) struct AttemptContext<'a> {
    /// The attempts at the time of the claim, including this attempt.
    pub(crate) attempts: &'a Attempts,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) conductor: &'a Owner,
    /// Reads the end of the command's output, only after a failure.
    pub(crate) output: &'a (dyn Fn() -> CapturedOutput + Sync),
}

impl RetryPolicy {
    pub(crate) fn is_spent(&self, attempts: &Attempts, own: Option<u32>) -> bool {
        attempts.count > self.limit(own)
    }

    pub(crate) fn limits(&self) -> (u32, Option<u32>) {
        (self.max_attempts, self.max_attempts_max)
    }

    pub(crate) fn limit(&self, own: Option<u32>) -> u32 {
        retry_limit(own, self.max_attempts, self.max_attempts_max)
    }

    pub(crate) fn decide(&self, end: &AttemptEnd, attempt: AttemptContext<'_>) -> Decision {
        match end {
            AttemptEnd::Ended(CommandEnd::Exit(0)) => Decision::Consume,
            AttemptEnd::Ended(CommandEnd::Exit(TRY_LATER)) | AttemptEnd::NoRoom => {
                let not_before = self.later(attempt.attempts.postponed);
                Decision::Abandon(Aftermath::Postponed { not_before })
            }
            AttemptEnd::Interrupted => Decision::Abandon(Aftermath::Interrupted),
            AttemptEnd::Ended(ended) => self.fail(ended.to_string(), Some(*ended), attempt),
            AttemptEnd::TimedOut(limit) => {
                let limit = duration::exact(*limit);
                let reason = format!("the command took longer than {limit}");
                self.fail(reason, None, attempt)
            }
            AttemptEnd::NotRun(error) => self.fail(chain(error), None, attempt),
            AttemptEnd::Spent => {
                Decision::Spent(failure(describe_failures(attempt.attempts), None, attempt))
            }
        }
    }

    fn fail(
        &self,
        reason: String,
        ended: Option<CommandEnd>,
        attempt: AttemptContext<'_>,
    ) -> Decision {
        let attempts = attempt.attempts.count;
        let is_spent = attempts >= self.limit(attempt.max_attempts);
        let failure = failure(reason, ended, attempt);
        match self.on_failure {
            OnFailure::Consume => Decision::ConsumeFailed(failure),
            OnFailure::Abandon if !is_spent => Decision::Abandon(Aftermath::Failed {
                failure,
                not_before: Some(self.later(attempts.saturating_sub(1))),
            }),
            OnFailure::Abandon | OnFailure::Trash => Decision::Trash(Aftermath::failed(failure)),
        }
    }

    fn later(&self, times_before: u32) -> DateTime<Utc> {
        // With jitter, so that jobs that failed together do not retry together.
        let delay = doubled((self.retry_delay, self.retry_max), times_before);
        let delay = jittered(delay, 0.2);
        let delay = chrono::TimeDelta::from_std(delay).unwrap_or(chrono::TimeDelta::MAX);
        let now = clock::wall();
        let later = now.checked_add_signed(delay).unwrap_or(now);
        later.trunc_subsecs(6)
    }
}

/// The reason if no attempt of a job had a result.
pub(crate) const NO_FAILURE: &str =
    "no failure is recorded: the conductor died, or its claim expired or was released";

/// Describes the failures of a job that is not retried.
///
/// At most [`Attempts::MAX_FAILURES`] are kept, so a full list proves nothing about the other attempts. An attempt that
/// counts without a failure was never settled.
fn describe_failures(attempts: &Attempts) -> String {
    let tried = attempts.count.saturating_sub(1);
    let failures = attempts.failures.iter().filter(|it| !it.is_release());
    let failed = u32::try_from(failures.count()).unwrap_or(u32::MAX);
    let others = "in the others, the conductor died, or its claim expired or was released";
    let is_full = attempts.failures.len() >= Attempts::MAX_FAILURES;
    match failed {
        0 => NO_FAILURE.to_owned(),
        failed if failed < tried && is_full => {
            format!("at least {failed} of {tried} attempts failed")
        }
        failed if failed < tried => format!("{failed} of {tried} attempts failed; {others}"),
        1 => "its only attempt failed".to_owned(),
        2 => "both attempts failed".to_owned(),
        failed => format!("all {failed} attempts failed"),
    }
}

fn failure(reason: String, ended: Option<CommandEnd>, attempt: AttemptContext<'_>) -> Failure {
    let (exit_code, signal) = match ended {
        Some(CommandEnd::Exit(code)) => (Some(code), None),
        Some(CommandEnd::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let CapturedOutput { stdout, stderr } = (attempt.output)();
    Failure {
        exit_code,
        signal,
        stdout,
        stderr,
        ..Failure::reported(&reason, &attempt.conductor.text())
    }
}

impl Job {
    /// Returns the retry limit that the job sets.
    pub(crate) fn own_max_attempts(&self) -> Option<u32> {
        max_attempts(self.details.as_ref()?.get("max_attempts")?.as_ref())
    }
}

pub(crate) fn max_attempts(value: &Value) -> Option<u32> {
    u32::try_from(value.as_u64()?).ok().filter(|most| *most > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::RELEASED;

    fn policy() -> RetryPolicy {
        RetryPolicy {
            max_attempts: 3,
            max_attempts_max: None,
            retry_delay: Duration::from_secs(1),
            retry_max: Duration::from_secs(300),
            on_failure: OnFailure::Abandon,
        }
    }

    fn decide(policy: &RetryPolicy, end: &AttemptEnd, attempts: u32, postponed: u32) -> Decision {
        let attempts = Attempts {
            count: attempts,
            postponed,
            ..Attempts::default()
        };
        let attempt = AttemptContext {
            attempts: &attempts,
            max_attempts: None,
            conductor: &Owner::new("ada").unwrap(),
            output: &|| CapturedOutput {
                stdout: "ah".to_owned(),
                stderr: "oh".to_owned(),
            },
        };
        policy.decide(end, attempt)
    }

    fn delay(decision: &Decision) -> f64 {
        (decision.not_before().unwrap() - Utc::now()).as_seconds_f64()
    }

    fn is_failed(decision: &Decision) -> bool {
        matches!(decision, Decision::Abandon(Aftermath::Failed { .. }))
    }

    fn is_postponed(decision: &Decision) -> bool {
        matches!(decision, Decision::Abandon(Aftermath::Postponed { .. }))
    }

    #[test]
    fn exit_code_decides_the_outcome() {
        let decision = |code| decide(&policy(), &AttemptEnd::Ended(CommandEnd::Exit(code)), 1, 0);
        assert_eq!(decision(0), Decision::Consume);
        assert!(is_postponed(&decision(75)));
        assert!(is_failed(&decision(1)));
    }

    #[test]
    fn last_failed_attempt_is_trashed_with_its_reason() {
        let end = AttemptEnd::Ended(CommandEnd::Signal(9));
        assert!(is_failed(&decide(&policy(), &end, 2, 0)));
        let decision = decide(&policy(), &end, 3, 0);
        let Decision::Trash(Aftermath::Failed { failure, .. }) = decision else {
            panic!("{decision:?}");
        };
        assert_eq!((failure.signal, failure.stderr.as_str()), (Some(9), "oh"));
        assert!(failure.reason.contains("signal 9"));
    }

    #[test]
    fn postponed_job_is_never_exhausted_and_backs_off() {
        let end = AttemptEnd::Ended(CommandEnd::Exit(75));
        let mut last = 0.0;
        for postponed in 0..8 {
            let decision = decide(&policy(), &end, 9, postponed);
            assert!(is_postponed(&decision));
            assert!(delay(&decision) > last);
            last = delay(&decision);
        }
        assert!(delay(&decide(&policy(), &end, 9, u32::MAX)) <= 300.0);
    }

    #[test]
    fn exhausted_job_accounts_for_each_attempt() {
        let reason = |attempts, failed: usize, released: usize| {
            let failed = vec![Failure::reported("oh", "ada"); failed];
            let released = vec![Failure::reported(RELEASED, "ada"); released];
            describe_failures(&Attempts {
                count: attempts,
                failures: [failed, released].concat(),
                ..Attempts::default()
            })
        };
        let others = "in the others, the conductor died, or its claim expired or was released";
        assert_eq!(reason(2, 0, 0), NO_FAILURE);
        assert_eq!(reason(2, 0, 1), NO_FAILURE);
        assert_eq!(reason(2, 1, 0), "its only attempt failed");
        assert_eq!(reason(4, 2, 0), format!("2 of 3 attempts failed; {others}"));
        assert_eq!(reason(4, 3, 0), "all 3 attempts failed");
        assert_eq!(reason(3, 2, 0), "both attempts failed");
        assert_eq!(reason(9, 2, 1), "at least 2 of 8 attempts failed");
    }

    #[test]
    fn failures_can_be_final() {
        let end = AttemptEnd::TimedOut(Duration::from_secs(5));
        let of = |on_failure| RetryPolicy {
            on_failure,
            ..policy()
        };
        let trashed = decide(&of(OnFailure::Trash), &end, 1, 0);
        assert!(matches!(trashed, Decision::Trash(Aftermath::Failed { .. })));
        let consumed = decide(&of(OnFailure::Consume), &end, 1, 0);
        assert!(matches!(consumed, Decision::ConsumeFailed(_)));
    }
}
