//! A board under test: who acts on it, in which order it is tried, and the claims that are kept all the while.

use std::{cell::RefCell, convert::Infallible, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use serde_json::json;
use tokio::{
    join,
    sync::Notify,
    time::{self, Instant},
};
use uuid::Uuid;

use super::{
    looks::Tick,
    promise::{Grade, Promise, Seen, Tried, Trouble, is_unanswered, require},
    report::Findings,
    site::Site,
};
use crate::{
    board::{BoardError, BoardExt as _, ClaimRules, JobRef, REFRESH, ground::Ground},
    exit::chain,
    job::{
        Authority, Claim, Claimant, Claimed, Conductor, Draft, Entry, Job, JobKey, Outcome, Owner,
        Priority, Settlement, Shelf, Term,
    },
};

/// How long a claim lasts that is kept while others are tried, or as near to it as the server grants.
const TERM: Duration = Duration::from_secs(4);

/// How long one lasts that is settled at once, however busy this machine is.
const AMPLE: Duration = Duration::from_secs(60);

/// How many claims are kept all the while, and how many jobs are left alone beside them.
const WATCHED: usize = 16;

/// How claims are made here: by whom the job is asked for by name.
pub(super) const RULES: ClaimRules = ClaimRules {
    is_attempt: false,
    at_once: usize::MAX,
    respects_not_before: false,
};

/// A board under test, and those who act on it, each by a connection of its own.
pub(super) struct Trial<'a> {
    pub(super) site: &'a Site,
    pub(super) ada: Arc<dyn Ground>,
    pub(super) bob: Arc<dyn Ground>,
    pub(super) user: Conductor,
    /// How long a kept claim lasts.
    pub(super) term: Duration,
    pub(super) begun: Instant,
    pub(super) end: Instant,
    /// At the beginning.
    tick: Option<Tick>,
}

impl<'a> Trial<'a> {
    /// Makes the board, and says that it is in use.
    pub(super) async fn begin(site: &'a Site, end: Instant) -> Result<Self, BoardError> {
        let begun = Instant::now();
        let (ada, bob) = (site.open()?, site.open()?);
        let user = site.user()?;
        let term = ada.lease_term(TERM.min((end - begun) / 3)).await?;
        ada.register(&user).await?;
        let tick = Tick::look(&*ada).await?;
        Ok(Self {
            site,
            ada,
            bob,
            user,
            term,
            begun,
            end,
            tick,
        })
    }

    /// Tries all there is, and says how each promise is kept.
    pub(super) async fn run(&self, findings: &mut Findings) {
        let findings = RefCell::new(findings);
        let over = Notify::new();
        let watch = async {
            let watched = self.watch(&over).await;
            self.judge(&findings, Promise::Renewal, Some(watched));
        };
        let all = async {
            join!(self.lapses(&findings), self.in_turn(&findings));
            over.notify_one();
        };
        tokio::select! {
            ((), ()) = async { join!(watch, all) } => {}
            never = self.occupy() => match never {},
        }
        let findings = findings.into_inner();
        if let Some(tick) = self.tick {
            let later = time::timeout(self.term, Tick::look(&*self.ada)).await;
            if let Ok(Ok(Some(later))) = later {
                let (clock, seen) = tick.until(later);
                findings.figures.clock = Some(clock);
                findings.judge(Promise::Clock, seen);
            }
        } else {
            let seen = Seen::ok("there is but one clock, that of this machine");
            findings.judge(Promise::Clock, seen);
        }
        if findings.of(Promise::Answers) != Some(Grade::Broken)
            && findings.of(Promise::Keeps).is_some()
        {
            findings.judge(
                Promise::Keeps,
                self.nothing_more().await.unwrap_or_else(Seen::from),
            );
        }
    }

    async fn lapses(&self, findings: &RefCell<&mut Findings>) {
        let tried = async {
            let (late, seen) = self.lapse().await?;
            findings.borrow_mut().figures.lapse = Some(late.as_secs_f64());
            Ok(seen)
        };
        self.judge(findings, Promise::Lapse, self.within(tried).await);
    }

    async fn in_turn(&self, findings: &RefCell<&mut Findings>) {
        let events = async {
            let (spread, seen) = self.events().await?;
            findings.borrow_mut().figures.event = spread;
            Ok(seen)
        };
        let measure = async {
            let (spread, rates, seen) = self.measure().await?;
            let figures = &mut findings.borrow_mut().figures;
            (figures.latency, figures.rates) = (spread, rates);
            Ok(seen)
        };
        for (promise, tried) in [
            (Promise::Keeps, self.keeps().boxed_local()),
            (Promise::Fence, self.fence().boxed_local()),
            (Promise::Ends, self.ends().boxed_local()),
            (Promise::OneWinner, self.one_winner().boxed_local()),
            (Promise::Whole, self.whole().boxed_local()),
            (Promise::BrokenOff, self.broken_off().boxed_local()),
            (Promise::Events, events.boxed_local()),
            (Promise::Answers, measure.boxed_local()),
        ] {
            self.judge(findings, promise, self.within(tried).await);
        }
    }

    /// Gives a trial as long as there is.
    async fn within(&self, tried: impl Future<Output = Tried>) -> Option<Tried> {
        time::timeout_at(self.end, tried).await.ok()
    }

    /// Notes how a promise was seen to be kept; an exchange that failed breaks another one as well.
    fn judge(&self, findings: &RefCell<&mut Findings>, promise: Promise, tried: Option<Tried>) {
        let mut findings = findings.borrow_mut();
        let Some(tried) = tried else { return };
        let unanswered = match &tried {
            Err(Trouble::Board(error)) if is_unanswered(error) => Some(chain(error)),
            _ => None,
        };
        findings.judge(promise, tried.unwrap_or_else(Seen::from));
        if let Some(why) = unanswered {
            let why = format!("a request had no answer: {why}");
            findings.judge(Promise::Answers, Seen::broken(why));
        }
    }

    /// Says all the while that this board is in use, whatever becomes of what is tried on it.
    async fn occupy(&self) -> Infallible {
        loop {
            time::sleep(REFRESH).await;
            // It is said again, long before anybody takes the board for one that was left behind.
            let _ = self.ada.tell(&self.user.told).await;
        }
    }

    /// Keeps some claims until it is over, and then looks whether each is as it was, and those jobs
    /// that nobody touched.
    async fn watch(&self, over: &Notify) -> Tried {
        let by = self.brief_keeper("keeper");
        let keys = self.post(WATCHED * 2).await?;
        // A claim lasts from then on, and longer if the board took its time.
        let mut since = Instant::now();
        let claimed = self
            .ada
            .claim(&keys[..WATCHED], &by, WATCHED, RULES)
            .await?;
        let claimed = claimed.into_iter().collect::<Result<Vec<_>, _>>()?;
        let claims: Vec<_> = claimed.iter().map(|it| self.claim_of(it, &by)).collect();
        let (mut renewed, mut lost) = (0_u32, None);
        while lost.is_none() {
            tokio::select! {
                () = over.notified() => break,
                () = time::sleep(self.term / 4) => {}
            }
            let asked = Instant::now();
            let answers = self.ada.renew(&claims).await?;
            renewed += 1;
            lost = answers.into_iter().find_map(Result::err);
            if lost.is_none() {
                since = asked;
            }
        }
        let is_late = |since: Instant| since.elapsed() > self.term;
        let late = "this machine was too busy to renew claims in time";
        if let Some(error) = lost {
            if is_late(since) {
                return Ok(Seen::untried(late));
            }
            let why = format!("a claim was lost though it was renewed in time: {error}");
            return Err(Trouble::Broken(why));
        }
        let found = self.find(Shelf::Board, &keys).await?;
        let gone = found.iter().filter(|it| it.is_none()).count();
        require(gone == 0, || {
            format!("of {} jobs that nobody touched {gone} are gone", keys.len())
        })?;
        let settled = claims
            .iter()
            .map(|it| settlement(&it.key, Outcome::Consume, it));
        let settled = self.ada.settle(&settled.collect::<Vec<_>>()).await?;
        if let Some(error) = settled.into_iter().find_map(Result::err) {
            if is_late(since) {
                return Ok(Seen::untried(late));
            }
            let why = format!("a claim that was kept was no claim any more: {error}");
            return Err(Trouble::Broken(why));
        }
        let passed = self.begun.elapsed().as_secs_f64();
        let why = format!("{WATCHED} claims were kept for {passed:.1} s, renewed {renewed} times");
        Ok(Seen::ok(why))
    }

    /// Looks whether what was left alone is all that is left.
    async fn nothing_more(&self) -> Tried {
        let health = time::timeout(self.term, self.bob.health()).await;
        let Ok(health) = health else {
            return Ok(Seen::untried("there was no time to count"));
        };
        let (health, left) = (health?, WATCHED as u64);
        match health.jobs >= left {
            true => Ok(Seen::ok("")),
            false => Ok(Seen::broken(format!(
                "{left} jobs were left alone, and {} are there in the end",
                health.jobs
            ))),
        }
    }
}

/// What those who act have in common.
impl Trial<'_> {
    /// Returns a claimant of ours that keeps what it claims.
    pub(super) fn keeper(&self, name: &str) -> Claimant {
        Claimant {
            owner: Owner::from_stored(format!("{name}:{}", self.user.name)),
            term: Term::Kept(AMPLE),
        }
    }

    /// Returns one whose claims have to be renewed before long.
    pub(super) fn brief_keeper(&self, name: &str) -> Claimant {
        Claimant {
            term: Term::Kept(self.term),
            ..self.keeper(name)
        }
    }

    pub(super) fn claim_of(&self, claimed: &Claimed, by: &Claimant) -> Claim {
        Claim {
            key: claimed.job.key.clone(),
            owner: by.owner.clone(),
            fence: Some(claimed.fence.clone()),
            term: match by.term {
                Term::Kept(term) | Term::For(term) => term,
                Term::Indefinite => AMPLE,
            },
        }
    }

    /// Returns the right that a claim gives which was just won.
    pub(super) fn right(&self, claimed: &Claimed, by: &Claimant) -> Authority {
        authority(&self.claim_of(claimed, by))
    }

    /// Posts so many jobs at once.
    pub(super) async fn post(&self, count: usize) -> Tried<Vec<JobKey>> {
        let drafts: Vec<_> = (0..count).map(draft).collect();
        let posted = self.ada.post(&drafts, None).await?;
        let keys = posted.into_iter().map(|it| it.map(|it| it.key));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        require(keys.len() == count, || {
            format!("{count} jobs were posted, and {} acknowledged", keys.len())
        })?;
        Ok(keys)
    }

    pub(super) async fn post_one(&self) -> Tried<JobKey> {
        Ok(self.ada.post_one(&draft(0), None).await?.key)
    }

    /// Looks jobs up as somebody who has changed none of them.
    pub(super) async fn find(&self, shelf: Shelf, keys: &[JobKey]) -> Tried<Vec<Option<Job>>> {
        let wanted: Vec<_> = keys.iter().cloned().map(JobRef::Key).collect();
        let found = self.bob.find(shelf, &wanted).await?;
        let found = found
            .into_iter()
            .map(|entries| match entries.into_iter().next() {
                None => Ok(None),
                Some(Entry::Job(job)) => Ok(Some(*job)),
                Some(Entry::Malformed(record)) => Err(Trouble::Broken(format!(
                    "a record that was written cannot be read: {}",
                    record.problem
                ))),
            });
        found.collect()
    }

    pub(super) async fn find_one(&self, shelf: Shelf, key: &JobKey) -> Tried<Option<Job>> {
        let found = self.find(shelf, std::slice::from_ref(key)).await?;
        Ok(found.into_iter().next().flatten())
    }
}

/// Returns the settlement of a job by exactly this claim.
pub(super) fn settlement(key: &JobKey, outcome: Outcome, claim: &Claim) -> Settlement {
    Settlement::of(key.clone(), outcome, authority(claim))
}

/// Returns the right that a claim gives.
pub(super) fn authority(claim: &Claim) -> Authority {
    let owner = claim.owner.clone();
    match claim.fence.clone() {
        Some(fence) => Authority::Claim(owner, fence),
        None => Authority::Owner(owner),
    }
}

/// Returns a job that is like no other.
pub(super) fn draft(number: usize) -> Draft {
    let uuid = Uuid::new_v4();
    Draft {
        uuid,
        chosen: false,
        name: format!("selftest-{number}"),
        priority: Priority::Normal,
        book: None,
        details: json!({ "number": number, "text": format!("\u{e9}\u{2603} {uuid}") }),
        former: None,
    }
}
