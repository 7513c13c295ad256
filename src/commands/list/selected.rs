//! The jobs that `list` selects, in its order.

use std::cell::Cell;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt as _, TryStreamExt, stream::LocalBoxStream};

use super::{ListArgs, ListOrder, trying};
use crate::{
    board::{
        self, Board, Detail, Order, Query, Which,
        collect::{Collector, whole},
        filter::{FieldPath, Filter, Filters, SortKey},
    },
    commands::bulk::shared_trash::SharedArgs,
    context::Context,
    diagnosis::{ProblemSelector, Snapshot, signature},
    job::{Entry, Job, Location, State},
    output::Format,
};

pub(super) struct ListFilter {
    pub(super) filters: Filters,
    state: Option<State>,
    has_failed: bool,
    problem: Option<(ProblemSelector, Snapshot)>,
    shared: SharedArgs,
    /// Number of jobs left out because they belong to another board.
    pub(super) hidden: Cell<u64>,
    pub(super) now: DateTime<Utc>,
}

impl ListFilter {
    pub(super) fn new(
        args: &ListArgs,
        about: Vec<Filter>,
        problem: Option<(ProblemSelector, Snapshot)>,
    ) -> Self {
        let by_name = args.name.iter().chain(&args.named);
        let filters = args.filter.iter().chain(by_name).cloned().chain(about);
        Self {
            filters: Filters::new(filters.collect()),
            state: args.state.filter(|state| *state != State::Trashed),
            has_failed: args.failed,
            problem,
            shared: args.shared,
            hidden: Cell::default(),
            now: Utc::now(),
        }
    }

    pub(super) fn admits(&self, entry: &Entry) -> bool {
        if !self.shared.admits(entry) {
            self.hidden.update(|count| count + 1);
            return false;
        }
        self.matches(entry)
    }

    fn matches(&self, entry: &Entry) -> bool {
        self.state.is_none_or(|state| entry.state() == state)
            && (!self.has_failed || entry.job().is_some_and(|job| job.attempts.has_failed()))
            && (self.problem.as_ref()).is_none_or(|(it, snapshot)| it.is_of(entry, snapshot))
            && self.filters.matches(entry, self.now)
    }
}

pub(super) fn query(ctx: &Context, args: &ListArgs, filter: &ListFilter) -> Query {
    // People see the subject of an Octavia job and an invalid command, which only the details name.
    let is_table = ctx.out.format() == Format::Table;
    let shows_details = (ctx.out.is_json() || is_table) && !args.count;
    let needs_details = args.sort.needs_details() || args.by.iter().any(FieldPath::needs_details);
    Query {
        location: args.location(),
        which: match args.unclaimed || args.state == Some(State::Unclaimed) {
            true => Which::Unclaimed,
            false => Which::All,
        },
        order: match args.sort {
            ListOrder::Rank if !args.count && !args.reverse => Order::Rank,
            _ => Order::Any,
        },
        detail: match shows_details || needs_details || args.problem.is_some() {
            true => Detail::Whole,
            false => filter.filters.detail(),
        },
    }
}

pub(super) async fn entries<'a>(
    ctx: &Context,
    board: &'a dyn Board,
    args: &ListArgs,
    filter: &'a ListFilter,
) -> anyhow::Result<LocalBoxStream<'a, board::Result<Entry>>> {
    let query = query(ctx, args, filter);
    let matching = |location| {
        let entries = board.entries(Query { location, ..query });
        entries.try_filter(|entry| std::future::ready(filter.admits(entry)))
    };
    if args.sort.is_native() && !args.reverse && !args.failed {
        return Ok(matching(query.location).boxed_local());
    }
    let (mut found, mut collector) = (Vec::new(), Collector::default());
    for location in args.locations() {
        let mut entries = matching(location);
        while let Some(entry) = (entries.try_next().await).with_context(|| trying(ctx))? {
            let last = |job: &Job| job.attempts.failures.last().map(signature);
            let key = match args.failed {
                true => entry.job().and_then(last).map(SortKey::Text),
                false => args.sort.key(&entry, filter.now),
            };
            found.push((key, collector.keep(entry)));
        }
    }
    let is_by_end = args.location() == Location::History && args.sort.is_native();
    if !matches!(args.sort, ListOrder::None) && !is_by_end {
        args.sort
            .sort(&mut found, board.capabilities().peer_order());
    }
    if args.failed {
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
    if args.reverse {
        found.reverse();
    }
    let found = found.into_iter().map(|(_, entry)| entry);
    let most = match ctx.out.format() {
        Format::Uuid => 0,
        _ => args.limit.unwrap_or(usize::MAX),
    };
    let admits = |entry: &Entry| filter.matches(entry);
    Ok(whole(board, found.collect(), most, admits).boxed_local())
}
