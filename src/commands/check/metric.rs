//! The metrics of `check`, under their monitoring names.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::range::Range;
use crate::{
    commands::parts::tally::{Figures, Standing, age},
    duration,
    names::named,
    suggest::Suggestion,
};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum Metric ("metric", str::eq) {
        Unclaimed => "unclaimed",
        OldestUnclaimed => "oldest_unclaimed",
        Claimed => "claimed",
        LongestClaim => "longest_claim",
        NeverLapsing => "claim_never_expires",
        Orphaned => "owner_dead",
        NotRenewed => "claim_not_renewed",
        Exhausted => "retries_exhausted",
        Postponed => "backing_off",
        Malformed => "unreadable_record",
        Trashed => "trashed",
        Conductors => "conductors",
        Rtt => "rtt",
    }
}

#[derive(Debug)]
pub(super) struct Measured {
    pub(super) figures: Figures,
    pub(super) trashed: u64,
    pub(super) not_renewed: u64,
    /// `None`: unreadable.
    pub(super) conductors: Option<u64>,
    pub(super) round_trip: Duration,
    pub(super) now: DateTime<Utc>,
}

impl Metric {
    pub(super) fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|metric| metric.name()).collect()
    }

    pub(super) fn is_span(self) -> bool {
        matches!(self, Self::OldestUnclaimed | Self::LongestClaim | Self::Rtt)
    }

    /// Returns the value, in seconds for durations; `None` if unreadable.
    pub(super) fn value(self, measured: &Measured) -> Option<f64> {
        let figures = &measured.figures;
        let age = |job: &Option<Standing>| age(job.as_ref(), measured.now).as_secs();
        let count = match self {
            Self::Unclaimed => figures.unclaimed,
            Self::OldestUnclaimed => age(&figures.oldest_unclaimed),
            Self::Claimed => figures.claimed,
            Self::LongestClaim => age(&figures.longest_held),
            Self::NeverLapsing => figures.claim_never_expires,
            Self::Orphaned => figures.owner_dead,
            Self::NotRenewed => measured.not_renewed,
            Self::Exhausted => figures.retries_exhausted,
            Self::Postponed => figures.backing_off,
            Self::Malformed => figures.malformed,
            Self::Trashed => measured.trashed,
            Self::Conductors => measured.conductors?,
            Self::Rtt => {
                let micros = measured.round_trip.as_micros();
                return Some(micros as f64 / 1e6);
            }
        };
        Some(count as f64)
    }

    pub(super) fn words(self, value: f64) -> String {
        match self {
            Self::Rtt => format!("{:.1}ms", value * 1e3),
            metric if metric.is_span() => duration::brief(Duration::from_secs_f64(value)),
            _ => value.to_string(),
        }
    }

    /// Returns the command that lists the counted jobs, and whether it takes filters.
    ///
    /// With a range, it lists the jobs beyond its end.
    pub(super) fn command(self, measured: &Measured, range: Option<&Range>) -> (Suggestion, bool) {
        let beyond = |list: &'static str, field: &str| {
            let most = range.and_then(Range::most);
            let most = most.filter(|most| *most > 0.0);
            let most = most.and_then(|most| Duration::try_from_secs_f64(most).ok());
            let filter = most.map(|most| format!("{field}>{}", duration::exact(most)));
            let filter = filter.map(|filter| ["--filter".to_owned(), filter]);
            let list = Suggestion::of(list).with(filter.into_iter().flatten());
            list.with(["--sort", field])
        };
        let attempts = measured.figures.exhausted_attempts;
        let attempts = attempts.map(|least| ["--filter".to_owned(), format!("attempts>={least}")]);
        let list = match self {
            Self::Unclaimed | Self::Postponed => Suggestion::of("list --unclaimed"),
            Self::OldestUnclaimed => beyond("list --unclaimed", "age"),
            Self::Claimed => Suggestion::of("list --state CLAIMED"),
            Self::LongestClaim => beyond("list --state CLAIMED", "held"),
            Self::NeverLapsing => Suggestion::of("list --filter expires=none"),
            Self::NotRenewed => Suggestion::of("list --filter expires<10s --sort expires"),
            Self::Exhausted => {
                let list = Suggestion::of("list --unclaimed");
                let list = list.with(attempts.into_iter().flatten());
                list.with(["--sort", "-attempts"])
            }
            Self::Malformed => Suggestion::of("list --state MALFORMED"),
            Self::Trashed => Suggestion::of("list --trash"),
            Self::Orphaned => return (Suggestion::of("doctor --only owner-dead"), false),
            Self::Conductors => return (Suggestion::of("conductors"), false),
            Self::Rtt => return (Suggestion::of("ping"), false),
        };
        (list, true)
    }
}
