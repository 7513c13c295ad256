//! The data of a simulated board, and the changes that its server makes for clients.
//!
//! Claims and sessions expire by the server's clock. Delays use the clock that clients send, as on the real boards.
//! Settlements and expiries also check the program's rules; a violation fails the test.

mod checks;
mod expiry;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::Instant,
};

use crate::{
    board::{
        BoardError, ClaimRules, Event, EventKind, JobRef, Posted, Query, Result, Settled, Which,
        event::Subject,
        rules::{ClaimRequest, permit_owner, permit_settlement},
        wire::sidecar::Sidecar,
    },
    job::{
        Authority, Claim, ClaimEnd, Claimant, Claimed, Conductor, Decision, Draft, Entry,
        ExpectedState, Fence, Holding, Job, JobKey, Location, Owner, Pause, Revision, Settlement,
        Term,
    },
    process::{clock, simulation::Machine},
};

/// How claims end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimLifetime {
    /// Claims expire one by one, as on Redis.
    Expiry,
    /// Claims end with the session of their client, as on ZooKeeper.
    Session,
}

/// The time at which an event arrives, with the event or the error that ends the stream.
pub(super) type Delivery = (Instant, Result<Event>);

/// A job with its sidecar and its claim.
#[derive(Debug, Clone)]
struct Record {
    job: Job,
    side: Sidecar,
    hold: Option<Hold>,
}

impl Record {
    fn subject(&self) -> Subject {
        Subject {
            not_before: self.side.not_before,
            ..Subject::of(&self.job)
        }
    }
}

#[derive(Debug, Clone)]
struct Hold {
    owner: Owner,
    fence: u64,
    expiry: Expiry,
    /// The time of the claim by the server's clock.
    since: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expiry {
    Never,
    At(Duration),
    WithSession(u64),
}

/// A ZooKeeper session.
#[derive(Debug)]
struct Session {
    client: u32,
    until: Duration,
    /// How late the server that expires sessions learns of contacts, as a part of the term.
    lag: f64,
}

struct Subscriber {
    client: u32,
    /// The arrival of the latest event; later ones do not overtake it.
    last: Instant,
    sender: UnboundedSender<Delivery>,
}

/// The data on the server's disk.
#[derive(Debug, Clone, Default)]
struct Data {
    board: BTreeMap<JobKey, Record>,
    trash: BTreeMap<JobKey, Record>,
    consumed: BTreeSet<String>,
    sequence: i64,
}

pub(crate) struct Store {
    pub(super) machine: Arc<Machine>,
    pub(super) lifetime: ClaimLifetime,
    /// The rate of the server's clock.
    rate: f64,
    /// How far the clock was set forward.
    offset: Duration,
    /// The session timeout.
    term: Duration,
    data: Data,
    /// The data at an earlier moment, for a restart without the last writes.
    saved: Option<Data>,
    /// Fencing tokens come from the clock, so no restart repeats one.
    fences: u64,
    /// The jobs lost by a restart.
    lost: BTreeSet<String>,
    /// The settlements that their clients have not reported yet.
    unreported: BTreeMap<(String, Owner), Vec<EventKind>>,
    /// No claim and no session expires before this time.
    next_expiry: Duration,
    /// How many items of a batch take effect: the server may fail in the middle of a batch.
    pub(super) batch: usize,
    sessions: BTreeMap<u64, Session>,
    subscribers: Vec<Subscriber>,
    pub(crate) pauses: Vec<Pause>,
    pub(super) conductors: BTreeMap<String, (u32, Conductor)>,
    /// When jobs changed, for the bound on requests.
    changes: VecDeque<Instant>,
    /// Jobs after a forced release. Their commands may still run.
    forced: BTreeSet<String>,
}

impl Store {
    pub(super) fn new(
        machine: Arc<Machine>,
        lifetime: ClaimLifetime,
        rate: f64,
        term: Duration,
    ) -> Self {
        Self {
            machine,
            lifetime,
            rate,
            offset: Duration::ZERO,
            term,
            data: Data::default(),
            saved: None,
            fences: 0,
            lost: BTreeSet::new(),
            unreported: BTreeMap::new(),
            next_expiry: Duration::ZERO,
            batch: usize::MAX,
            sessions: BTreeMap::new(),
            subscribers: Vec::new(),
            pauses: Vec::new(),
            conductors: BTreeMap::new(),
            changes: VecDeque::new(),
            forced: BTreeSet::new(),
        }
    }

    fn now(&self) -> Duration {
        self.machine.uptime().mul_f64(self.rate) + self.offset
    }

    pub(super) fn changes_since(&mut self, since: Instant) -> usize {
        while self.changes.front().is_some_and(|it| *it < since) {
            self.changes.pop_front();
        }
        self.changes.len()
    }

    pub(super) fn subscribe(&mut self, client: u32) -> UnboundedReceiver<Delivery> {
        let (sender, receiver) = unbounded_channel();
        let last = Instant::now();
        self.subscribers.push(Subscriber {
            client,
            last,
            sender,
        });
        receiver
    }

    /// Breaks the connections of one client or of all.
    pub(super) fn disconnect(&mut self, of: Option<u32>) {
        let is_broken = |it: &Subscriber| of.is_none_or(|client| client == it.client);
        for subscriber in self.subscribers.iter().filter(|it| is_broken(it)) {
            let _ = subscriber
                .sender
                .send((subscriber.last.max(Instant::now()), Err(away())));
        }
        self.subscribers.retain(|it| !is_broken(it));
    }

    fn announce(&mut self, kind: EventKind, subject: Subject, owner: Option<Owner>) {
        self.publish(&Event {
            subject: Some(subject),
            owner,
            ..Event::now(kind)
        });
    }

    pub(super) fn publish(&mut self, event: &Event) {
        let now = Instant::now();
        self.changes.push_back(now);
        let machine = Arc::clone(&self.machine);
        self.subscribers.retain_mut(|subscriber| {
            let (delay, times) = machine.with_dice(|dice| {
                let longest = Duration::from_millis(if dice.below(50) == 0 { 3000 } else { 30 });
                let delay = dice.between((Duration::ZERO, longest));
                (delay, if dice.below(100) == 0 { 2 } else { 1 })
            });
            subscriber.last = subscriber.last.max(now + delay);
            (0..times).all(|_| {
                let delivery = (subscriber.last, Ok(event.clone()));
                subscriber.sender.send(delivery).is_ok()
            })
        });
    }

    fn holding(&self, record: &Record) -> Option<Holding> {
        let hold = record.hold.as_ref()?;
        Some(Holding {
            owner: Some(hold.owner.clone()),
            end: match hold.expiry {
                Expiry::Never => ClaimEnd::Never,
                Expiry::At(_) => ClaimEnd::Timed,
                Expiry::WithSession(_) => ClaimEnd::Session,
            },
            expires_in: self.time_left(hold),
            outlives: None,
            claimed_on: Some(self.machine.epoch() + hold.since),
            fence: Some(Fence(hold.fence.to_string())),
        })
    }

    /// Returns a job as clients read it.
    fn job_of(&self, record: &Record, location: Location) -> Job {
        Job {
            attempts: record.side.clone().into_attempts(),
            holding: self.holding(record),
            trashed_on: record.side.trashed_on,
            location,
            ..record.job.clone()
        }
    }

    fn records(&self, location: Location) -> &BTreeMap<JobKey, Record> {
        match location {
            Location::Trash => &self.data.trash,
            Location::Board | Location::History => &self.data.board,
        }
    }

    pub(super) fn entries(&self, query: Query) -> Vec<Entry> {
        let records = self.records(query.location).values();
        let wanted = records.filter(|it| query.which == Which::All || it.hold.is_none());
        let mut jobs: Vec<_> = wanted.map(|it| self.job_of(it, query.location)).collect();
        jobs.sort_by_key(Job::rank);
        let entries = jobs.into_iter().map(|job| Entry::Job(Box::new(job)));
        entries.collect()
    }

    pub(super) fn find(&self, location: Location, wanted: &[JobRef]) -> Vec<Vec<Entry>> {
        let find = |wanted: &JobRef| match wanted {
            JobRef::Key(key) => self.records(location).get(key),
            JobRef::Uuid(_) | JobRef::Sequence(_) => None,
        };
        let entry = |record| Entry::Job(Box::new(self.job_of(record, location)));
        let found = wanted.iter().map(|it| find(it).map(entry));
        found.map(|it| it.into_iter().collect()).collect()
    }

    pub(super) fn post(&mut self, draft: &Draft) -> Result<Posted> {
        let (key, uuid) = (JobKey::new(draft.uuid.to_string()), draft.uuid.to_string());
        if self.data.board.contains_key(&key) {
            let place = "board";
            return Err(BoardError::Exists { uuid, place });
        }
        self.data.sequence += 1;
        let job = Job {
            priority: draft.priority,
            sequence: Some(self.data.sequence),
            created_on: Some(clock::wall()),
            details: Some(draft.details.clone()),
            ..Job::new(key.clone(), uuid.clone(), draft.name.clone())
        };
        let (side, hold) = (Sidecar::default(), None);
        let record = Record { job, side, hold };
        self.machine.note(format_args!("posted {uuid}"));
        self.announce(EventKind::Posted, record.subject(), None);
        self.data.board.insert(key.clone(), record);
        Ok(Posted {
            key,
            sequence: self.data.sequence,
            fence: None,
        })
    }

    pub(super) fn claim(
        &mut self,
        session: u64,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Vec<Result<Claimed>> {
        let (mut answers, mut won) = (Vec::new(), 0);
        for key in keys.iter().take(self.batch) {
            if won == most {
                break;
            }
            let answer = self.claim_one(session, key, ClaimRequest::after(won, by, rules));
            won += usize::from(answer.is_ok());
            answers.push(answer);
        }
        answers
    }

    fn claim_one(
        &mut self,
        session: u64,
        key: &JobKey,
        request: ClaimRequest<'_>,
    ) -> Result<Claimed> {
        let (now, wall) = (self.now(), clock::wall());
        let record = self.data.board.get_mut(key).ok_or(BoardError::NoSuchJob)?;
        if let Some(hold) = &record.hold {
            let owner = Some(hold.owner.clone());
            return Err(BoardError::AlreadyClaimed { owner });
        }
        request.permit(&record.side, wall)?;
        self.fences += 1;
        if let Some(term) = request.by.term.duration() {
            self.next_expiry = self.next_expiry.min(now + term);
        }
        let side = &mut record.side;
        let is_first = side.first_claimed_on.is_none();
        side.first_claimed_on = side.first_claimed_on.or(Some(wall));
        side.attempts += u32::from(request.is_counted());
        side.ahead = request.is_ahead;
        record.hold = Some(Hold {
            owner: request.by.owner.clone(),
            fence: self.fences,
            expiry: match (request.by.term, self.lifetime) {
                (Term::Indefinite, _) => Expiry::Never,
                (Term::Lease(_), ClaimLifetime::Session) => Expiry::WithSession(session),
                (Term::For(term) | Term::Lease(term), _) => Expiry::At(now + term),
            },
            since: now,
        });
        let (uuid, owner) = (record.job.uuid.clone(), request.by.owner.clone());
        let subject = record.subject();
        self.forced.remove(&uuid);
        self.machine.note(format_args!("claimed {uuid} by {owner}"));
        self.announce(EventKind::Claimed, subject, Some(owner));
        let record = &self.data.board[key];
        Ok(Claimed {
            job: self.job_of(record, Location::Board),
            fence: Fence(self.fences.to_string()),
            is_first,
        })
    }

    pub(super) fn renew(&mut self, session: u64, claim: &Claim) -> Result<()> {
        let end = self.now() + claim.term;
        let record = self
            .data
            .board
            .get(&claim.key)
            .ok_or(BoardError::NoSuchJob)?;
        let held = self.holding(record);
        permit_owner(held.as_ref(), &claim.owner, claim.fence.as_ref())?;
        match self
            .data
            .board
            .get_mut(&claim.key)
            .and_then(|it| it.hold.as_mut())
        {
            Some(Hold {
                expiry: Expiry::At(until),
                ..
            }) => *until = end,
            Some(Hold {
                expiry: Expiry::WithSession(of),
                ..
            }) if *of != session => return Err(BoardError::Changed),
            _ => {}
        }
        Ok(())
    }

    pub(super) fn settle(&mut self, settlement: &Settlement) -> Result<Settled> {
        let record = self
            .data
            .board
            .get(&settlement.key)
            .ok_or(BoardError::NoSuchJob)?;
        let holding = self.holding(record);
        permit_settlement(holding.as_ref(), settlement)?;
        if let Authority::Force(ExpectedState::Claimed { fence, .. }) = &settlement.authority
            && *fence != holding.and_then(|it| it.fence)
        {
            let text = "an operator ends another claim than the one it saw";
            self.machine.violate(text.to_owned());
        }
        let (wall, decision) = (clock::wall(), &settlement.decision);
        let Some(mut record) = self.data.board.remove(&settlement.key) else {
            return Err(BoardError::NoSuchJob);
        };
        record.side.settle(settlement);
        let hold = record.hold.take();
        let owner = hold.map(|hold| hold.owner);
        let uuid = record.job.uuid.clone();
        let is_forced = matches!(settlement.authority, Authority::Force(_));
        if is_forced {
            self.forced.insert(uuid.clone());
        } else if let running = self.machine.guarded_of(&uuid)
            && !running.is_empty()
            && !self.machine.excuses(&uuid)
        {
            let text = format!("job {uuid} is settled while its command runs: {running:?}");
            self.machine.violate(text);
        }
        let kind = kind_of(decision);
        self.machine.note(format_args!("{kind} {uuid}"));
        if let Some(owner) = owner.clone().filter(|_| !is_forced) {
            let unreported = self.unreported.entry((uuid.clone(), owner));
            unreported.or_default().push(kind);
        }
        self.announce(kind, record.subject(), owner);
        let key = settlement.key.clone();
        match kind {
            EventKind::Abandoned => _ = self.data.board.insert(key, record),
            EventKind::Trashed => {
                record.side.trashed_on = Some(wall);
                self.data.trash.insert(key, record);
            }
            _ => {
                if !self.machine.has_succeeded(&uuid) {
                    let text = format!("job {uuid} is consumed, and no command succeeded");
                    self.machine.violate(text);
                }
                self.data.consumed.insert(uuid);
            }
        }
        Ok(Settled::default())
    }

    pub(super) fn revise(&mut self, revision: &Revision) -> Result<()> {
        let wall = clock::wall();
        let is_trashed = revision.location == Location::Trash;
        let location = if is_trashed {
            &mut self.data.trash
        } else {
            &mut self.data.board
        };
        let record = location.get(&revision.key).ok_or(BoardError::NoSuchJob)?;
        if let Some(hold) = &record.hold {
            let owner = Some(hold.owner.clone());
            return Err(BoardError::AlreadyClaimed { owner });
        }
        let side = record.side.clone().restarted(revision, wall)?;
        let Some(mut record) = location.remove(&revision.key) else {
            return Err(BoardError::NoSuchJob);
        };
        record.side = side;
        self.machine
            .note(format_args!("restored {}", record.job.uuid));
        self.announce(EventKind::Restored, record.subject(), None);
        self.data.board.insert(revision.key.clone(), record);
        Ok(())
    }
}

pub(crate) fn kind_of(decision: &Decision) -> EventKind {
    match decision {
        Decision::Abandon(_) => EventKind::Abandoned,
        Decision::Consume | Decision::ConsumeFailed(_) => EventKind::Consumed,
        Decision::Trash(_) | Decision::Spent(_) => EventKind::Trashed,
    }
}

pub(super) fn away() -> BoardError {
    BoardError::Unreachable {
        board: "simulated".to_owned(),
        source: "no reply".into(),
    }
}
