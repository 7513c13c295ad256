//! The metrics of `check`, under their monitoring names.

use std::time::Duration;

use serde::Serialize;

use super::range::Range;
use crate::{
    diagnosis::{Standing, Survey, age},
    duration,
    names::{UnknownName, named},
    problem::{Code, Problem},
    suggest::Suggestion,
};

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum Metric ("metric", str::eq) {
        Unclaimed => "unclaimed",
        OldestUnclaimed => "oldest_unclaimed",
        Claimed => "claimed",
        LongestClaim => "longest_claim",
        NeverExpires => "claim_never_expires",
        OwnerDead => "owner_dead",
        NotRenewed => "claim_not_renewed",
        Exhausted => "retries_exhausted",
        BackingOff => "backing_off",
        Unreadable => "unreadable_record",
        Trashed => "trashed",
        Conductors => "conductors",
        Rtt => "rtt",
        LockBroken => "broken_lock",
        BlocksPosters => "blocks_posters",
        Sidecar => "unreadable_sidecar",
        Unsettled => "unsettled_job",
        InvalidCommand => "invalid_command",
        ConductorRefuses => "conductor_refuses",
        NoMatchingConductor => "no_matching_conductor",
        UnfinishedMove => "unfinished_move",
        Failed => "failed",
        BreaksPeers => "breaks_peers",
        UuidMismatch => "uuid_mismatch",
        ClockSkew => "clock_skew",
        NoConductor => "no_conductor",
        OwnerStopped => "owner_stopped",
    }
}

/// The metrics up to this one are always shown; the others only if a range names them.
const LAST_USUAL: Metric = Metric::Rtt;

pub(super) struct BoardMeasures {
    pub(super) survey: Survey,
    pub(super) trashed: u64,
    pub(super) round_trip: Duration,
    pub(super) problems: Vec<Problem>,
}

impl Metric {
    /// Parses a metric's name, with underscores or, as in a code, with hyphens.
    pub(super) fn read(name: &str) -> Result<Self, String> {
        let metric = name.replace('-', "_").parse();
        metric.or_else(|_| name.parse().map_err(|error: UnknownName| error.to_string()))
    }

    /// Returns the code of the same name, for a metric that counts the jobs of a problem.
    pub(super) fn code(self) -> Option<Code> {
        let name = self.name().replace('_', "-");
        name.parse().ok().filter(|code: &Code| code.is_problem())
    }

    pub(super) fn is_usual(self) -> bool {
        self as usize <= LAST_USUAL as usize
    }

    pub(super) fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|metric| metric.name()).collect()
    }

    pub(super) fn is_span(self) -> bool {
        matches!(self, Self::OldestUnclaimed | Self::LongestClaim | Self::Rtt)
    }

    /// Returns the value, in seconds for durations; `None` if unreadable.
    pub(super) fn value(self, measured: &BoardMeasures) -> Option<f64> {
        let Survey {
            figures, snapshot, ..
        } = &measured.survey;
        let age = |job: &Option<Standing>| age(job.as_ref(), snapshot.now).as_secs();
        let count = match self {
            Self::Unclaimed => figures.unclaimed,
            Self::OldestUnclaimed => age(&figures.oldest_unclaimed),
            Self::Claimed => figures.claimed,
            Self::LongestClaim => age(&figures.longest_held),
            Self::BackingOff => figures.backing_off,
            Self::Trashed => measured.trashed,
            Self::Conductors if !snapshot.sees_conductors => return None,
            Self::Conductors => snapshot.alive().count() as u64,
            Self::Rtt => {
                let micros = measured.round_trip.as_micros();
                return Some(micros as f64 / 1e6);
            }
            problem => problem.code().map_or(0, |code| figures.of(code)),
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
    pub(super) fn command(self, range: Option<&Range>) -> (Suggestion, bool) {
        let beyond = |list: &'static str, field: &str| {
            let most = range.and_then(Range::most);
            let most = most.filter(|most| *most > 0.0);
            let most = most.and_then(|most| Duration::try_from_secs_f64(most).ok());
            let filter = most.map(|most| format!("{field}>{}", duration::exact(most)));
            let filter = filter.map(|filter| ["--filter".to_owned(), filter]);
            let list = Suggestion::of(list).with(filter.into_iter().flatten());
            list.with(["--sort", field])
        };
        let list = match self {
            Self::Unclaimed | Self::BackingOff => Suggestion::of("list --unclaimed"),
            Self::OldestUnclaimed => beyond("list --unclaimed", "age"),
            Self::Claimed => Suggestion::of("list --state CLAIMED"),
            Self::LongestClaim => beyond("list --state CLAIMED", "held"),
            Self::Trashed => Suggestion::of("list --trash"),
            Self::Conductors => return (Suggestion::of("conductors"), false),
            Self::Rtt => return (Suggestion::of("ping"), false),
            problem => {
                let code = problem.code().map_or("", Code::name);
                return (Suggestion::of("doctor --only").with([code]), false);
            }
        };
        (list, true)
    }
}
