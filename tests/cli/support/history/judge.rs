//! Whether a history is consistent: the search for a valid order of its acts.
//!
//! The method is Wing and Gong's with Lowe's memoization: take one of the possible next acts, and backtrack on
//! failure. An unanswered act need not have happened. In addition time counts, since claims expire: each state has the
//! earliest times of its start and of the expiry of its claim.
//!
//! With many unanswered acts there are too many orders. So a first search may repeat them without limit: it is short,
//! and its inconsistencies are real.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use super::{Act, Answer, What, job::Job};

/// The limit of searched states per job; beyond it the job is undecided.
const MAX_STATES: usize = 30_000;

/// A history without a valid order.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(super) job: Arc<str>,
    /// Its longest valid prefix, in order.
    pub(super) before: Vec<Act>,
    /// The state after the prefix, and its earliest time.
    pub(super) state: (Job, Duration),
    /// The possible next acts, all of them invalid.
    pub(super) next: Vec<Act>,
}

enum Found {
    AnOrder,
    None(Wrong),
    /// The search was abandoned.
    Nothing,
}

/// The acts of a job, and those already ordered.
struct Search<'a> {
    /// The answered acts, by start.
    known: Vec<&'a Act>,
    /// The unanswered acts.
    open: Vec<&'a Act>,
    /// The last sign of life of each claim's command.
    lives: HashMap<u64, Duration>,
    /// Whether an unanswered act may happen only once.
    is_strict: bool,
    met: HashMap<(Taken, Job), Vec<(Duration, Duration)>>,
}

/// The ordered acts, as bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Taken {
    known: Vec<u64>,
    open: Vec<u64>,
}

/// A state, and the next acts to try.
struct Step {
    taken: Taken,
    state: (Job, Duration),
    /// The act that led here.
    by: Option<Choice>,
    choices: std::vec::IntoIter<(Choice, Job, Duration)>,
}

#[derive(Debug, Clone, Copy)]
enum Choice {
    Known(usize),
    Open(usize),
}

/// Searches for an order of a job's acts in which every answer is valid; `Ok(false)` means undecided.
pub(super) fn judge(acts: &[&Act]) -> Result<bool, Box<Wrong>> {
    let Some(first) = acts.first() else {
        return Ok(true);
    };
    // The poster may have died before recording it.
    let posted = Act {
        what: What::Post,
        answer: Answer::Unknown,
        begun: Duration::ZERO,
        ..(*first).clone()
    };
    let mut acts = acts.to_vec();
    if !acts.iter().any(|act| act.what == What::Post) {
        acts.push(&posted);
    }
    acts.sort_by_key(|act| act.begun);
    let mut lives = HashMap::new();
    for act in &acts {
        if let What::Runs(fence) = act.what {
            lives.insert(fence, act.ended);
        }
    }
    let (open, known): (Vec<_>, Vec<_>) = acts
        .into_iter()
        .partition(|act| act.answer == Answer::Unknown);
    for is_strict in [false, true] {
        let search = Search {
            known: known.clone(),
            open: open.clone(),
            lives: lives.clone(),
            is_strict,
            met: HashMap::new(),
        };
        match search.order(&first.job) {
            Found::None(wrong) => return Err(Box::new(wrong)),
            Found::Nothing => return Ok(false),
            Found::AnOrder => {}
        }
    }
    Ok(true)
}

impl Search<'_> {
    fn order(mut self, job: &Arc<str>) -> Found {
        let taken = Taken::none(self.known.len(), self.open.len());
        let mut steps = vec![self.step(taken, (Job::default(), Duration::ZERO), None)];
        let (mut best, mut most) = (self.wrong(job, &steps), 0);
        while let Some(step) = steps.last_mut() {
            let Some((choice, state, at)) = step.choices.next() else {
                steps.pop();
                continue;
            };
            let taken = step.taken.with(choice, self.is_strict);
            if !self.is_new(&taken, &state, at) {
                continue;
            }
            steps.push(self.step(taken, (state, at), Some(choice)));
            let count = steps[steps.len() - 1].taken.count();
            if count == self.known.len() {
                return Found::AnOrder;
            }
            if count > most {
                most = count;
                best = self.wrong(job, &steps);
            }
            if self.met.len() > MAX_STATES {
                return Found::Nothing;
            }
        }
        match self.known.is_empty() {
            true => Found::AnOrder,
            false => Found::None(best),
        }
    }

    /// Whether a state allows more than the visited ones.
    fn is_new(&mut self, taken: &Taken, state: &Job, at: Duration) -> bool {
        let (state, lapses) = state.clone().timeless();
        let met = self.met.entry((taken.clone(), state)).or_default();
        if met.iter().any(|it| it.0 <= at && it.1 <= lapses) {
            return false;
        }
        met.push((at, lapses));
        true
    }

    fn step(&self, taken: Taken, state: (Job, Duration), by: Option<Choice>) -> Step {
        Step {
            choices: self.choices(&taken, &state).into_iter(),
            taken,
            state,
            by,
        }
    }

    /// Returns the latest time of the next act, and the candidates.
    fn candidates(&self, taken: &Taken) -> (Duration, Vec<usize>) {
        let (mut limit, mut found) = (Duration::MAX, Vec::new());
        for at in taken.first_left()..self.known.len() {
            let act = self.known[at];
            if act.begun > limit {
                break;
            }
            if !has(&taken.known, at) {
                limit = limit.min(act.ended);
                found.push(at);
            }
        }
        found.retain(|at| self.known[*at].begun <= limit);
        found.sort_by_key(|at| self.known[*at].ended);
        (limit, found)
    }

    fn choices(&self, taken: &Taken, (job, at): &(Job, Duration)) -> Vec<(Choice, Job, Duration)> {
        let (limit, known) = self.candidates(taken);
        let mut choices = Vec::new();
        for index in known {
            let act = self.known[index];
            for (next, time) in job.after(act, (*at).max(act.begun)) {
                let choice = (Choice::Known(index), next, time);
                if act.only_looks() && choice.2 == *at && choice.1 == *job {
                    // Taking this act next loses no possibility.
                    return vec![choice];
                }
                choices.push(choice);
            }
        }
        // Of equal acts the first one suffices.
        let mut alike = HashSet::new();
        for (index, act) in self.open.iter().enumerate() {
            if act.begun > limit {
                break;
            }
            if has(&taken.open, index) || !alike.insert(&act.what) {
                continue;
            }
            let next = job.after(act, (*at).max(act.begun)).into_iter();
            choices.extend(next.map(|(next, time)| (Choice::Open(index), next, time)));
        }
        choices.retain(|(_, _, time)| *time <= limit);
        for (_, next, time) in &mut choices {
            next.forget(|fence| self.lives.get(&fence).is_some_and(|last| last >= time));
        }
        choices
    }

    fn wrong(&self, job: &Arc<str>, steps: &[Step]) -> Wrong {
        let act = |choice: Choice| match choice {
            Choice::Known(at) => self.known[at].clone(),
            Choice::Open(at) => self.open[at].clone(),
        };
        let last = &steps[steps.len() - 1];
        let next = self.candidates(&last.taken).1.into_iter();
        Wrong {
            job: Arc::clone(job),
            before: steps.iter().filter_map(|step| step.by).map(act).collect(),
            state: last.state.clone(),
            next: next.map(|at| self.known[at].clone()).collect(),
        }
    }
}

impl Taken {
    fn none(known: usize, open: usize) -> Self {
        let bits = |count: usize| vec![0; count.div_ceil(64)];
        Self {
            known: bits(known),
            open: bits(open),
        }
    }

    fn with(&self, choice: Choice, is_strict: bool) -> Self {
        let mut next = self.clone();
        match choice {
            Choice::Known(at) => next.known[at / 64] |= 1 << (at % 64),
            Choice::Open(at) => next.open[at / 64] |= u64::from(is_strict) << (at % 64),
        }
        next
    }

    fn count(&self) -> usize {
        let ones = self.known.iter().map(|bits| bits.count_ones() as usize);
        ones.sum()
    }

    fn first_left(&self) -> usize {
        let full = self.known.iter().take_while(|bits| **bits == u64::MAX);
        let full = full.count();
        let rest = self.known.get(full).map_or(0, |bits| bits.trailing_ones());
        full * 64 + rest as usize
    }
}

fn has(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}
