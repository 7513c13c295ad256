//! Runs the tests on a scratch board: their order, their time limits, and the claims that are renewed meanwhile.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    sync::Arc,
    time::Duration,
};

use tokio::{
    join,
    sync::watch,
    time::{self, Instant},
};

use super::{
    examinations::Tick,
    promise::{Assessment, Grade, Promise, TrialError, TrialResult, broken, require},
    report::Findings,
    scratch::Scratch,
};
use crate::{
    board::{BoardError, ClaimRules, REFRESH, scratch::Testable},
    exit::chain,
    job::{Authority, Claim, Conductor, Decision, Location, Settlement},
};

/// The lease duration of the watched claims, or the closest that the server grants.
const TERM: Duration = Duration::from_secs(4);

/// The number of watched claims, and of untouched jobs beside them.
const WATCHED: usize = 16;

/// How long a board may be away, for example during a restart, and how often it is tried.
const OUTAGE_TIMEOUT: Duration = Duration::from_secs(10);
const RETRY_PAUSE: Duration = Duration::from_millis(50);

pub(super) struct Trial<'a> {
    pub(super) scratch: &'a Scratch,
    pub(super) ada: Arc<dyn Testable>,
    pub(super) bob: Arc<dyn Testable>,
    pub(super) user: Conductor,
    pub(super) term: Duration,
    pub(super) begun: Instant,
    pub(super) end: Instant,
    last: Instant,
    tick: Option<Tick>,
    seen: RefCell<Vec<(Promise, Assessment)>>,
    /// Whether a request without a reply was repeated.
    has_stumbled: Cell<bool>,
    is_gone: Cell<bool>,
    /// Whether the tests beside the watched claims have ended.
    over: watch::Sender<bool>,
}

impl<'a> Trial<'a> {
    pub(super) async fn begin(scratch: &'a Scratch, last: Instant) -> Result<Self, BoardError> {
        let begun = Instant::now();
        let end = last - (last - begun) / 5;
        let (ada, bob) = (scratch.open()?, scratch.open()?);
        ada.make_scratch().await?;
        let user = scratch.user();
        let term = ada.lease_term(TERM.min((end - begun) / 3)).await?;
        ada.register(&user).await?;
        let tick = Tick::look(&*ada).await?;
        Ok(Self {
            scratch,
            ada,
            bob,
            user,
            term,
            begun,
            end,
            last,
            tick,
            seen: RefCell::default(),
            has_stumbled: Cell::default(),
            is_gone: Cell::default(),
            over: watch::Sender::default(),
        })
    }

    pub(super) async fn run(&self, findings: &mut Findings) {
        let all = async {
            join!(self.attempt(Promise::Lapse, self.end), self.in_turn());
            self.over.send_replace(true);
        };
        tokio::select! {
            _ = async { join!(self.attempt(Promise::Renewal, self.last), all) } => {}
            never = self.occupy() => match never {},
        }
        self.attempt(Promise::Clock, self.last).await;
        for (promise, seen) in self.seen.take() {
            findings.grade(promise, seen);
        }
        let is_kept = |promise: Promise| findings.of(promise) == Some(Grade::Ok);
        if is_kept(Promise::Renewal) && is_kept(Promise::Keeps) {
            let is_done = !self.has_stumbled.get() && findings.is_all_tried();
            let counted = time::timeout_at(self.last, self.nothing_more(is_done)).await;
            if let Ok(Err(trouble @ TrialError::Broken(_))) = counted {
                findings.grade(Promise::Keeps, trouble.into());
            }
        }
        if self.is_gone.get() {
            findings.nothing_tried("the server stopped answering");
        }
    }

    async fn in_turn(&self) {
        for promise in [
            Promise::Keeps,
            Promise::Fence,
            Promise::Ends,
            Promise::OneWinner,
            Promise::Whole,
            Promise::BrokenOff,
            Promise::Events,
            Promise::Answers,
        ] {
            self.attempt(promise, self.end).await;
        }
    }

    async fn try_once(&self, promise: Promise) -> TrialResult {
        match promise {
            Promise::Answers => self.measure().await,
            Promise::Keeps => self.keeps().await,
            Promise::OneWinner => self.one_winner().await,
            Promise::Renewal => self.watch().await,
            Promise::Lapse => self.lapse().await,
            Promise::Fence => self.fence().await,
            Promise::Ends => self.ends().await,
            Promise::Whole => self.whole().await,
            Promise::BrokenOff if self.scratch.url.file().is_some() => self.processes_die().await,
            Promise::BrokenOff => self.connections_break().await,
            Promise::Events => self.events().await,
            Promise::Clock => self.clock().await,
            Promise::Durable | Promise::Rights => Ok(Assessment::untried("not tested")),
        }
    }

    /// Repeats a test if a request had no reply and the board is back. Another promise covers the lost reply.
    async fn attempt(&self, promise: Promise, until: Instant) {
        let mut unheard = None;
        while !self.is_gone.get() {
            match time::timeout_at(until, self.try_once(promise)).await {
                Ok(Err(TrialError::Board(error))) if error.is_away() => {
                    self.has_stumbled.set(true);
                    let why = chain(&error);
                    if unheard.is_none() && self.is_back(until).await {
                        unheard = Some(why);
                        continue;
                    }
                    self.grade(promise, TrialError::Board(error).into());
                    let why = format!("a request got no reply: {why}");
                    self.grade(Promise::Answers, Assessment::new(Grade::Broken, why));
                }
                Ok(tried) => self.grade(promise, tried.unwrap_or_else(Assessment::from)),
                // The report lists the tests that had no time.
                Err(_) => {}
            }
            break;
        }
        if let Some(why) = unheard {
            self.note_lost_reply(&why);
        }
    }

    fn grade(&self, promise: Promise, seen: Assessment) {
        self.seen.borrow_mut().push((promise, seen));
    }

    fn note_lost_reply(&self, why: &str) {
        let why = format!("one request got no reply, the next one did: {why}");
        let remedy = "check whether the server restarted or the network failed";
        self.grade(Promise::Answers, Assessment::weak(why, remedy));
    }

    async fn is_back(&self, until: Instant) -> bool {
        let back = async {
            while (self.bob.health().await.err()).is_some_and(|error| error.is_away()) {
                time::sleep(RETRY_PAUSE).await;
            }
        };
        let until = until.min(Instant::now() + OUTAGE_TIMEOUT);
        let is_back = time::timeout_at(until, back).await.is_ok();
        self.is_gone.set(self.is_gone.get() || !is_back);
        is_back
    }

    async fn occupy(&self) -> Infallible {
        loop {
            time::sleep(REFRESH).await;
            // Renewed long before another client takes the board for a leftover.
            let _ = self.ada.publish(&self.user.report).await;
        }
    }

    async fn clock(&self) -> TrialResult {
        match (self.tick, Tick::look(&*self.ada).await?) {
            (Some(tick), Some(later)) => Ok(tick.until(later)),
            _ => Ok(Assessment::ok("the board uses the clock of this machine")),
        }
    }

    /// Checks at the end that each claim and each untouched job is unchanged.
    async fn watch(&self) -> TrialResult {
        let by = self.short_lease("keeper");
        let keys = self.post(WATCHED * 2).await?;
        // A claim lasts from then on, and longer on a slow board.
        let begun = Instant::now();
        let claimed = self
            .ada
            .claim(&keys[..WATCHED], &by, WATCHED, ClaimRules::BY_HAND);
        let claimed = claimed.await?.into_iter().collect::<Result<Vec<_>, _>>()?;
        let claims: Vec<_> = claimed.iter().map(|it| self.claim_of(it, &by)).collect();
        let (since, renewed, mut lost) = self.keep(&claims, begun).await?;
        if lost.is_none() {
            let settled = claims.iter().map(|it| settlement(it, Decision::Consume));
            let settled = self.ada.settle(&settled.collect::<Vec<_>>()).await?;
            lost = settled.into_iter().find_map(Result::err);
        }
        if let Some(error) = lost {
            let why = "claims were not renewed in time: this machine was too busy, or the server did not answer";
            return match since.elapsed() > self.term {
                true => Ok(Assessment::untried(why)),
                false => broken(format!(
                    "a claim was lost although it was renewed in time: {error}"
                )),
            };
        }
        let gone = self.absent(&keys[WATCHED..]).await?;
        let why = format_args!("{gone} of {WATCHED} untouched jobs disappeared");
        require(gone == 0, why)?;
        let [passed, term] = [begun.elapsed(), self.term].map(|it| it.as_secs_f64());
        Ok(match passed > term {
            true => Assessment::ok(format!(
                "held {WATCHED} claims for {passed:.1} s and renewed them {renewed} times"
            )),
            false => Assessment::untried(format!(
                "out of time: claims must be held for longer than their lease of {term:.1} s"
            )),
        })
    }

    async fn keep(
        &self,
        claims: &[Claim],
        mut since: Instant,
    ) -> TrialResult<(Instant, u32, Option<BoardError>)> {
        let mut is_over = self.over.subscribe();
        let (mut renewed, mut unheard) = (0, None);
        loop {
            let is_last = tokio::select! {
                _ = is_over.wait_for(|it| *it) => true,
                () = time::sleep(self.term / 4) => false,
            };
            let asked = Instant::now();
            let answers = match self.ada.renew(claims).await {
                // There is time for another attempt.
                Err(error) if error.is_away() && !is_last && since.elapsed() < self.term => {
                    unheard.get_or_insert_with(|| chain(&error));
                    continue;
                }
                answers => answers?,
            };
            renewed += 1;
            if let Some(why) = unheard.take() {
                self.note_lost_reply(&why);
            }
            match answers.into_iter().find_map(Result::err) {
                Some(error) => return Ok((since, renewed, Some(error))),
                None if is_last => return Ok((asked, renewed, None)),
                None => since = asked,
            }
        }
    }

    /// Checks that the untouched jobs are there and, if `is_done`, that no other job is.
    async fn nothing_more(&self, is_done: bool) -> TrialResult<()> {
        // Syncs with a server that has all changes of the other clients.
        self.find(Location::Board, &[]).await?;
        let health = self.bob.health().await?;
        let (jobs, trashed, left) = (health.jobs, health.trashed, WATCHED as u64);
        let why = format_args!(
            "{left} jobs should remain; {jobs} are on the board and {trashed} in the trash"
        );
        require(
            jobs >= left && (!is_done || (jobs, trashed) == (left, 0)),
            why,
        )
    }
}

pub(super) fn settlement(claim: &Claim, decision: Decision) -> Settlement {
    let owner = claim.owner.clone();
    let right = match claim.fence.clone() {
        Some(fence) => Authority::Claim(owner, fence),
        None => Authority::Owner(owner),
    };
    Settlement::of(claim.key.clone(), decision, right)
}
