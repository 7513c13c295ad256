//! The diagnosis of all rows: the counts, the problems and the owners.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    picture::Picture,
    row::{DashRow, RowPlace},
};
use crate::{
    diagnosis::{ByOwner, Cause, Figures, Snapshot, Surveyor, count},
    job::{Entry, Location, Owner},
    problem::Problem,
    suggest::Suggestion,
};

const NAMES: usize = 5;

/// How long a claim is watched for a renewal: longer than the interval of the lookups.
const WATCHED: TimeDelta = TimeDelta::seconds(4);

/// Claims that should have been renewed by now: when that was noticed, and their expiry then.
type Doubts = HashMap<RowPlace, (DateTime<Utc>, Option<DateTime<Utc>>)>;

#[derive(Debug, Clone, Default)]
pub(super) struct RowGroup {
    pub(super) reason: String,
    pub(super) jobs: u64,
    pub(super) names: BTreeSet<String>,
    pub(super) last: Option<DateTime<Utc>>,
}

#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    /// The conductors that are `gone`, `stopped` or `silent`.
    pub(super) absent: BTreeMap<&'static str, u64>,
    /// Conductors without a registration and without claims.
    pub(super) departed: HashSet<Owner>,
    pub(super) problems: Vec<Problem>,
    pub(super) owners: Vec<ByOwner>,
    pub(super) trash: Vec<RowGroup>,
    pub(super) doubts: Doubts,
    /// The counted version of the picture; `None` forces a recount.
    pub(super) version: Option<u64>,
}

impl Summary {
    pub(super) fn of(
        picture: &mut Picture,
        before: &Self,
        program: &Suggestion,
        now: DateTime<Utc>,
    ) -> Self {
        let is_filtered = !picture.filters.is_empty();
        picture.snapshot = picture.snapshot.again(now);
        // Few names suffice here, and each takes memory.
        let surveyor = || Surveyor::new(picture.snapshot.again(now)).with_names(50);
        let (mut all, mut admitted) = (surveyor(), surveyor());
        let (mut doubts, mut judged, mut trash) = (HashMap::new(), Vec::new(), Groups::default());
        let mut trashed = 0;
        for (place, row) in picture.rows() {
            let entry = row.entry(place, now);
            let causes = match place.0 == Location::Board {
                true => judge(
                    &all.survey.snapshot,
                    place,
                    row,
                    &entry,
                    before,
                    &mut doubts,
                ),
                false => None,
            };
            all.survey.has_commands |= row.has_command && place.0 == Location::Board;
            // An unreadable record in the trash is out of the way.
            if place.0 == Location::Board || !row.is_malformed {
                all.add_judged(&entry, causes.as_ref().unwrap_or(&row.causes));
            }
            match place.0 {
                Location::Trash => {
                    trashed += 1;
                    if row.is_admitted {
                        trash.add(row.group(), &row.name, row.trashed_on());
                    }
                }
                _ if is_filtered && row.is_admitted && row.claim.is_some() => {
                    admitted.add_judged(&entry, &[]);
                }
                _ => {}
            }
            let changed = causes.filter(|causes| *causes != *row.causes);
            judged.extend(changed.map(|causes| (place.clone(), causes)));
        }
        let survey = all.counted();
        let problems = survey.problems().into_iter();
        let problems = problems.map(|it| it.on(program)).collect();
        let absent = survey.absent();
        let conductors = survey.snapshot.conductors();
        let departed = conductors.filter(|it| !survey.counts(it));
        let departed = departed.map(|it| it.owner.clone()).collect();
        picture.judge_again(judged);
        Self {
            figures: survey.figures,
            trashed,
            absent,
            departed,
            problems,
            owners: match is_filtered {
                true => admitted.counted().owners,
                false => survey.owners,
            },
            trash: trash.sorted(),
            doubts,
            version: Some(picture.version),
        }
    }
}

/// Judges again without an event: claims (the owner may be gone) and jobs that become too old.
fn judge(
    snapshot: &Snapshot,
    place: &RowPlace,
    row: &DashRow,
    entry: &Entry,
    before: &Summary,
    doubts: &mut Doubts,
) -> Option<Vec<Cause>> {
    let Some(claim) = &row.claim else {
        let blocks = snapshot.blocks_posters(entry.job()?)?;
        let is_new = !row.causes.contains(&blocks);
        return is_new.then(|| [row.causes.to_vec(), vec![blocks]].concat());
    };
    let judged = snapshot.judge(entry);
    let mut causes: Vec<_> = judged.causes().cloned().collect();
    if let Some(pause) = judged.pause {
        let is_same = |expiry: Option<DateTime<Utc>>| match (expiry, claim.lapses_on) {
            (Some(then), Some(now)) => now - then < TimeDelta::seconds(1),
            _ => false,
        };
        let known = before.doubts.get(place).filter(|it| is_same(it.1)).copied();
        let doubt = known.unwrap_or((snapshot.now, claim.lapses_on));
        let pause = TimeDelta::from_std(pause).unwrap_or(WATCHED);
        if snapshot.now - doubt.0 > pause + WATCHED {
            causes[0] = Cause::not_renewed(entry);
        }
        doubts.insert(place.clone(), doubt);
    }
    Some(causes)
}

#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<String, RowGroup>);

impl Groups {
    pub(super) fn add(&mut self, reason: &str, name: &str, on: Option<DateTime<Utc>>) {
        count(&mut self.0, reason, |group| {
            group.jobs += 1;
            group.last = group.last.max(on);
            if group.names.len() < NAMES && !group.names.contains(name) {
                group.names.insert(name.to_owned());
            }
        });
    }

    pub(super) fn sorted(self) -> Vec<RowGroup> {
        let groups = self.0.into_iter();
        let mut groups: Vec<_> = groups
            .map(|(reason, of)| RowGroup { reason, ..of })
            .collect();
        let order = |it: &RowGroup| Reverse((it.jobs, it.last));
        groups.sort_by(|one, other| (order(one), &one.reason).cmp(&(order(other), &other.reason)));
        groups
    }
}
