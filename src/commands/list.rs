//! `jobboard list`.

mod count;
mod sort;

use std::cell::Cell;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures_util::{FutureExt as _, TryStreamExt};

use self::sort::Sort;
use super::parts::{octavia::AboutArgs, peers, shared_trash::SharedArgs, unused, words::Words};
use crate::{
    board::{
        Board, BoardError, BoardExt as _, Detail, Order, Query, Which,
        filter::{Field, Filter, Filters},
    },
    context::Context,
    exit::{CommandError, Trying},
    job::{Entry, Pauses, Shelf, State},
    output::{ColumnChange, Format, JobColumns, JobView},
};

/// List the jobs on the board
///
/// On a terminal it is a table, whose NOTE says why a job is not as one would expect. In a pipe each
/// line has, separated by tabs: uuid, name, state, priority, age, owner, held, expires and key, with
/// times in seconds; with --past it has uuid, name, outcome, priority, ended, waited, took, by and
/// reason. --columns chooses others.
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
    about: AboutArgs,

    #[command(flatten)]
    shared: SharedArgs,

    /// List only jobs for which this holds, such as 'priority>=HIGH'; several must all hold
    ///
    /// FIELD OP VALUE, and more of them with `and` between. Fields: name state owner priority
    /// sequence age held expires attempts size details.PATH; of the trash and the past: trashed ended
    /// outcome by reason waited took exit_code. Operators: = and != (with * and ?), ~ and !~
    /// (regular expressions), < <= > >=. The value `none` is for what is absent: 'owner=none',
    /// 'expires=none'. A value with spaces or commas stands in quotes: 'name="big resize"'. `jobboard
    /// help filters` tells more.
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// The order: as jobs are offered (rank), or by a field of filters, such as 'held' or '-attempts'
    ///
    /// The least value comes first, for `age`, `held`, `trashed` and `ended` what began earliest; with
    /// a - before the field it is the other way. What has no such value comes last. `taskflow` is the
    /// order in which TaskFlow's own readers walk this kind of board; `none` lists them as they come.
    /// Beside these, details.PATH is a field.
    #[arg(
        long,
        value_name = "FIELD",
        allow_hyphen_values = true,
        default_value = "rank",
        value_parser = Words { all: Sort::names, read: Sort::read }
    )]
    sort: Sort,

    /// List in the opposite order
    #[arg(long)]
    reverse: bool,

    /// List no more than this many jobs
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Show these columns, with + also these, and without those that have a -: 'name,note', '+size,-age'
    ///
    /// They are of tables and of tab-separated lines; JSON has every key. On a narrow terminal the
    /// usual columns that tell least are left out, and none that is named here.
    #[arg(
        long,
        value_name = "COLUMN",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = Words { all: ColumnChange::names, read: ColumnChange::read }
    )]
    columns: Vec<ColumnChange>,

    /// Print only how many there are
    #[arg(long, conflicts_with_all = ["sort", "reverse", "limit", "columns"])]
    count: bool,

    /// Count those apart that differ in these fields of filters, such as 'name' or 'state,owner'
    ///
    /// The most frequent come first. Spans of time are counted in steps: under 1m, 1m to 10m, and
    /// so on. Beside these, details.PATH is a field.
    #[arg(
        long,
        value_name = "FIELD",
        value_delimiter = ',',
        requires = "count",
        value_parser = Words { all: Field::names, read: Field::read }
    )]
    by: Vec<Field>,
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

    fn columns(&self, format: Format) -> JobColumns {
        JobColumns::usual(self.shelf(), format).but(&self.columns)
    }

    /// Says what of it does not go together with this form of the output.
    fn misfit(&self, format: Format) -> Option<&'static str> {
        match format {
            Format::Uuid if self.count => Some("--count prints a number, and -o uuid prints uuids"),
            _ if self.columns(format).is_empty() => Some("--columns leaves none"),
            Format::Table | Format::Tsv => None,
            _ if self.columns.is_empty() => None,
            _ => Some("--columns is for -o table and -o tsv: the other forms have no columns"),
        }
    }

    fn nothing(&self) -> &'static str {
        let is_all = self.filter.is_empty() && self.name.is_none() && !self.about.is_given();
        let is_any = is_all && self.state.is_none() && !self.unclaimed;
        match (is_any, self.shelf()) {
            (false, _) => "no job matches",
            (true, Shelf::Trash) => "no jobs are in the trash",
            (true, Shelf::Past) => "no job that left the board is remembered",
            (true, Shelf::Board) => "no jobs",
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ListArgs) -> anyhow::Result<()> {
    if let Some(misfit) = args.misfit(ctx.out.format()) {
        return Err(CommandError::usage(misfit).into());
    }
    let board = ctx.board()?;
    if matches!(args.sort, Sort::Taskflow) && board.capabilities().peer_order.is_none() {
        return Err(no_peers()).with_context(|| ctx.trying("list", "jobs in that order"));
    }
    let wanted = Wanted::new(&args, args.about.filters(ctx).await?);
    let seen = if args.count {
        count::count(ctx, &*board, &args, &wanted).await?
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
    if args.shelf() == Shelf::Past {
        peers::remark(ctx, &*board);
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

struct Wanted {
    filters: Filters,
    state: Option<State>,
    shared: SharedArgs,
    /// How many were left out because they are of another board.
    beside: Cell<u64>,
    now: DateTime<Utc>,
}

impl Wanted {
    fn new(args: &ListArgs, about: Vec<Filter>) -> Self {
        Self {
            filters: Filters::new(
                args.filter
                    .iter()
                    .cloned()
                    .chain(args.name.clone())
                    .chain(about)
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
    // People know a job of Octavia by what it is about, which its details say.
    let is_of_octavia = ctx.config.board.value.is_of_octavia();
    let titles = is_of_octavia && ctx.out.format() == Format::Table;
    let shows_details = (ctx.out.is_json() || titles) && !args.count;
    let needs_details = args.sort.needs_details() || args.by.iter().any(Field::needs_details);
    Query {
        shelf: args.shelf(),
        which: if args.unclaimed || args.state == Some(State::Unclaimed) {
            Which::Unclaimed
        } else {
            Which::All
        },
        order: match args.sort {
            Sort::Rank if !args.count && !args.reverse => Order::Rank,
            _ => Order::Any,
        },
        detail: match shows_details || needs_details {
            true => Detail::Whole,
            false => wanted.filters.detail(),
        },
    }
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
    let pauses = pauses(ctx, board, args.shelf()).await;
    let columns = args.columns(ctx.out.format());
    let hides = ctx.hides_secrets();
    let mut rows = ctx.out.rows(&columns.shapes());
    let (mut seen, now) = (0, wanted.now);
    loop {
        let next = match entries.try_next().now_or_never() {
            Some(next) => next,
            None => {
                rows.wait()?;
                entries.try_next().await
            }
        };
        let entry = match next {
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
            let view = JobView::of(&entry, now).under(&pauses).covered(hides);
            rows.push(&columns.row(view))?;
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
    if !matches!(args.sort, Sort::None) && (args.shelf() != Shelf::Past || !args.sort.is_native()) {
        found.sort_by(|one, other| args.sort.compare(one, other, wanted.now, peers));
    }
    if args.reverse {
        found.reverse();
    }
    let limit = args.limit.unwrap_or(usize::MAX);
    let pauses = pauses(ctx, board, args.shelf()).await;
    let columns = args.columns(ctx.out.format());
    let hides = ctx.hides_secrets();
    let mut rows = ctx.out.rows(&columns.shapes());
    for entry in found.iter().take(limit) {
        let view = JobView::of(entry, wanted.now).under(&pauses);
        rows.push(&columns.row(view.covered(hides)))?;
    }
    rows.finish()?;
    say_left_out(ctx, found.len().saturating_sub(limit) as u64);
    Ok(found.len() as u64)
}

/// Reads what is paused, for people; that it cannot be read keeps nobody from the list.
async fn pauses(ctx: &Context, board: &dyn Board, shelf: Shelf) -> Pauses {
    match (ctx.out.format(), shelf) {
        (Format::Table, Shelf::Board) => board.lasting_pauses(Utc::now()).await.unwrap_or_default(),
        _ => Pauses::default(),
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
