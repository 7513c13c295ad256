//! What one look at the jobs shows, and what the conductors say of themselves.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;

use super::report::FIT;
use crate::{
    board::{
        Board, BoardError, Detail, PeerOrder, Query,
        examine::{Code, Evidence, Examined, Finding, Remedy},
    },
    commands::parts::{
        liveness::{Overdue, is_nobody_s, is_silent},
        tally::{ByName, ByOwner, Figures, Tally, is_exhausted},
    },
    duration, glob,
    job::{Conductor, Entry, Job, Shelf},
    output::short,
};

/// How many of many are named.
const NAMED: usize = 3;

/// How far clocks may be apart.
const APART: TimeDelta = TimeDelta::seconds(5);

/// How many jobs are mended at once at most.
const MENDED: usize = 1000;

/// How long claims are watched for whether they are renewed.
const PATIENCE: Duration = Duration::from_millis(1500);

/// Records with which something is the matter, of which as many are named as are mended at once.
#[derive(Default)]
struct Noted {
    count: usize,
    first: Vec<String>,
}

impl Noted {
    fn push(&mut self, job: String) {
        self.count += 1;
        if self.first.len() < MENDED {
            self.first.push(job);
        }
    }
}

/// What a look at the jobs has shown.
#[derive(Default)]
pub(crate) struct Look {
    pub(crate) figures: Figures,
    pub(crate) names: Vec<ByName>,
    /// Whether rare names were not counted, as there are so many.
    pub(crate) has_more_names: bool,
    pub(crate) owners: Vec<ByOwner>,
    trashed_beside: u64,
    /// The highest number of a job.
    pub(super) highest: Option<i64>,
    /// Those that nobody has, and those that somebody has all the same.
    malformed: [Noted; 2],
    unreadable: Noted,
    /// What is the matter with one of those.
    problem: Option<String>,
    /// Those whose lock names nobody, and those of which it cannot be read whom it names.
    blocked: [Noted; 2],
    /// Those of which we may not read the posting or what is beside it, and those of which the lock.
    denied: [Noted; 2],
    /// The claims that may be ended, by owner.
    nobody_s: BTreeMap<String, Noted>,
    exhausted: Noted,
    /// How many jobs have times that have not come, and the one that is furthest ahead.
    ahead: usize,
    furthest: Option<(TimeDelta, String)>,
    late: Vec<Entry>,
    has_commands: bool,
    /// Who has claimed a job as peers do.
    peer: Option<String>,
}

/// A look at the jobs, as they come.
pub(crate) struct Looking {
    look: Look,
    tally: Tally,
    overdue: Overdue,
    /// `None`: nothing is known of them.
    conductors: Option<Vec<Conductor>>,
    /// `None`: now, whenever that is.
    at: Option<DateTime<Utc>>,
}

impl Looking {
    pub(crate) fn new(
        board: &dyn Board,
        conductors: Option<&[Conductor]>,
        trashed_beside: u64,
        tally: Tally,
    ) -> Self {
        Self {
            look: Look {
                trashed_beside,
                ..Look::default()
            },
            overdue: Overdue::new(board, conductors.unwrap_or_default()),
            conductors: conductors.map(<[_]>::to_vec),
            at: None,
            tally,
        }
    }

    /// Has times judged as of a time that somebody has chosen.
    pub(crate) fn judged_at(self, at: Option<DateTime<Utc>>) -> Self {
        Self { at, ..self }
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        self.tally.add(entry);
        self.overdue.add(entry);
        self.look
            .sort(entry, mends(entry, self.conductors.as_deref()));
        if let Entry::Job(job) = entry {
            // It takes a while until the last one has come.
            self.look.add(job, self.at.unwrap_or_else(Utc::now));
        }
    }

    /// Looks again at what one look cannot tell.
    pub(crate) async fn finish(mut self, board: &dyn Board) -> Result<Look, BoardError> {
        let look = &mut self.look;
        look.late = self.overdue.not_renewed(board, PATIENCE).await?;
        let known = self.conductors.as_deref().unwrap_or_default();
        look.has_more_names = self.tally.has_dropped;
        (look.figures, look.names, look.owners) = self.tally.finish(known);
        Ok(self.look)
    }
}

impl Look {
    /// Looks at all that is on the board.
    pub(super) async fn take(
        board: &dyn Board,
        conductors: Option<&[Conductor]>,
        trashed_beside: u64,
    ) -> Result<Self, BoardError> {
        let tally = Tally::new(Utc::now());
        let mut looking = Looking::new(board, conductors, trashed_beside, tally);
        let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
        while let Some(entry) = entries.try_next().await? {
            looking.add(&entry);
        }
        drop(entries);
        looking.finish(board).await
    }

    /// Notes what is the matter with a record or its claim.
    fn sort(&mut self, entry: &Entry, mended: Option<Code>) {
        let reference = entry.reference().into_owned();
        let holding = entry.holding();
        let is_anybody_s = holding.is_none_or(|it| it.owner.is_some());
        if let (Some(Code::HeldByDead), Some(owner)) =
            (mended, holding.and_then(|it| it.owner.as_ref()))
        {
            let of_owner = self.nobody_s.entry(owner.to_string()).or_default();
            of_owner.push(reference.clone());
        }
        let is_denied = match entry {
            Entry::Job(job) => job.is_denied,
            Entry::Malformed(record) => record.is_denied,
        };
        match entry {
            _ if is_denied => self.denied[usize::from(!is_anybody_s)].push(reference),
            Entry::Malformed(_) => {
                self.malformed[usize::from(mended.is_none())].push(reference);
            }
            Entry::Job(job) if job.is_blocked || !is_anybody_s => {
                self.blocked[usize::from(mended.is_none())].push(reference);
            }
            Entry::Job(job) if job.is_unfit => {
                self.problem = self.problem.take().or_else(|| job.problem.clone());
                self.unreadable.push(reference);
            }
            Entry::Job(_) => {}
        }
    }

    fn add(&mut self, job: &Job, now: DateTime<Utc>) {
        let reference = || job.reference().into_owned();
        self.highest = self.highest.max(job.sequence);
        if is_exhausted(job) {
            self.exhausted.push(reference());
        }
        let claimed_on = job.holding.as_ref().and_then(|it| it.claimed_on);
        let latest = job.created_on.max(claimed_on).map(|time| time - now);
        if let Some(ahead) = latest.filter(|ahead| *ahead > APART) {
            self.ahead += 1;
            if self
                .furthest
                .as_ref()
                .is_none_or(|(known, _)| ahead > *known)
            {
                self.furthest = Some((ahead, reference()));
            }
        }
        let details = job.details.as_ref();
        self.has_commands |= details.is_some_and(|details| details.get("command").is_some());
        // Each claim of ours is numbered.
        if let Some(holding) = job.holding.as_ref().filter(|it| it.fence.is_none()) {
            let owner = holding.owner.as_ref();
            self.peer = owner.map(ToString::to_string).or(self.peer.take());
        }
    }

    /// Says what is the matter with the records of jobs.
    pub(super) fn of_keys(&self, peers: Option<PeerOrder>) -> Examined {
        let mut seen = Examined::default();
        let [mended, held] = &self.malformed;
        let remedies = [
            ("", mended, Remedy::mends("trash --force", &mended.first)),
            (", of which somebody has each", held, shows("show", held)),
        ];
        for (which, malformed, remedy) in remedies.into_iter().filter(|(_, all, _)| all.count > 0) {
            let summary = match peers {
                None => "",
                Some(PeerOrder::NewestOfTheMostUrgent) => {
                    "; the next Python service that looks deletes them, or stops there"
                }
                Some(PeerOrder::OldestOfTheLeastUrgent) => {
                    "; they end each listing of every Python service"
                }
            };
            let count = malformed.count;
            let summary = format!("records that cannot be read: {count}{which}{summary}");
            let finding = Finding::new(Code::Malformed, summary, remedy);
            seen.add(named(finding, "record", &malformed.first));
        }
        let Noted { count, first } = &self.unreadable;
        if *count > 0 {
            let what = format!("jobs beside which something cannot be read: {count}");
            // It may be one that a later jobboard wrote, or one that is too large for us.
            let remedy = shows("show", &self.unreadable);
            let finding = Finding::new(Code::RecordUnreadable, what, remedy);
            let problem = self.problem.as_deref().unwrap_or_default();
            seen.add(named(finding.seen("problem", problem), "job", first));
        }
        if self.trashed_beside > 0 {
            let summary = format!("jobs of other boards in the trash: {}", self.trashed_beside);
            let remedy = Remedy::shows("list --trash --shared");
            seen.add(Finding::new(Code::SharedTrash, summary, remedy));
        }
        unseen(&mut seen, "records that we may not read", &self.denied[0]);
        seen
    }

    /// Says what is the matter with claims.
    pub(super) fn of_claims(&self) -> Examined {
        let mut seen = Examined::default();
        let figures = &self.figures;
        unseen(&mut seen, "locks that we may not read", &self.denied[1]);
        for of in self.owners.iter().filter(|of| of.is_dead) {
            self.of_dead(of, &mut seen);
        }
        let dead = self.owners.iter().filter(|of| of.is_dead);
        let of_dead = dead.map(|of| of.never_lapsing).sum::<u64>();
        if figures.forgotten > of_dead {
            let summary = format!(
                "claims that never lapse, held for more than 1h: {}",
                figures.forgotten
            );
            let remedy = Remedy::shows("list --filter expires=none --filter held>1h --sort held");
            let longest = figures.longest_held.as_ref();
            let finding = Finding::new(Code::NeverLapsing, summary, remedy);
            seen.add(match longest.and_then(|it| it.owner.as_ref()) {
                Some(owner) => finding.seen("owner", owner),
                None => finding,
            });
        }
        if !self.late.is_empty() {
            let summary = format!(
                "claims that are not renewed by whoever keeps them: {}",
                self.late.len()
            );
            let remedy = Remedy::shows("list --filter expires<10s --sort expires");
            let finding = Finding::new(Code::NotRenewed, summary, remedy);
            let holders = self.late.iter().filter_map(|entry| {
                let holding = entry.holding()?;
                let left = duration::brief(holding.expires_in.unwrap_or_default());
                let owner = holding.owner.as_ref()?;
                Some(format!(
                    "{} by {owner}, {left} left",
                    short(&entry.reference())
                ))
            });
            let holders: Vec<_> = holders.take(NAMED).collect();
            seen.add(named(finding, "claim", &holders));
        }
        self.of_locks(&mut seen);
        if self.exhausted.count > 0 {
            let count = self.exhausted.count;
            let summary = format!("jobs that were tried as often as they may be: {count}");
            // Whether it is worth while somebody has to decide.
            let remedy = shows("retry", &self.exhausted);
            let finding = Finding::new(Code::Exhausted, summary, remedy);
            seen.add(named(finding, "job", &self.exhausted.first));
        }
        if let Some((ahead, job)) = &self.furthest {
            let ahead = duration::brief(ahead.to_std().unwrap_or_default());
            let summary = format!("jobs with times that have not come: {}", self.ahead);
            let remedy = Remedy::shows(&format!("show {job}"));
            let finding = Finding::new(Code::ClockAhead, summary, remedy);
            seen.add(finding.seen("job", job).seen("ahead", ahead));
        }
        seen
    }

    /// Tells locks that do not say who has the job.
    fn of_locks(&self, seen: &mut Examined) {
        let [vacant, unknown] = &self.blocked;
        let remedies = [
            (
                "jobs whose lock names nobody",
                vacant,
                Remedy::mends("abandon --force", &vacant.first),
            ),
            (
                "claimed jobs of which it cannot be read who has them",
                unknown,
                shows("show", unknown),
            ),
        ];
        for (what, jobs, remedy) in remedies.into_iter().filter(|(_, all, _)| all.count > 0) {
            let summary = format!("{what}: {}", jobs.count);
            let finding = Finding::new(Code::LockBroken, summary, remedy);
            seen.add(named(finding, "job", &jobs.first));
        }
    }

    /// Tells the claims of somebody who is dead, and of these apart those of which that is sure.
    fn of_dead(&self, of: &ByOwner, seen: &mut Examined) {
        let Some(owner) = of.owner.as_ref().map(ToString::to_string) else {
            return;
        };
        let nothing = Noted::default();
        let sure = self.nobody_s.get(&owner).unwrap_or(&nothing);
        if sure.count > 0 {
            let summary = format!("claims of {owner}, which is dead: {}", sure.count);
            let owner = format!("--owner={owner}");
            let words = ["abandon", "--force", &owner].map(str::to_owned);
            let remedy = Remedy::Mends(words.to_vec(), sure.first.clone());
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
        }
        let rest = of.claims - sure.count as u64;
        if rest > 0 {
            let summary = format!("claims of {owner}, which seems to be dead: {rest}");
            let filter = format!("owner={}", quoted(&owner));
            let words = ["list", "--filter", &filter].map(str::to_owned);
            let remedy = Remedy::Shows(words.to_vec());
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
        }
    }

    /// Says what is the matter with those who perform the jobs.
    pub(super) fn of_conductors(&self, conductors: &[Conductor]) -> Examined {
        let mut seen = Examined::default();
        if conductors.is_empty() && self.figures.unclaimed > self.figures.held_back {
            let summary = format!(
                "no conductor is at work; jobs that wait: {}",
                self.figures.unclaimed
            );
            let remedy = Remedy::shows("conductors");
            seen.add(Finding::new(Code::NoConductor, summary, remedy));
        }
        let peers = conductors.iter().find(|it| it.told.version.is_none());
        let peer = peers.map(|it| it.name.clone()).or(self.peer.clone());
        if let Some(peer) = peer.filter(|_| self.has_commands) {
            let summary =
                "there are jobs with commands, and somebody else than jobboard takes jobs";
            let remedy = Remedy::shows("list --count --by owner");
            let finding = Finding::new(Code::CommandsAndPeers, summary, remedy);
            seen.add(finding.seen("peer", peer));
        }
        seen
    }
}

/// Says which of the faults that a record may have can be mended unasked, if it is one of these.
///
/// Without the conductors nothing is known of who is dead.
pub(super) fn mends(entry: &Entry, conductors: Option<&[Conductor]>) -> Option<Code> {
    match (entry, entry.holding()) {
        (Entry::Malformed(record), None) => (!record.is_denied).then_some(Code::Malformed),
        (Entry::Malformed(_), Some(_)) => None,
        (Entry::Job(job), _) if job.is_denied => None,
        (Entry::Job(job), _) if job.is_blocked => Some(Code::LockBroken),
        (Entry::Job(_), Some(holding)) => {
            is_nobody_s(holding, conductors?).then_some(Code::HeldByDead)
        }
        (Entry::Job(_), None) => None,
    }
}

/// Says what conductors tell of themselves that is the matter.
pub(super) fn of_entries(conductors: &[Conductor]) -> Examined {
    let mut seen = Examined::default();
    let mut by_owner = BTreeMap::<_, Vec<_>>::new();
    for it in conductors {
        let whole = |name: &str| Remedy::Shows(vec!["conductors".to_owned(), name.to_owned()]);
        by_owner.entry(&it.owner).or_default().push(it);
        if is_silent(it) {
            let summary = format!("{} on {} says nothing", it.name, it.host);
            let heard = it.silence.map(duration::brief);
            let finding = Finding::new(Code::Silent, summary, whole(&it.name));
            seen.add(finding.seen("heard", heard.unwrap_or_default() + " ago"));
        }
        if let Some(job) = it.told.unsettled.first() {
            let count = it.told.unsettled.len();
            let summary = format!(
                "{} has performed jobs that it cannot settle: {count}",
                it.name
            );
            let finding = Finding::new(Code::Unsettled, summary, whole(&it.name));
            seen.add(finding.seen("job", &job.uuid).seen("reason", &job.reason));
        }
    }
    for (owner, all) in by_owner.into_iter().filter(|(_, all)| all.len() > 1) {
        let summary = format!("conductors that claim as {owner}: {}", all.len());
        let finding = Finding::new(Code::SameName, summary, Remedy::shows("conductors"));
        let places = all.iter().map(|it| format!("{}:{}", it.host, it.pid));
        seen.add(named(finding, "conductor", &places.collect::<Vec<_>>()));
    }
    seen
}

/// Adds the first few of many as evidence.
fn named(mut finding: Finding, what: &'static str, all: &[String]) -> Finding {
    let first = all.iter().take(NAMED);
    finding.evidence.extend(first.map(|value| Evidence {
        what,
        value: value.clone(),
    }));
    finding
}

/// Returns a command that is about these jobs, or about as many of them as fit a line.
fn shows(word: &str, jobs: &Noted) -> Remedy {
    let jobs = jobs.first.iter().take(FIT).cloned();
    Remedy::Shows([word.to_owned()].into_iter().chain(jobs).collect())
}

/// Says of jobs that something of them could not be seen.
fn unseen(seen: &mut Examined, what: &str, jobs: &Noted) {
    if let Some(first) = jobs.first.first() {
        seen.unseen(format!("{what}: {}, such as {first}", jobs.count), None);
    }
}

/// Writes a value of a filter that means these characters and no others.
fn quoted(text: &str) -> String {
    format!("\"{}\"", glob::literal(text).replace('"', "\"\""))
}
