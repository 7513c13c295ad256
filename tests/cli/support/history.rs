//! What was done to the jobs of a board: when, by whom, and what was answered. And whether it can all
//! be true.
//!
//! What a job allows is in `job`, the search for an order in `judge`, the words in `told`.

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

/// By how much two clocks of one machine may differ in what was written down.
const SLACK: Duration = Duration::from_millis(5);

/// Something that somebody did to a job.
#[derive(Debug, Clone)]
pub(crate) struct Act {
    pub(crate) job: Arc<str>,
    pub(crate) who: Arc<str>,
    pub(crate) what: What,
    pub(crate) answer: Answer,
    /// It was not done before this.
    pub(crate) begun: Duration,
    /// It was done by then; of one without an answer this says nothing.
    pub(crate) ended: Duration,
}

/// What somebody does to a job, or knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum What {
    Post,
    /// A claim, which lapses after its term at the earliest. Peers do not know of fences.
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
    /// It is to be tried at once, on the board or in the trash.
    Retry,
    Purge,
    /// The command that runs under the claim with this fence says that it lives.
    Runs(u64),
    Seen(Sight),
}

/// By what right somebody ends a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum By {
    Name(Arc<str>),
    Claim(u64),
    /// An operator's, whoever has it.
    Force,
}

/// What becomes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum How {
    Abandon,
    Consume,
    Trash,
    /// One of them, but nobody has said which.
    Any,
}

/// How a job is seen to be.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sight {
    /// Not on the board.
    Gone,
    OnBoard,
    Held(Arc<str>),
    InTrash,
    NotInTrash,
}

/// What somebody was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    NoSuchJob,
    Exists,
    /// Somebody has it: the owner, if that one's acts are all known.
    Claimed(Option<Arc<str>>),
    /// It is not claimed, or not by whom it was to be.
    NotTheirs,
    /// None came, or none of those above: it may have been done, then or later.
    Unknown,
}

/// Acts as they are written down, on one clock.
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

    /// Returns the time that it is.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Returns the time at which the clock on the wall showed so many seconds since 1970.
    pub(crate) fn at_wall(&self, seconds: f64) -> Duration {
        let start = self.wall.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Duration::from_secs_f64((seconds - start.as_secs_f64()).max(0.0))
    }

    /// Says whether the clock on the wall was set meanwhile, so that its times mean nothing.
    pub(crate) fn is_off(&self) -> bool {
        let wall = SystemTime::now().duration_since(self.wall);
        wall.is_err() || wall.unwrap().abs_diff(self.start.elapsed()) > SLACK
    }

    pub(crate) fn add(&self, act: Act) {
        let acts = self.acts.lock();
        acts.unwrap_or_else(PoisonError::into_inner).push(act);
    }

    /// Writes down what somebody has done since a moment and now has an answer to, if that tells
    /// anything.
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

    /// Returns how many acts were written down.
    pub(crate) fn len(&self) -> usize {
        self.acts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// Returns all of it, job by job, as it is told.
    pub(crate) fn text(&self) -> String {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.sort_by(|one, other| (&one.job, one.begun).cmp(&(&other.job, other.begun)));
        let lines = acts.iter().map(|act| format!("{} {act}\n", act.job));
        lines.collect()
    }

    /// Returns what cannot be true, job by job.
    pub(crate) fn wrong(&self) -> Vec<Wrong> {
        self.judged().0
    }

    /// Returns that, and of how many jobs too much can be true to tell.
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
    /// Whether it changes nothing, whenever it comes.
    fn only_looks(&self) -> bool {
        let looks = matches!(self.what, What::Runs(_) | What::Seen(_));
        looks || !matches!(self.answer, Answer::Done | Answer::Unknown)
    }
}

impl Answer {
    /// Reads what the program answered with `--json`; `None` if it says that nothing was done, and
    /// tells nothing of the job.
    pub(crate) fn of(outcome: &Outcome, is_known: impl Fn(&str) -> bool) -> Option<Self> {
        match outcome.code {
            0 => return Some(Self::Done),
            // The board was not reached: then nothing was done.
            2 | 5 => return None,
            _ => {}
        }
        let errors = outcome.stderr.lines().rev();
        let mut errors = errors.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let Some(told) = errors.find(|told| told["error"]["kind"].is_string()) else {
            return Some(Self::Unknown);
        };
        let message = told["error"]["message"].as_str().unwrap_or_default();
        match told["error"]["kind"].as_str().unwrap_or_default() {
            "not-found" => Some(Self::NoSuchJob),
            "exists" => Some(Self::Exists),
            "already-claimed" => {
                let owner = message.rsplit(' ').next();
                Some(Self::Claimed(
                    owner.filter(|name| is_known(name)).map(Arc::from),
                ))
            }
            "not-claimed" | "not-owner" => Some(Self::NotTheirs),
            // Of the job as it is now the last two say nothing.
            "ambiguous" | "unsupported" | "changed" | "not-delayed" => None,
            _ => Some(Self::Unknown),
        }
    }
}
