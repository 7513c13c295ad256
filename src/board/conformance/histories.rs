//! Random histories: the board's answers, state and events must equal the model's.

mod answers;
mod played;

use std::time::Duration;

use chrono::Utc;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use self::{
    answers::{decision, word, words},
    played::Played,
};
use super::{
    events::{Events, next_event},
    model::{Act, Answer, Ending, JOBS, Known, Model, ModelAuthority, ModelEvent, act},
    settling::failure,
    *,
};
use crate::{
    board::{BoardError, EventKind, testing::needs::is_full},
    job::{Claim, ExpectedState, Fence, Holding, JobChange, Purge, Revision},
};

pub(crate) const WHO: [&str; 3] = ["ada", "bob", "eve"];

const SHORT_TERM: Duration = Duration::from_millis(20);

/// Plays random histories on a board; returns the shortest that differs from the model, and how.
///
/// Uses the same histories each time; `JOBBOARD_FAULTS=full` plays many, different each time.
pub(crate) fn difference<S>(
    histories: u32,
    open: impl FnOnce() -> Option<(Subject, S)>,
    again: impl Fn(&S) -> Subject,
) -> Option<(Vec<Act>, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _entered = runtime.enter();
    let (board, server) = open()?;
    let again = || again(&server);
    let config = Config {
        cases: if is_full() {
            histories * 100
        } else {
            histories
        },
        failure_persistence: None,
        ..Config::default()
    };
    let mut runner = match is_full() {
        true => TestRunner::new(config),
        false => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let acts = proptest::collection::vec(act(), 1..40);
    let decision = runner.run(&acts, |acts| {
        let played = runtime.block_on(History::play(&board, &again, &acts));
        played.map_err(proptest::test_runner::TestCaseError::fail)
    });
    runtime.block_on(board.close());
    match decision {
        Ok(()) => None,
        Err(TestError::Fail(reason, acts)) => Some((acts, reason.to_string())),
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

pub(crate) fn agree<S>(
    histories: u32,
    open: impl FnOnce() -> Option<(Subject, S)>,
    again: impl Fn(&S) -> Subject,
) {
    if let Some((acts, how)) = difference(histories, open, again) {
        panic!("{how}, after {acts:#?}");
    }
}

struct History<'a> {
    board: &'a Subject,
    again: &'a dyn Fn() -> Subject,
    actors: [Subject; WHO.len()],
    jobs: [Played; JOBS],
}

impl<'a> History<'a> {
    async fn play(
        board: &'a Subject,
        again: &'a dyn Fn() -> Subject,
        acts: &[Act],
    ) -> Result<(), String> {
        let mut history = Self {
            board,
            again,
            actors: std::array::from_fn(|_| again()),
            jobs: std::array::from_fn(|_| Played::on(board)),
        };
        let mut events = board.events().await.unwrap().stream;
        for act in acts {
            let (answers, expected) = history.perform(act).await;
            if answers != expected {
                return Err(format!(
                    "{act:?} was answered with {answers:?}, and not with {expected:?}"
                ));
            }
            history
                .compare()
                .await
                .map_err(|how| format!("after {act:?} {how}"))?;
        }
        history.compare_events(&mut events).await?;
        history.clear().await;
        for actor in &history.actors {
            actor.close().await;
        }
        Ok(())
    }

    async fn perform(&mut self, act: &Act) -> (Vec<Answer>, Vec<Answer>) {
        let has_expiring_claims = self.board.capabilities().has_expiring_claims;
        match act {
            Act::Post(job, priority) => self.post(*job, *priority).await,
            Act::Claim {
                jobs,
                who,
                is_attempt,
                is_lease,
            } => {
                let term = if *is_lease {
                    Term::Lease(LONG)
                } else {
                    Term::Indefinite
                };
                let rules = if *is_attempt { ATTEMPT } else { BY_HAND };
                self.claim(jobs, *who, term, rules).await
            }
            Act::Lapse(..) if !has_expiring_claims => Default::default(),
            Act::Lapse(job, who) => {
                let answers = self
                    .claim(&[*job], *who, Term::For(SHORT_TERM), BY_HAND)
                    .await;
                if answers.1 == ["ok"] {
                    until_free(self.board, &self.jobs[*job].keys[0]).await;
                    self.jobs[*job].model.expire(*who);
                }
                answers
            }
            Act::Renew { .. } if !has_expiring_claims => Default::default(),
            Act::Renew { job, who, back } => self.renew(*job, *who, *back).await,
            Act::Settle(job, ending, authority) => self.settle(*job, *ending, *authority).await,
            Act::Restore {
                job,
                keeps_attempts,
            } => self.restore(*job, Location::Trash, *keeps_attempts).await,
            Act::Retry {
                job,
                keeps_attempts,
            } => self.restore(*job, Location::Board, *keeps_attempts).await,
            Act::Restart(who) => {
                self.restart(*who).await;
                Default::default()
            }
            Act::Purge(job) => {
                let it = &mut self.jobs[*job];
                let answers = self.actors[*job]
                    .purge(&[Purge::of(it.keys[1].clone())])
                    .await
                    .unwrap();
                (words(&answers), vec![it.model.purge()])
            }
        }
    }

    async fn renew(&self, job: usize, who: usize, back: usize) -> (Vec<Answer>, Vec<Answer>) {
        let it = &self.jobs[job];
        let claim = Claim {
            key: it.keys[0].clone(),
            owner: owner(WHO[who]),
            fence: Some(it.fence(back)),
            term: LONG,
        };
        let answers = self.actors[who].renew(&[claim]).await.unwrap();
        (words(&answers), vec![it.model.renew(who, Some(back))])
    }

    /// Restarts an actor, which ends its session-bound leases.
    async fn restart(&mut self, who: usize) {
        let ended = std::mem::replace(&mut self.actors[who], (self.again)());
        ended.close().await;
        if self.board.capabilities().has_expiring_claims {
            return;
        }
        for it in &mut self.jobs {
            if it.model.leave(who) {
                until_free(self.board, &it.keys[0]).await;
            }
        }
    }

    async fn post(&mut self, job: usize, priority: Priority) -> (Vec<Answer>, Vec<Answer>) {
        let it = &mut self.jobs[job];
        let expected = it.model.post(priority);
        let number = it.model.board.as_ref().unwrap().number;
        let draft = Draft {
            uuid: it.uuid,
            chosen: true,
            ..urgent(&number.to_string(), priority)
        };
        let answers = self.actors[job].post(&[draft], None).await.unwrap();
        if let Ok(posted) = &answers[0] {
            it.keys[0] = posted.key.clone();
        }
        (words(&answers), vec![expected])
    }

    async fn claim(
        &mut self,
        jobs: &[usize],
        who: usize,
        term: Term,
        rules: ClaimRules,
    ) -> (Vec<Answer>, Vec<Answer>) {
        let keys: Vec<_> = jobs
            .iter()
            .map(|job| self.jobs[*job].keys[0].clone())
            .collect();
        let answers = self.actors[who]
            .claim(&keys, &claimant(WHO[who], term), 1, rules)
            .await
            .unwrap();
        let mut expected = Vec::new();
        for job in jobs {
            expected.push(self.jobs[*job].model.claim(who, rules.is_attempt));
            if expected.last().unwrap() == "ok" {
                break;
            }
        }
        for (job, answer) in jobs.iter().zip(&answers) {
            if let Ok(claimed) = answer {
                self.jobs[*job].fences.push(claimed.fence.clone());
                self.jobs[*job].model.is_lease = matches!(term, Term::Lease(_));
            }
        }
        (words(&answers), expected)
    }

    async fn settle(
        &mut self,
        job: usize,
        ending: Ending,
        authority: ModelAuthority,
    ) -> (Vec<Answer>, Vec<Answer>) {
        let it = &mut self.jobs[job];
        let real = it.authority(authority);
        let expected = it.model.settle(ending, authority);
        let who = match authority {
            ModelAuthority::Owner(who) | ModelAuthority::Claim { who, .. } => who,
            ModelAuthority::ForceUnclaimed | ModelAuthority::ForceClaimed { .. } => job,
        };
        let settled = self.actors[who]
            .settle_one(&it.keys[0], decision(ending), real)
            .await;
        if settled.is_ok() && decision(ending).is_trash() {
            it.keys[1] = it.keys[0].clone();
        }
        let answer = match settled {
            Ok(settled) if settled.replaced_namesake => "ok, in the place of another".to_owned(),
            settled => word(&settled),
        };
        (vec![answer], vec![expected])
    }

    async fn restore(
        &mut self,
        job: usize,
        location: Location,
        keeps_attempts: bool,
    ) -> (Vec<Answer>, Vec<Answer>) {
        let it = &mut self.jobs[job];
        let (key, expected) = match location {
            Location::Trash => (it.keys[1].clone(), it.model.restore(keeps_attempts)),
            _ => (it.keys[0].clone(), it.model.retry(keeps_attempts)),
        };
        let revision = Revision {
            location,
            change: match keeps_attempts {
                true => JobChange::Continue,
                false => JobChange::Restart,
            },
            ..Revision::from_trash(key.clone(), None)
        };
        let answers = self.actors[job].revise(&[revision]).await.unwrap();
        if answers[0].is_ok() {
            it.keys[0] = key;
        }
        (words(&answers), vec![expected])
    }

    async fn compare(&self) -> Result<(), String> {
        let wanted = self
            .jobs
            .each_ref()
            .map(|it| it.uuid.to_string().parse::<JobRef>().unwrap());
        for location in Location::LIVE {
            let found = self.board.find(location, &wanted).await.unwrap();
            for (it, found) in self.jobs.iter().zip(&found) {
                it.compare(location, found.first())?;
            }
        }
        Ok(())
    }

    async fn compare_events(&self, events: &mut Events<'_>) -> Result<(), String> {
        if !self.board.capabilities().has_expiring_claims {
            return Ok(());
        }
        let last = post_one(self.board, "last").await;
        let mut reported: [Vec<ModelEvent>; JOBS] = Default::default();
        let mut is_last = false;
        // Subscribers time a claim by their own clock, which may be behind.
        let expiries_are_missing = |reported: &[Vec<ModelEvent>; JOBS]| {
            let missing = |(it, reported): (&Played, &Vec<ModelEvent>)| {
                let is_so_far = is_consistent(
                    reported,
                    &it.model.events[..reported.len().min(it.model.events.len())],
                );
                let mut rest = it.model.events.iter().skip(reported.len());
                is_so_far && rest.any(|it| it.0 == EventKind::Expired)
            };
            self.jobs.iter().zip(reported).any(missing)
        };
        while !is_last || expiries_are_missing(&reported) {
            let event = next_event(events).await;
            let Some(subject) = event.subject else {
                continue;
            };
            is_last |= subject.key == last;
            if let Some(job) = (self.jobs.iter()).position(|it| it.uuid.to_string() == subject.uuid)
            {
                let is_of_claim = !matches!(
                    event.kind,
                    EventKind::Posted | EventKind::Restored | EventKind::Purged
                );
                let who = event.owner.filter(|_| is_of_claim);
                let who = who.and_then(|who| WHO.iter().position(|it| *it == who.text()));
                reported[job].push((event.kind, who));
            }
        }
        let free = Authority::Force(ExpectedState::Unclaimed);
        settled(self.board, &last, Decision::Consume, free).await;
        for (it, reported) in self.jobs.iter().zip(reported) {
            if !is_consistent(&reported, &it.model.events) {
                return Err(format!(
                    "reported {reported:?} instead of {:?}",
                    it.model.events
                ));
            }
        }
        Ok(())
    }

    async fn clear(&self) {
        for it in &self.jobs {
            let found = self
                .board
                .find(Location::Board, &[JobRef::Key(it.keys[0].clone())])
                .await
                .unwrap();
            for entry in found.iter().flatten() {
                let seen = Authority::Force(ExpectedState::of(entry));
                settled(self.board, entry.key(), Decision::Consume, seen).await;
            }
            self.board
                .purge(&[Purge::of(it.keys[1].clone())])
                .await
                .unwrap();
        }
    }
}

/// Whether the events match the history. A claim that expires unseen may be reported as abandoned.
fn is_consistent(reported: &[ModelEvent], happened: &[ModelEvent]) -> bool {
    let is_same = |(reported, happened): (&ModelEvent, &ModelEvent)| {
        let is_end = happened.0 == EventKind::Expired && reported.0 == EventKind::Abandoned;
        reported.1 == happened.1 && (is_end || reported.0 == happened.0)
    };
    reported.len() == happened.len() && reported.iter().zip(happened).all(is_same)
}
