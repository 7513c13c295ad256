//! Totals over all rows: the counts, the owners and the failures.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use chrono::{DateTime, Utc};

use super::{picture::Picture, row::DashRow};
use crate::{
    board::Capabilities,
    diagnosis::{ByOwner, Figures, Snapshot, Surveyor},
    job::{Conductor, Shelf},
};

const NAMES: usize = 5;

#[derive(Debug, Clone)]
pub(super) struct RowFailures {
    pub(super) signature: String,
    pub(super) jobs: u64,
    pub(super) failures: u64,
    pub(super) names: BTreeSet<String>,
    pub(super) last: DateTime<Utc>,
}

#[derive(Debug, Default)]
pub(super) struct Summary {
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    pub(super) owners: Vec<ByOwner>,
    pub(super) failures: Vec<RowFailures>,
    /// The counted version of the picture; `None` forces a recount.
    pub(super) version: Option<u64>,
}

impl Summary {
    pub(super) fn of(picture: &Picture, conductors: &[Conductor], now: DateTime<Utc>) -> Self {
        let is_filtered = !picture.filters.is_empty();
        // Few names suffice here, and each takes memory.
        let surveyor = || {
            let capabilities = Capabilities {
                has_expiring_claims: true,
                peer_order: None,
            };
            let snapshot = Snapshot::new(capabilities, None, now);
            Surveyor::new(snapshot.with_conductors(conductors.to_vec())).with_names(50)
        };
        let (mut all, mut admitted) = (surveyor(), surveyor());
        let mut failures = BTreeMap::new();
        let mut trashed = 0;
        for (place, row) in picture.rows() {
            trashed += u64::from(place.0 == Shelf::Trash);
            if place.0 == Shelf::Board {
                let entry = row.entry(place, now);
                all.add_brief(&entry);
                if is_filtered && row.is_admitted {
                    admitted.add_brief(&entry);
                }
            }
            if row.is_admitted {
                add_failures(&mut failures, row);
            }
        }
        let mut failures: Vec<_> = failures.into_values().collect();
        failures.sort_by_key(|alike| Reverse((alike.jobs, alike.last)));
        let survey = all.counted();
        Self {
            figures: survey.figures,
            trashed,
            owners: match is_filtered {
                true => admitted.counted().owners,
                false => survey.owners,
            },
            failures,
            version: Some(picture.version),
        }
    }
}

fn add_failures<'a>(failures: &mut BTreeMap<&'a str, RowFailures>, row: &'a DashRow) {
    for (at, failed) in row.failures().iter().enumerate() {
        let alike = failures
            .entry(&failed.signature)
            .or_insert_with(|| RowFailures {
                signature: failed.signature.to_string(),
                jobs: 0,
                failures: 0,
                names: BTreeSet::new(),
                last: failed.on,
            });
        let before = &row.failures()[..at];
        alike.jobs += u64::from(before.iter().all(|it| it.signature != failed.signature));
        alike.failures += 1;
        alike.last = alike.last.max(failed.on);
        if alike.names.len() < NAMES && !alike.names.contains(&*row.name) {
            alike.names.insert(row.name.to_string());
        }
    }
}

pub(super) fn name_of(of: &ByOwner) -> String {
    let owner = of.owner.as_ref().map(ToString::to_string);
    owner.unwrap_or_else(|| "?".to_owned())
}
