//! Findings from the pass over the jobs, and from the conductors' status.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{TimeDelta, Utc};

use super::{Look, Noted};
use crate::{
    board::{
        PeerOrder,
        examine::{Code, Evidence, Examined, Finding, Remedy},
    },
    commands::{
        doctor::report::FIT,
        parts::{
            liveness::{has_mover_ended, is_silent},
            tally::ByOwner,
        },
    },
    config::Expiry,
    duration, glob,
    job::{Conductor, MoveRecord, Stage},
    output::short,
    suggest::Suggestion,
};

/// A move on another machine counts as interrupted after this long.
const MOVED: TimeDelta = TimeDelta::hours(1);

const NAMED: usize = 3;

/// The number of dead owners with their own finding.
const MOST_DEAD: usize = 100;

impl Look {
    pub(in crate::commands::doctor) fn of_keys(&self, peers: Option<PeerOrder>) -> Examined {
        let mut seen = Examined::default();
        let [mended, held] = &self.malformed;
        let remedies = [
            ("", mended, Remedy::mends("trash --force", &mended.first)),
            (", each claimed", held, shows("show", held)),
        ];
        for (which, malformed, remedy) in remedies.into_iter().filter(|(_, all, _)| all.count > 0) {
            let summary = match peers {
                None => "",
                Some(PeerOrder::NewestOfTheMostUrgent) => {
                    "; the next Python service that lists the board deletes them or stops"
                }
                Some(PeerOrder::OldestOfTheLeastUrgent) => {
                    "; every listing by a Python service stops at them"
                }
            };
            let count = malformed.count;
            let summary = format!("unreadable records: {count}{which}{summary}");
            let finding = Finding::new(Code::Malformed, summary, remedy);
            seen.add(named(finding, "record", &malformed.first));
        }
        let Noted { count, first } = &self.unreadable;
        if *count > 0 {
            let what = format!("jobs with an unreadable sidecar: {count}");
            // A later jobboard may have written it, or it is too large.
            let remedy = shows("show", &self.unreadable);
            let finding = Finding::new(Code::RecordUnreadable, what, remedy);
            let problem = self.problem.as_deref().unwrap_or_default();
            seen.add(named(finding.seen("problem", problem), "job", first));
        }
        if self.misnamed.count > 0 {
            let summary = format!(
                "jobs with the uuid of another record: {}",
                self.misnamed.count
            );
            let remedy = shows("explain", &self.misnamed);
            let finding = Finding::new(Code::ForeignUuid, summary, remedy);
            seen.add(named(finding, "job", &self.misnamed.first));
        }
        if self.trashed_beside > 0 {
            let summary = format!("jobs of other boards in the trash: {}", self.trashed_beside);
            let remedy = Remedy::shows("list --trash --shared");
            seen.add(Finding::new(Code::SharedTrash, summary, remedy));
        }
        unseen(
            &mut seen,
            "records without read permission",
            &self.denied[0],
        );
        seen
    }

    /// Reports problems of claims; claims on Octavia boards expire.
    pub(in crate::commands::doctor) fn of_claims(&self, octavia: Option<Expiry>) -> Examined {
        let mut seen = Examined::default();
        if let Some(expiry) = octavia {
            self.of_octavia(expiry, &mut seen);
        }
        let figures = &self.figures;
        unseen(&mut seen, "locks without read permission", &self.denied[1]);
        self.of_the_dead(&mut seen);
        let dead = self.owners.iter().filter(|of| of.is_dead);
        let of_dead = dead.map(|of| of.claim_never_expires).sum::<u64>();
        if figures.forgotten > of_dead {
            let summary = format!(
                "claims without expiry, held for more than 1h: {}",
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
                "claims that their owner stopped renewing: {}",
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
        self.of_moves(&mut seen);
        self.of_locks(&mut seen);
        if self.exhausted.count > 0 {
            let count = self.exhausted.count;
            let summary = format!("jobs at their retry limit: {count}");
            // A retry is the operator's decision.
            let remedy = shows("retry", &self.exhausted);
            let finding = Finding::new(Code::Exhausted, summary, remedy);
            seen.add(named(finding, "job", &self.exhausted.first));
        }
        if let Some((ahead, job)) = &self.furthest {
            let ahead = duration::brief(ahead.to_std().unwrap_or_default());
            let summary = format!("jobs with timestamps in the future: {}", self.ahead);
            let remedy = Remedy::Shows(Suggestion::of("show").with([job]));
            let finding = Finding::new(Code::ClockAhead, summary, remedy);
            seen.add(finding.seen("job", job).seen("ahead", ahead));
        }
        seen
    }

    /// Reports the oldest job if it blocks posters on an Octavia board.
    fn of_octavia(&self, expiry: Expiry, seen: &mut Examined) {
        let Some(job) = &self.figures.oldest else {
            return;
        };
        let now = self.at.unwrap_or_else(Utc::now);
        if expiry.in_the_way(job.since, now).is_some() {
            let age = duration::between(job.since, now);
            let summary = format!(
                "the oldest job has been on the board for {age}: {}",
                job.name
            );
            let remedy = Remedy::Shows(Suggestion::of("explain").with([&job.reference]));
            let finding = Finding::new(Code::BlocksPosters, summary, remedy);
            let finding = finding.seen("job", &job.reference);
            seen.add(match &job.owner {
                Some(owner) => finding.seen("owner", owner),
                None => finding,
            });
        }
    }

    fn of_moves(&self, seen: &mut Examined) {
        for (from, copies) in &self.moves {
            let summary = format!("copies held by an unfinished move: {}", copies.count);
            let remedy = match from.as_str() {
                "" => Remedy::shows("list --filter owner=move:*"),
                from => resumes("--from", from),
            };
            let finding = Finding::new(Code::UnfinishedMove, summary, remedy).seen("from", from);
            seen.add(named(finding, "job", &copies.first));
        }
    }

    fn of_locks(&self, seen: &mut Examined) {
        let [vacant, unknown] = &self.blocked;
        let remedies = [
            (
                "jobs with a lock but no owner",
                vacant,
                Remedy::mends("abandon --force", &vacant.first),
            ),
            (
                "claimed jobs with an unreadable owner",
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

    /// Reports the claims of dead owners; beyond a number, together.
    fn of_the_dead(&self, seen: &mut Examined) {
        let mut dead = self.owners.iter().filter(|of| of.is_dead);
        dead.by_ref()
            .take(MOST_DEAD)
            .for_each(|of| self.of_dead(of, seen));
        let (owners, claims) = dead.fold((0, 0), |(owners, claims), of| {
            (owners + 1, claims + of.claims)
        });
        if owners > 0 {
            let summary =
                format!("claims of {owners} more processes that seem to be gone: {claims}");
            let remedy = Remedy::shows("list --count --by owner");
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
        }
    }

    /// Reports the claims of a dead owner, with the certain ones apart.
    fn of_dead(&self, of: &ByOwner, seen: &mut Examined) {
        let Some(owner) = of.owner.as_ref().map(ToString::to_string) else {
            return;
        };
        let nothing = Noted::default();
        let sure = self.nobody_s.get(&owner).unwrap_or(&nothing);
        if sure.count > 0 {
            let summary = format!(
                "claims of {owner}, a process that no longer exists: {}",
                sure.count
            );
            let words = Suggestion::of("abandon --force").with([format!("--owner={owner}")]);
            let remedy = Remedy::Mends(words, sure.first.clone());
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
        }
        let rest = of.claims.saturating_sub(sure.count as u64);
        if rest > 0 {
            let summary = format!("claims of {owner}, a process that seems to be gone: {rest}");
            let filter = format!("owner={}", quoted(&owner));
            let remedy = Remedy::Shows(Suggestion::of("list --filter").with([filter]));
            seen.add(Finding::new(Code::HeldByDead, summary, remedy));
        }
    }

    pub(in crate::commands::doctor) fn of_conductors(&self, conductors: &[Conductor]) -> Examined {
        let mut seen = Examined::default();
        if conductors.is_empty() && self.figures.unclaimed > self.figures.backing_off {
            let summary = format!(
                "no conductor is running; waiting jobs: {}",
                self.figures.unclaimed
            );
            let remedy = Remedy::shows("conductors");
            seen.add(Finding::new(Code::NoConductor, summary, remedy));
        }
        let peers = conductors.iter().find(|it| it.told.version.is_none());
        let peer = peers.map(|it| it.name.clone()).or(self.peer.clone());
        if let Some(peer) = peer.filter(|_| self.has_commands) {
            let summary = "some jobs have commands, but another kind of client also claims jobs";
            let remedy = Remedy::shows("list --count --by owner");
            let finding = Finding::new(Code::CommandsAndPeers, summary, remedy);
            seen.add(finding.seen("peer", peer));
        }
        seen
    }
}

pub(in crate::commands::doctor) fn of_entries(conductors: &[Conductor]) -> Examined {
    let mut seen = Examined::default();
    let mut by_owner = BTreeMap::<_, Vec<_>>::new();
    for it in conductors {
        let whole = |name: &str| Remedy::Shows(Suggestion::of("conductors").operand(name));
        by_owner.entry(&it.owner).or_default().push(it);
        if is_silent(it) {
            let summary = format!("{} on {} stopped its heartbeat", it.name, it.host);
            let heard = it.silence.map(duration::brief);
            let finding = Finding::new(Code::Silent, summary, whole(&it.name));
            seen.add(finding.seen("last heartbeat", heard.unwrap_or_default() + " ago"));
        }
        if let Some(job) = it.told.unsettled.first() {
            let count = it.told.unsettled.len();
            let summary = format!("{} could not record the end of jobs: {count}", it.name);
            let finding = Finding::new(Code::Unsettled, summary, whole(&it.name));
            seen.add(finding.seen("job", &job.uuid).seen("reason", &job.reason));
        }
    }
    for (owner, all) in by_owner.into_iter().filter(|(_, all)| all.len() > 1) {
        let summary = format!("conductors that share the name {owner}: {}", all.len());
        let finding = Finding::new(Code::SameName, summary, Remedy::shows("conductors"));
        let places = all.iter().map(|it| format!("{}:{}", it.host, it.pid));
        seen.add(named(finding, "conductor", &places.collect::<Vec<_>>()));
    }
    seen
}

fn named(mut finding: Finding, what: &'static str, all: &[String]) -> Finding {
    let first = all.iter().take(NAMED);
    finding.evidence.extend(first.map(|value| Evidence {
        what,
        value: value.clone(),
    }));
    finding
}

/// Returns a command for these jobs, or for as many as fit a line.
fn shows(word: &'static str, jobs: &Noted) -> Remedy {
    Remedy::Shows(Suggestion::of(word).with(jobs.first.iter().take(FIT)))
}

fn unseen(seen: &mut Examined, what: &str, jobs: &Noted) {
    if let Some(first) = jobs.first.first() {
        seen.unseen(format!("{what}: {}, for example {first}", jobs.count), None);
    }
}

/// Quotes a filter value, so that its characters are literal.
fn quoted(text: &str) -> String {
    format!("\"{}\"", glob::literal(text).replace('"', "\"\""))
}

pub(in crate::commands::doctor) fn of_moves(records: &[MoveRecord]) -> Examined {
    let mut targets = BTreeSet::new();
    for record in records {
        if let Stage::Begun { to, on } = &record.stage
            && has_mover_ended(&record.owner).unwrap_or(Utc::now() - *on > MOVED)
        {
            targets.insert(to);
        }
    }
    let mut seen = Examined::default();
    for to in targets {
        let summary = format!("a move to {to} was interrupted");
        let finding = Finding::new(Code::UnfinishedMove, summary, resumes("--to", to));
        seen.add(finding.seen("to", to));
    }
    seen
}

/// Suggests finishing a move. A peer may have written the address, so --fix does not use it.
fn resumes(option: &str, board: &str) -> Remedy {
    Remedy::Shows(Suggestion::of("copy --resume").with([option, board]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Owner;

    #[test]
    fn of_very_many_who_are_dead_the_last_ones_are_told_together() {
        let dead = |number: u64| ByOwner {
            owner: Some(Owner::from_stored(format!("ada-{number}"))),
            claims: 1000 - number,
            is_dead: true,
            ..ByOwner::default()
        };
        let look = Look {
            owners: (0..130).map(dead).collect(),
            ..Look::default()
        };
        let told = look.of_claims(None).findings;
        assert_eq!(told.len(), MOST_DEAD + 1);
        let claims = (870..900).sum::<u64>() + 30;
        let rest = format!("claims of 30 more processes that seem to be gone: {claims}");
        assert_eq!(told[MOST_DEAD].summary, rest);
    }
}
