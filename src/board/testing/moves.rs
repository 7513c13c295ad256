//! Two boards in memory with one job between them, for moves: each request is a step that a test schedules.

use std::{fmt::Debug, future, sync::Arc, task::Poll};

use async_trait::async_trait;
use chrono::Utc;
use futures_util::{
    StreamExt,
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use serde_json::json;

use crate::{
    board::{
        Board, BoardError, Capabilities, ClaimRules, JobRef, Posted, Query, Result, Settled,
        rules::permit_settlement,
    },
    job::{
        AuditEntry, Claim, ClaimEnd, Claimant, Claimed, Draft, End, Entry, Fence, Holding, Job,
        JobKey, Location, MoveRecord, Outcome, Owner, Settlement, Stage, Term,
    },
};

const UUID: &str = "3f9a12cd-0000-4000-8000-000000000001";
const NAMES: [&str; 2] = ["board-a", "board-b"];

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    RequestLost,
    AnswerLost,
}

#[derive(Default)]
struct Side {
    job: Option<Job>,
    moves: Vec<MoveRecord>,
    ended: Vec<Job>,
}

impl Side {
    fn end(&mut self, outcome: Outcome, audit: Option<AuditEntry>) {
        let Some(mut job) = self.job.take() else {
            return;
        };
        job.location = Location::History;
        job.attempts.audit = audit;
        job.ended = Some(End {
            on: Utc::now(),
            outcome,
            owner: job.holding.take().and_then(|it| it.owner),
            claimed_on: None,
            has_succeeded: false,
        });
        self.ended.insert(0, job);
    }
}

#[derive(Default)]
struct State {
    sides: [Side; 2],
    fences: u64,
    performed: usize,
    fault: Option<(usize, Fault)>,
    has_history: bool,
    is_erased: bool,
}

#[derive(Default)]
pub(crate) struct MoveWorld(Mutex<State>);

impl MoveWorld {
    pub(crate) fn with_a_job_on(side: usize, has_history: bool) -> Self {
        let world = Self::default();
        world.0.lock().has_history = has_history;
        world.0.lock().sides[side].job = Some(Job {
            details: Some(json!({}).into()),
            ..Job::new(JobKey::new(UUID), UUID.to_owned(), "resize".to_owned())
        });
        world
    }

    pub(crate) fn lose_request(&self, actor: usize) {
        self.0.lock().fault = Some((actor, Fault::RequestLost));
    }

    pub(crate) fn lose_answer(&self, actor: usize) {
        self.0.lock().fault = Some((actor, Fault::AnswerLost));
    }

    /// Expires the leases of an owner; its other claims stay.
    pub(crate) fn expire(&self, owner: &Owner) {
        for side in &mut self.0.lock().sides {
            if let Some(job) = &mut side.job
                && let Some(holding) = &job.holding
                && (holding.owner.as_ref(), holding.end) == (Some(owner), ClaimEnd::Timed)
            {
                job.holding = None;
            }
        }
    }

    pub(crate) fn perform_the_rest(&self) {
        let mut state = self.0.lock();
        for side in 0..2 {
            let job = state.sides[side].job.take_if(|job| job.holding.is_none());
            state.performed += usize::from(job.is_some());
        }
    }

    pub(crate) fn require_one_claimable(&self, context: &impl Debug) {
        let state = self.0.lock();
        let is_free = |side: &Side| side.job.as_ref().is_some_and(|it| it.holding.is_none());
        let are_both = state.sides.iter().all(is_free);
        assert!(!are_both, "both copies can be claimed: {context:?}");
    }

    /// `movers` counts the moves and resumptions of the scene.
    pub(crate) fn require_performed_once(&self, movers: usize, context: &impl Debug) {
        let state = self.0.lock();
        let left: Vec<_> = state
            .sides
            .iter()
            .filter_map(|side| side.job.as_ref())
            .collect();
        // A resume or a second move that takes a running move for dead may leave its copy claimed, which is safe.
        let is_hasty = movers > 1;
        // Without history, the end of the job on the source leaves no trace: an operator has to decide.
        let is_kept = !state.has_history && left.len() == 1;
        assert!(
            state.performed == 1 && (left.is_empty() || is_hasty || is_kept)
                || state.performed == 0 && is_kept && state.is_erased,
            "performed {} times, left {left:?}: {context:?}",
            state.performed
        );
    }
}

pub(crate) struct MoveBoard {
    world: Arc<MoveWorld>,
    side: usize,
    /// `None` waits for no turn, and meets no fault.
    actor: Option<usize>,
}

impl MoveBoard {
    pub(crate) fn new(world: &Arc<MoveWorld>, side: usize, actor: Option<usize>) -> Self {
        let world = Arc::clone(world);
        Self { world, side, actor }
    }

    async fn request<T>(&self, request: impl FnOnce(&mut State, &mut Side) -> T) -> Result<T> {
        let mut is_first = self.actor.is_some();
        future::poll_fn(|_| match std::mem::take(&mut is_first) {
            true => Poll::Pending,
            false => Poll::Ready(()),
        })
        .await;
        let mut state = self.world.0.lock();
        let fault = state.fault.filter(|(actor, _)| Some(*actor) == self.actor);
        let lost = || BoardError::Unknown {
            board: self.url().to_owned(),
            source: "lost".into(),
        };
        if fault.is_some() {
            state.fault = None;
        }
        if fault.is_some_and(|(_, fault)| fault == Fault::RequestLost) {
            return Err(lost());
        }
        let mut side = std::mem::take(&mut state.sides[self.side]);
        let answer = request(&mut state, &mut side);
        state.sides[self.side] = side;
        match fault {
            Some(_) => Err(lost()),
            None => Ok(answer),
        }
    }

    pub(crate) async fn claim_as_peer(&self) -> bool {
        let by = Claimant {
            owner: Owner::new("peer").unwrap(),
            term: Term::Indefinite,
        };
        let claimed = self.request(|state, side| claim(state, side, &by)).await;
        claimed.is_ok_and(|claimed| claimed.is_ok())
    }

    pub(crate) async fn perform_as_peer(&self) {
        let performed = self.request(|state, side| {
            side.end(Outcome::Consumed, None);
            state.performed += 1;
        });
        performed.await.unwrap();
    }

    pub(crate) async fn erase(&self) {
        let erased = self.request(|state, side| {
            let before = side.moves.len();
            (side.moves).retain(|it| !matches!(it.stage, Stage::Committed { .. }));
            state.is_erased |= side.moves.len() < before;
        });
        erased.await.unwrap();
    }

    pub(crate) async fn force(&self) {
        let is_of_move = |job: &&mut Job| job.owner().is_some_and(Owner::is_of_move);
        let forced = self.request(|_, side| {
            let claimed = side.job.as_mut().filter(is_of_move);
            claimed.into_iter().for_each(|job| job.holding = None);
        });
        forced.await.unwrap();
    }
}

fn claim(state: &mut State, side: &mut Side, by: &Claimant) -> Result<Claimed> {
    let job = side.job.as_mut().ok_or(BoardError::NoSuchJob)?;
    if let Some(holding) = &job.holding {
        let owner = holding.owner.clone();
        return Err(BoardError::AlreadyClaimed { owner });
    }
    state.fences += 1;
    let fence = Fence(state.fences.to_string());
    let lease = match by.term {
        Term::Indefinite => ClaimEnd::Never,
        Term::For(_) | Term::Lease(_) => ClaimEnd::Timed,
    };
    job.holding = Some(Holding::new(
        Some(by.owner.clone()),
        lease,
        Some(fence.clone()),
    ));
    let job = job.clone();
    Ok(Claimed {
        job,
        fence,
        is_first: false,
    })
}

fn settle(side: &mut Side, settlement: &Settlement) -> Result<Settled> {
    let job = side.job.as_mut().ok_or(BoardError::NoSuchJob)?;
    permit_settlement(job.holding.as_ref(), settlement)?;
    match settlement.outcome() {
        Some((outcome, _)) => {
            side.end(outcome, settlement.audit.clone());
            side.moves.extend(settlement.commit.clone());
        }
        None => job.holding = None,
    }
    Ok(Settled::default())
}

#[async_trait]
impl Board for MoveBoard {
    fn url(&self) -> &str {
        NAMES[self.side]
    }

    async fn post(&self, drafts: &[Draft], by: Option<&Claimant>) -> Result<Vec<Result<Posted>>> {
        let post = |state: &mut State, side: &mut Side| {
            let posted = drafts.iter().map(|draft| {
                let (uuid, former) = (draft.uuid.to_string(), draft.former.as_ref());
                if side.job.is_some() {
                    let place = "board";
                    return Err(BoardError::Exists { uuid, place });
                }
                let key = JobKey::new(&uuid);
                side.job = Some(Job {
                    details: Some(draft.details.clone()),
                    attempts: former.map(|it| it.attempts.clone()).unwrap_or_default(),
                    ..Job::new(key.clone(), uuid, draft.name.clone())
                });
                let fence = Some(claim(state, side, by.unwrap())?.fence);
                let sequence = 1;
                Ok(Posted {
                    key,
                    sequence,
                    fence,
                })
            });
            posted.collect()
        };
        self.request(post).await
    }

    fn entries(&self, _: Query) -> BoxStream<'_, Result<Entry>> {
        let entries = self.request(|_, side| side.job.clone());
        let entries = async {
            let found = entries.await?.into_iter();
            Ok::<_, BoardError>(stream::iter(found.map(|job| Ok(Entry::Job(Box::new(job))))))
        };
        futures_util::TryStreamExt::try_flatten(stream::once(entries)).boxed()
    }

    async fn find(&self, location: Location, wanted: &[JobRef]) -> Result<Vec<Vec<Entry>>> {
        let find = |_: &mut State, side: &mut Side| {
            let job = side.job.clone().filter(|_| location == Location::Board);
            let found = job.map(|job| Entry::Job(Box::new(job)));
            vec![found.into_iter().collect(); wanted.len()]
        };
        match location {
            Location::Board => self.request(find).await,
            Location::History => {
                let ended = self.request(|state, side| {
                    let last = side.ended.first().filter(|_| state.has_history).cloned();
                    last.map(|job| Entry::Job(Box::new(job)))
                });
                Ok(vec![ended.await?.into_iter().collect(); wanted.len()])
            }
            // The trash is always empty.
            Location::Trash => Ok(vec![Vec::new(); wanted.len()]),
        }
    }

    async fn claim(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        _: usize,
        _: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let claim = |state: &mut State, side: &mut Side| {
            let claimed = keys.iter().map(|_| claim(state, side, by));
            claimed.collect()
        };
        match keys {
            [] => Ok(Vec::new()),
            _ => self.request(claim).await,
        }
    }

    async fn settle(&self, settlements: &[Settlement]) -> Result<Vec<Result<Settled>>> {
        let settle = |_: &mut State, side: &mut Side| {
            let settled = settlements.iter().map(|it| settle(side, it));
            settled.collect()
        };
        match settlements {
            [] => Ok(Vec::new()),
            _ => self.request(settle).await,
        }
    }

    async fn begin_move(&self, record: &MoveRecord) -> Result<()> {
        self.request(|_, side| side.moves.push(record.clone()))
            .await
    }

    async fn moves(&self) -> Result<Vec<MoveRecord>> {
        self.request(|_, side| side.moves.clone()).await
    }

    async fn end_moves(&self, records: &[MoveRecord]) -> Result<()> {
        let is_ended = |it: &MoveRecord| records.iter().any(|record| record.key() == it.key());
        match records {
            [] => Ok(()),
            _ => {
                self.request(|_, side| side.moves.retain(|it| !is_ended(it)))
                    .await
            }
        }
    }

    async fn renew(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        Ok(claims.iter().map(|_| Ok(())).collect())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            has_expiring_claims: true,
            finds_by_uuid: true,
            ..Capabilities::default()
        }
    }

    async fn close(&self) {}

    unasked! {
        lease_term revise purge events register publish registry pause resume pauses health
        examine
    }
}
