//! `jobboard list`.

mod sort;

use std::cell::Cell;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use serde::Serialize;

use self::sort::Sort;
use super::parts::{shared_trash::SharedArgs, unused};
use crate::{
    board::{
        Board, BoardError, Detail, Order, Query, Which,
        filter::{Filter, Filters},
    },
    context::Context,
    exit::{CommandError, Trying},
    job::{Entry, Shelf, State},
    output::{Column, Format, JobView, Page, PastView, Record, Report, Row, Rows},
};

/// List the jobs on the board
///
/// On a terminal it is a table; in a pipe each line has, separated by tabs: uuid, name, state,
/// priority, age, owner, held, expires and key, with times in seconds; with --past it has uuid,
/// name, outcome, priority, ended, waited, took, by and reason.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// List only jobs in this state
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// List only jobs of this name, such as 'backup-*'
    #[arg(long, value_name = "GLOB", value_parser = Filter::by_name)]
    name: Option<Filter>,

    /// List only jobs that nobody has claimed
    #[arg(long, conflicts_with_all = ["state", "trash"])]
    unclaimed: bool,

    /// List the trash instead
    #[arg(long, conflicts_with = "state")]
    trash: bool,

    /// List the jobs that have left the board instead, the latest first
    #[arg(long, conflicts_with_all = ["state", "trash", "unclaimed"])]
    past: bool,

    #[command(flatten)]
    shared: SharedArgs,

    /// List only jobs for which this holds, such as 'priority>=HIGH'; several must all hold
    ///
    /// FIELD OP VALUE, and more of them with `and` between. Fields: name state owner priority
    /// sequence age held expires attempts size details.PATH, and of the past: ended outcome by reason
    /// waited took exit_code. Operators: = and != (with * and ?), ~ and
    /// !~ (regular expressions), < <= > >=. The value `none` is for what is absent: 'owner=none',
    /// 'expires=none'. A value with spaces or commas stands in quotes: 'name="big resize"'. `jobboard
    /// help filters` tells more.
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// The order: as jobs are offered (rank), or by one column; none lists them as they come
    #[arg(long, value_enum, value_name = "ORDER", default_value_t)]
    sort: Sort,

    /// List in the opposite order
    #[arg(long)]
    reverse: bool,

    /// List no more than this many jobs
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print only how many there are
    #[arg(long, conflicts_with_all = ["sort", "reverse", "limit"])]
    count: bool,
}

impl ListArgs {
    fn shelf(&self) -> Shelf {
        match self.state {
            _ if self.past => Shelf::Past,
            Some(State::Complete) => Shelf::Past,
            Some(State::Trashed) => Shelf::Trash,
            _ if self.trash => Shelf::Trash,
            _ => Shelf::Board,
        }
    }

    /// Says in words that nothing was found of what was asked for.
    fn nothing(&self) -> &'static str {
        let is_any = self.filter.is_empty() && self.state.is_none() && !self.unclaimed;
        match (is_any, self.shelf()) {
            (false, _) => "no job matches",
            (true, Shelf::Trash) => "no jobs are in the trash",
            (true, Shelf::Past) => "no job that left the board is remembered",
            (true, Shelf::Board) => "no jobs",
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Count(u64);

impl Record for Count {
    fn fields(&self) -> Vec<String> {
        vec![self.0.to_string()]
    }
}

impl Report for Count {
    fn human(&self, page: &mut Page) {
        page.line().plain(self.0.to_string());
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ListArgs) -> anyhow::Result<()> {
    if args.count && ctx.out.format() == Format::Uuid {
        return Err(
            CommandError::usage("--count prints a number, and -o uuid prints uuids").into(),
        );
    }
    let board = ctx.board()?;
    if args.sort == Sort::Taskflow && board.capabilities().peer_order.is_none() {
        return Err(no_peers()).with_context(|| ctx.trying("list", "jobs in that order"));
    }
    let wanted = Wanted::new(&args);
    let seen = if args.count {
        count(ctx, &*board, &args, &wanted).await?
    } else if args.sort.is_native() && !args.reverse {
        stream(ctx, &*board, &args, &wanted).await?
    } else {
        sorted(ctx, &*board, &args, &wanted).await?
    };
    if wanted.beside.get() > 0 {
        let beside = wanted.beside.get();
        ctx.out.note(format!(
            "{beside} more of other boards not shown (--shared)"
        ));
    }
    match seen {
        0 => unused::say_none(ctx, &*board, args.nothing()).await,
        _ => Ok(()),
    }
}

fn no_peers() -> BoardError {
    BoardError::Unsupported {
        board: "an embedded board",
        operation: "be listed in TaskFlow's order, which has no readers there",
        hint: Some("--sort rank lists jobs as they are offered"),
    }
}

/// What a record must be to be listed.
struct Wanted {
    filters: Filters,
    state: Option<State>,
    shared: SharedArgs,
    /// How many were left out because they are of another board.
    beside: Cell<u64>,
    now: DateTime<Utc>,
}

impl Wanted {
    fn new(args: &ListArgs) -> Self {
        Self {
            filters: Filters::new(
                args.filter
                    .iter()
                    .cloned()
                    .chain(args.name.clone())
                    .collect(),
            ),
            state: args.state.filter(|state| *state != State::Trashed),
            shared: args.shared,
            beside: Cell::default(),
            now: Utc::now(),
        }
    }

    fn admits(&self, entry: &Entry) -> bool {
        if !self.shared.admits(entry) {
            self.beside.update(|count| count + 1);
            return false;
        }
        self.state.is_none_or(|state| entry.state() == state)
            && self.filters.matches(entry, self.now)
    }
}

fn query(ctx: &Context, args: &ListArgs, wanted: &Wanted) -> Query {
    let shows_details = ctx.out.is_json() && !args.count;
    Query {
        shelf: args.shelf(),
        which: if args.unclaimed || args.state == Some(State::Unclaimed) {
            Which::Unclaimed
        } else {
            Which::All
        },
        order: if args.sort == Sort::Rank && !args.count && !args.reverse {
            Order::Rank
        } else {
            Order::Any
        },
        detail: match shows_details {
            true => Detail::Whole,
            false => wanted.filters.detail(),
        },
    }
}

async fn count(
    ctx: &mut Context,
    board: &dyn Board,
    args: &ListArgs,
    wanted: &Wanted,
) -> anyhow::Result<u64> {
    let mut entries = board.entries(query(ctx, args, wanted));
    let mut count = 0;
    while let Some(entry) = entries.try_next().await.with_context(|| trying(ctx))? {
        count += u64::from(wanted.admits(&entry));
    }
    ctx.out.report(&Count(count))?;
    Ok(count)
}

async fn stream(
    ctx: &mut Context,
    board: &dyn Board,
    args: &ListArgs,
    wanted: &Wanted,
) -> anyhow::Result<u64> {
    let mut entries = board.entries(query(ctx, args, wanted));
    let tried = trying(ctx);
    let limit = args.limit.map_or(u64::MAX, |limit| limit as u64);
    let shelf = args.shelf();
    let mut rows = ctx.out.rows(columns(shelf));
    let (mut seen, now) = (0, wanted.now);
    loop {
        let entry = match entries.try_next().await {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(error) => {
                // What was listed so far is true, and an array must be closed.
                rows.cut_short()?;
                return Err(error).context(tried);
            }
        };
        if !wanted.admits(&entry) {
            continue;
        }
        seen += 1;
        if seen <= limit {
            push(&mut rows, shelf, JobView::of(&entry, now))?;
        }
    }
    rows.finish()?;
    say_left_out(ctx, seen.saturating_sub(limit));
    Ok(seen)
}

async fn sorted(
    ctx: &mut Context,
    board: &dyn Board,
    args: &ListArgs,
    wanted: &Wanted,
) -> anyhow::Result<u64> {
    let mut entries = board.entries(query(ctx, args, wanted));
    let mut found = Vec::new();
    while let Some(entry) = entries.try_next().await.with_context(|| trying(ctx))? {
        if wanted.admits(&entry) {
            found.push(entry);
        }
    }
    let peers = board.capabilities().peer_order;
    // The past comes in the order in which it ended.
    if args.shelf() != Shelf::Past || !args.sort.is_native() {
        found.sort_by(|one, other| args.sort.compare(one, other, peers));
    }
    if args.reverse {
        found.reverse();
    }
    let limit = args.limit.unwrap_or(usize::MAX);
    let shelf = args.shelf();
    let mut rows = ctx.out.rows(columns(shelf));
    for entry in found.iter().take(limit) {
        push(&mut rows, shelf, JobView::of(entry, wanted.now))?;
    }
    rows.finish()?;
    say_left_out(ctx, found.len().saturating_sub(limit) as u64);
    Ok(found.len() as u64)
}

/// Returns the columns in which people see a shelf.
fn columns(shelf: Shelf) -> &'static [Column] {
    match shelf {
        Shelf::Board | Shelf::Trash => JobView::COLUMNS,
        Shelf::Past => PastView::COLUMNS,
    }
}

fn push(rows: &mut Rows<'_>, shelf: Shelf, view: JobView<'_>) -> anyhow::Result<()> {
    match shelf {
        Shelf::Board | Shelf::Trash => rows.push(&view),
        Shelf::Past => rows.push(&PastView(view)),
    }
}

fn trying(ctx: &Context) -> Trying {
    ctx.trying("list", "the jobs")
}

fn say_left_out(ctx: &Context, left_out: u64) {
    if left_out > 0 {
        ctx.out.note(format!("{left_out} more not shown (--limit)"));
    }
}
