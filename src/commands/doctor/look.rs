//! What one look at the jobs shows, and what the conductors say of themselves.

use std::{collections::BTreeMap, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::TryStreamExt;

use crate::{
    board::{
        Board, BoardError, Detail, PeerOrder, Query,
        examine::{Code, Evidence, Examined, Finding, Remedy},
    },
    commands::parts::{
        liveness::{Overdue, is_silent},
        tally::{ByOwner, Figures, Tally, is_exhausted},
    },
    duration,
    job::{Conductor, Entry, Job, Shelf},
    output::short,
};

/// How many of many are named.
const NAMED: usize = 3;

/// How far clocks may be apart.
const APART: TimeDelta = TimeDelta::seconds(5);

/// How long claims are watched for whether they are renewed.
const PATIENCE: Duration = Duration::from_millis(1500);

/// What a look at the jobs has shown.
pub(super) struct Look {
    figures: Figures,
    owners: Vec<ByOwner>,
    trashed_beside: u64,
    /// The highest number of a job.
    pub(super) highest: Option<i64>,
    malformed: Vec<String>,
    unreadable: Vec<(String, String)>,
    blocked: Vec<String>,
    exhausted: Vec<String>,
    ahead: Vec<(String, TimeDelta)>,
    late: Vec<Entry>,
    has_commands: bool,
    /// Who has claimed a job as peers do.
    peer: Option<String>,
}

impl Look {
    /// Looks at all that is on the board.
    pub(super) async fn take(
        board: &dyn Board,
        conductors: &[Conductor],
    ) -> Result<Self, BoardError> {
        let now = Utc::now();
        let (mut tally, mut overdue) = (Tally::new(now), Overdue::new(board, conductors));
        let mut look = Self {
            figures: Figures::default(),
            owners: Vec::new(),
            trashed_beside: board.health().await?.trashed_beside,
            highest: None,
            malformed: Vec::new(),
            unreadable: Vec::new(),
            blocked: Vec::new(),
            exhausted: Vec::new(),
            ahead: Vec::new(),
            late: Vec::new(),
            has_commands: false,
            peer: None,
        };
        let mut entries = board.entries(Query::all(Shelf::Board, Detail::Whole));
        while let Some(entry) = entries.try_next().await? {
            tally.add(&entry);
            overdue.add(&entry);
            match &entry {
                Entry::Job(job) => look.add(job, now),
                Entry::Malformed(_) => look.malformed.push(entry.reference().into_owned()),
            }
        }
        drop(entries);
        look.late = overdue.not_renewed(board, PATIENCE).await?;
        (look.figures, _, look.owners) = tally.finish(conductors);
        Ok(look)
    }

    fn add(&mut self, job: &Job, now: DateTime<Utc>) {
        let reference = || job.reference().into_owned();
        let is_anybody_s = job.holding.as_ref().is_none_or(|it| it.owner.is_some());
        if job.is_blocked || !is_anybody_s {
            self.blocked.push(reference());
        } else if let Some(problem) = job.problem.as_ref().filter(|_| job.is_unfit) {
            self.unreadable.push((reference(), problem.clone()));
        }
        self.highest = self.highest.max(job.sequence);
        if is_exhausted(job) {
            self.exhausted.push(reference());
        }
        let claimed_on = job.holding.as_ref().and_then(|it| it.claimed_on);
        let latest = job.created_on.max(claimed_on).map(|time| time - now);
        if let Some(ahead) = latest.filter(|ahead| *ahead > APART) {
            self.ahead.push((reference(), ahead));
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
        if !self.malformed.is_empty() {
            let summary = match peers {
                None => "",
                Some(PeerOrder::NewestOfTheMostUrgent) => {
                    "; the next Python service that looks deletes them, or stops there"
                }
                Some(PeerOrder::OldestOfTheLeastUrgent) => {
                    "; they end each listing of every Python service"
                }
            };
            let summary = format!(
                "records that cannot be read: {}{summary}",
                self.malformed.len()
            );
            let remedy = Remedy::mends("trash --force --state MALFORMED");
            let finding = Finding::new(Code::Malformed, summary, remedy);
            seen.add(named(finding, "record", &self.malformed));
        }
        if let [(_, problem), ..] = &self.unreadable[..] {
            let jobs: Vec<_> = self.unreadable.iter().map(|(job, _)| job.clone()).collect();
            let what = format!("jobs beside which something cannot be read: {}", jobs.len());
            let remedy = Remedy::Mends(command("trash --force", &jobs));
            let finding = Finding::new(Code::RecordUnreadable, what, remedy);
            seen.add(named(finding.seen("problem", problem), "job", &jobs));
        }
        if self.trashed_beside > 0 {
            let summary = format!("jobs of other boards in the trash: {}", self.trashed_beside);
            let remedy = Remedy::shows("list --trash --shared");
            seen.add(Finding::new(Code::SharedTrash, summary, remedy));
        }
        seen
    }

    /// Says what is the matter with claims.
    pub(super) fn of_claims(&self) -> Examined {
        let mut seen = Examined::default();
        let figures = &self.figures;
        for of in self.owners.iter().filter(|of| of.is_dead) {
            let owner = of
                .owner
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default();
            let summary = format!("claims of {owner}, which is dead: {}", of.claims);
            let words = ["abandon", "--force", "--filter"].map(str::to_owned);
            let filter = format!("owner={}", quoted(&owner));
            let remedy = Remedy::Mends(words.into_iter().chain([filter]).collect());
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
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
        if !self.blocked.is_empty() {
            let summary = format!("jobs whose lock names nobody: {}", self.blocked.len());
            let remedy = Remedy::Mends(command("abandon --force", &self.blocked));
            let finding = Finding::new(Code::LockBroken, summary, remedy);
            seen.add(named(finding, "job", &self.blocked));
        }
        if !self.exhausted.is_empty() {
            let count = self.exhausted.len();
            let summary = format!("jobs that were tried as often as they may be: {count}");
            // Whether it is worth while somebody has to decide.
            let remedy = Remedy::Shows(command("retry", &self.exhausted));
            let finding = Finding::new(Code::Exhausted, summary, remedy);
            seen.add(named(finding, "job", &self.exhausted));
        }
        let furthest = self.ahead.iter().max_by_key(|(_, ahead)| *ahead);
        if let Some((job, ahead)) = furthest {
            let ahead = duration::brief(ahead.to_std().unwrap_or_default());
            let summary = format!("jobs with times that have not come: {}", self.ahead.len());
            let remedy = Remedy::shows(&format!("show {job}"));
            let finding = Finding::new(Code::ClockAhead, summary, remedy);
            seen.add(finding.seen("job", job).seen("ahead", ahead));
        }
        seen
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

/// Returns a command that acts on these jobs, or on as many of them as fit a line.
fn command(words: &str, jobs: &[String]) -> Vec<String> {
    let jobs = jobs.iter().take(20).cloned();
    let words = words.split(' ').map(str::to_owned);
    words.chain(jobs).collect()
}

/// Writes a value of a filter that means these characters and no others.
fn quoted(text: &str) -> String {
    let mut value = String::with_capacity(text.len() + 2);
    for character in text.chars() {
        match character {
            '*' | '?' | '[' => value.extend(['[', character, ']']),
            '"' => value.push_str("\"\""),
            character => value.push(character),
        }
    }
    format!("\"{value}\"")
}
