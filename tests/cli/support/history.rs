//! The history of the jobs of a board: acts, times and answers, and whether they are consistent.
//!
//! `job` is the model of a job, `judge` searches for an order, `display` prints.

mod display;
mod job;
mod judge;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use serde_json::Value;

pub(crate) use self::judge::Wrong;
use self::judge::judge;
use super::env::Outcome;

/// The greatest difference between recorded times of two clocks.
const SLACK: Duration = Duration::from_millis(5);

#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub(crate) job: Arc<str>,
    pub(crate) who: Arc<str>,
    pub(crate) what: What,
    pub(crate) answer: Answer,
    /// The earliest time of its effect.
    pub(crate) begun: Duration,
    /// The latest time of its effect; meaningless without an answer.
    pub(crate) ended: Duration,
}

/// An act on a job, or an observation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Post,
    /// A claim that expires after its term at the earliest. Peers do not know fences.
    Claim {
        owner: Arc<str>,
        fence: Option<u64>,
        term: Option<Duration>,
    },
    Extend {
        owner: Arc<str>,
        term: Duration,
    },
    End(By, How),
    Restore,
    /// A retry, on the board or from the trash.
    Retry,
    Purge,
    /// The command under the claim with this fence is alive.
    Runs(u64),
    Seen(Sight),
}

/// The authority of an act.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum By {
    Name(Arc<str>),
    Claim(u64),
    /// An operator's action: it ignores the owner.
    Force,
}

/// The fate of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum How {
    Abandon,
    Consume,
    Trash,
    /// Any of them, unreported.
    Any,
}

/// The observed state of a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sight {
    /// Not on the board.
    Gone,
    OnBoard,
    Held(Arc<str>),
    InTrash,
    NotInTrash,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    NoSuchJob,
    Exists,
    /// Claimed, by this owner if all of its acts are recorded.
    Claimed(Option<Arc<str>>),
    /// Unclaimed, or claimed by another owner.
    NotTheirs,
    /// No usable answer: the act may have happened, then or later.
    Unknown,
}

/// The recorded acts, on one clock.
pub(crate) struct History {
    start: Instant,
    wall: SystemTime,
    acts: Mutex<Vec<Act>>,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            wall: SystemTime::now(),
            acts: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Converts a wall clock time in seconds since 1970.
    pub(crate) fn at_wall(&self, seconds: f64) -> Duration {
        let start = self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Duration::from_secs_f64((seconds - start.as_secs_f64()).max(0.0))
    }

    /// Whether the wall clock was changed meanwhile, so that its times are useless.
    pub(crate) fn is_off(&self) -> bool {
        let wall = SystemTime::now().duration_since(self.wall);
        wall.is_err() || wall.unwrap().abs_diff(self.start.elapsed()) > SLACK
    }

    pub(crate) fn add(&self, act: Act) {
        let acts = self.acts.lock();
        acts.unwrap_or_else(PoisonError::into_inner).push(act);
    }

    /// Records a finished act with its start and answer, if it proves anything.
    pub(crate) fn note(
        &self,
        (who, job): (&str, &str),
        what: What,
        begun: Duration,
        answer: Option<Answer>,
    ) {
        if let Some(answer) = answer {
            self.add(Act {
                job: job.into(),
                who: who.into(),
                what,
                answer,
                begun,
                ended: self.now(),
            });
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.acts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Returns the printed history, job by job.
    pub(crate) fn text(&self) -> String {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.sort_by(|one, other| (&one.job, one.begun).cmp(&(&other.job, other.begun)));
        let lines = acts.iter().map(|act| format!("{} {act}\n", act.job));
        lines.collect()
    }

    /// Returns the inconsistencies, job by job.
    pub(crate) fn wrong(&self) -> Vec<Wrong> {
        self.judged().0
    }

    /// Returns the inconsistencies, and the number of undecided jobs.
    pub(crate) fn judged(&self) -> (Vec<Wrong>, usize) {
        let acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut jobs: BTreeMap<&str, Vec<&Act>> = BTreeMap::new();
        for act in acts.iter() {
            jobs.entry(&act.job).or_default().push(act);
        }
        let (mut wrong, mut undecided) = (Vec::new(), 0);
        for acts in jobs.into_values() {
            match judge(&acts) {
                Ok(is_decided) => undecided += usize::from(!is_decided),
                Err(it) => wrong.push(*it),
            }
        }
        (wrong, undecided)
    }
}

impl Act {
    fn only_looks(&self) -> bool {
        let looks = matches!(self.what, What::Runs(_) | What::Seen(_));
        looks || !matches!(self.answer, Answer::Done | Answer::Unknown)
    }
}

impl Answer {
    /// Interprets a run with `--json`; `None` if nothing happened and the answer proves nothing about the job.
    pub(crate) fn of(outcome: &Outcome, is_known: impl Fn(&str) -> bool) -> Option<Self> {
        match outcome.code {
            0 => return Some(Self::Done),
            // The board was not reached, so nothing happened.
            2 | 5 => return None,
            _ => {}
        }
        let errors = outcome.stderr.lines().rev();
        let mut errors = errors.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(report) = errors.find(|report| report["error"]["kind"].is_string()) else {
            return Some(Self::Unknown);
        };
        let message = report["error"]["message"].as_str().unwrap_or_default();
        match report["error"]["kind"].as_str().unwrap_or_default() {
            "not-found" => Some(Self::NoSuchJob),
            "exists" => Some(Self::Exists),
            "already-claimed" => {
                let owner = message.rsplit(' ').next();
                Some(Self::Claimed(
                    owner.filter(|name| is_known(name)).map(Arc::from),
                ))
            }
            "not-claimed" | "not-owner" => Some(Self::NotTheirs),
            // The last two prove nothing about the current job.
            "ambiguous" | "unsupported" | "changed" | "not-delayed" => None,
            _ => Some(Self::Unknown),
        }
    }
}
