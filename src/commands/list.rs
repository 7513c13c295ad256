//! `jobboard list`.

mod count;
mod selected;
mod sort;

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;

use self::{
    selected::{ListFilter, entries},
    sort::ListOrder,
};
use super::{
    bulk::shared_trash::SharedArgs,
    parts::{notes, octavia::AboutArgs, words::Words},
    typing::synonyms::answer_option,
};
use crate::{
    board::{
        Board, BoardError, BoardExt as _,
        error::Unsupported,
        filter::{FieldPath, Filter},
    },
    conductor::policy::check_posted,
    context::Context,
    diagnosis::{ProblemSelector, read_snapshot},
    exit::{CommandError, Trying},
    job::{Entry, Location, Pauses, State},
    output::{ColumnChange, Format, JobColumns, JobView},
    problem::Code,
};

/// List the jobs on the board
///
/// On a terminal, prints a table whose NOTE column explains unusual jobs. In a pipe, each line has the same columns
/// in full, separated by tabs: uuid, name, state, priority, age, owner, held, expires, attempts, note. With --trash:
/// uuid, name, trashed, attempts, by, reason. With --history: uuid, name, outcome, ended, waited, took, by, reason.
/// Durations are in seconds; expires may also be `never` or `session`. --columns selects other columns.
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// List only jobs with this name; the same as --name
    #[arg(value_name = "NAME", value_parser = Filter::by_name, conflicts_with = "name")]
    named: Option<Filter>,

    /// List only jobs in this state
    #[arg(long, value_name = "STATE")]
    state: Option<State>,

    /// List only jobs with this name, for example 'backup-*'
    #[arg(long, value_name = "GLOB", value_parser = Filter::by_name)]
    name: Option<Filter>,

    /// List only unclaimed jobs
    #[arg(long, conflicts_with_all = ["state", "trash"])]
    unclaimed: bool,

    /// List jobs that have failed, on the board and in the trash, ordered by cause
    #[arg(long, conflicts_with_all = ["state", "unclaimed", "trash", "history", "sort"])]
    failed: bool,

    /// List the trash
    #[arg(long, conflicts_with = "state")]
    trash: bool,

    /// List the jobs that have left the board, latest first
    #[arg(long, alias = "past", conflicts_with_all = ["state", "trash", "unclaimed"])]
    history: bool,

    #[command(flatten)]
    about: AboutArgs,

    #[command(flatten)]
    shared: SharedArgs,

    /// List only matching jobs, for example 'priority>=HIGH'; repeat to narrow further
    ///
    /// The form is FIELD OP VALUE, joined by `and`. Fields: name, state, owner, priority, sequence, age, held,
    /// expires, attempts, size, details.PATH; in the trash and the history also trashed, ended, outcome, by, action,
    /// reason, waited, took, exit_code. Operators: = and != (with * and ?), ~ and !~ (regular expressions), < <= > >=.
    /// `none` matches a missing value: 'owner=none', 'expires=none'. Quote values with spaces or commas:
    /// 'name="big resize"'. `jobboard help filters` has the details.
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// List only jobs with this problem, as `jobboard doctor` names it; CAUSE is a glob
    #[arg(long, value_name = "CODE[=CAUSE]", conflicts_with = "history")]
    problem: Option<ProblemSelector>,

    /// Sort by claim order (rank) or by a field, for example 'held' or '-attempts'
    ///
    /// The order is ascending; `age`, `held`, `trashed` and `ended` list the earliest time first. A leading -
    /// reverses the order. Jobs without a value come last. `taskflow` is the order in which TaskFlow reads this
    /// kind of board; `none` prints jobs in the order in which they are read. You can also sort by details.PATH.
    #[arg(
        long,
        value_name = "FIELD",
        allow_hyphen_values = true,
        default_value = "rank",
        value_parser = Words { all: ListOrder::names, read: ListOrder::read }
    )]
    sort: ListOrder,

    /// Reverse the order
    #[arg(long)]
    reverse: bool,

    /// Maximum number of jobs to list
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<usize>,

    /// Columns to show: 'name,note', or changes to the default such as '+size,-age'
    ///
    /// Applies to tables and tab-separated lines; JSON always has every key. A narrow terminal drops the least
    /// important default columns, but never a column that is named here.
    #[arg(
        long,
        value_name = "COLUMN",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = Words { all: ColumnChange::names, read: ColumnChange::read }
    )]
    columns: Vec<ColumnChange>,

    /// Print the column names as the first line of tab-separated output
    #[arg(long)]
    header: bool,

    /// Print only the number of jobs
    #[arg(long, conflicts_with_all = ["sort", "reverse", "limit", "columns", "header"])]
    count: bool,

    /// With --count: count by these fields, for example 'name' or 'state,owner'
    ///
    /// The most frequent come first. Times are grouped: under 1m, 1m to 10m, and so on. You can also
    /// count by details.PATH.
    #[arg(
        long,
        value_name = "FIELD",
        value_delimiter = ',',
        requires = "count",
        value_parser = Words { all: FieldPath::names, read: FieldPath::read }
    )]
    by: Vec<FieldPath>,
}

impl ListArgs {
    fn location(&self) -> Location {
        // The failed jobs are in the trash.
        let is_failed = (self.problem.as_ref()).is_some_and(|it| it.code == Code::Failed);
        match self.state {
            _ if self.history => Location::History,
            Some(State::Complete) => Location::History,
            Some(State::Trashed) => Location::Trash,
            _ if self.trash || is_failed => Location::Trash,
            _ => Location::Board,
        }
    }

    fn locations(&self) -> Vec<Location> {
        match self.failed {
            true => Location::LIVE.to_vec(),
            false => vec![self.location()],
        }
    }

    fn columns(&self) -> JobColumns {
        let columns = match self.failed {
            true => JobColumns::of("uuid name state attempts reason"),
            false => JobColumns::usual(self.location()),
        };
        columns.but(&self.columns)
    }

    fn unusable_option(&self, format: Format) -> Option<&'static str> {
        match format {
            Format::Uuid if self.count => Some("--count cannot be used with -o uuid"),
            _ if self.columns().is_empty() => Some("--columns must leave at least one column"),
            Format::Table | Format::Tsv => None,
            _ if self.columns.is_empty() => None,
            _ => Some("--columns needs -o table or -o tsv"),
        }
    }

    fn nothing(&self) -> &'static str {
        let is_named = self.name.is_some() || self.named.is_some();
        let is_narrow = is_named || self.problem.is_some() || self.about.is_given();
        let is_all = self.filter.is_empty() && !is_narrow;
        let is_any = is_all && self.state.is_none() && !self.unclaimed;
        match (is_any, self.location()) {
            (true, _) if self.failed => "no job has failed",
            (false, _) => "no job matches",
            (true, Location::Trash) => "the trash is empty",
            (true, Location::History) => "the history is empty",
            (true, Location::Board) => "no jobs",
        }
    }
}

pub(crate) async fn run(ctx: &mut Context, args: ListArgs) -> anyhow::Result<()> {
    if let Some(unusable_option) = args.unusable_option(ctx.out.format()) {
        return Err(CommandError::usage(unusable_option).into());
    }
    let board = ctx.board()?;
    if matches!(args.sort, ListOrder::Taskflow) && board.capabilities().peer_order().is_none() {
        return Err(BoardError::from(Unsupported::PeerOrder))
            .with_context(|| ctx.trying("list", "jobs in that order"));
    }
    let problem = match &args.problem {
        Some(problem) => Some((problem.clone(), read_snapshot(&ctx.config, &*board).await?)),
        None => None,
    };
    let filter = ListFilter::new(&args, args.about.filters(ctx).await?, problem);
    let seen = match args.count {
        true => count::count(ctx, &*board, &args, &filter).await?,
        false => print(ctx, &*board, &args, &filter).await?,
    };
    let hidden = filter.hidden.get();
    if hidden > 0 {
        let note = format!("{hidden} more of other boards not shown (--shared)");
        ctx.out.note(note);
    }
    if args.location() == Location::History {
        notes::note_peers_at_terminal(ctx, &*board);
    }
    if seen > 0 {
        return Ok(());
    }
    let named = args.named.as_ref().map(Filter::to_string);
    if let Some(guess) = named.and_then(|word| answer_option("list", &word, None)) {
        ctx.out.note(guess.to_string());
    }
    let is_of_board = args.location() == Location::Board && args.state.is_none();
    let skips_trash = is_of_board && !args.failed && !args.unclaimed;
    notes::note_empty(ctx, &*board, args.nothing(), skips_trash).await
}

async fn print(
    ctx: &mut Context,
    board: &dyn Board,
    args: &ListArgs,
    filter: &ListFilter,
) -> anyhow::Result<u64> {
    let trying = trying(ctx);
    let entries = entries(ctx, board, args, filter).await?;
    let entries = entries.map_err(|it| anyhow::Error::from(it).context(trying.clone()));
    let limit = args.limit.map_or(u64::MAX, |limit| limit as u64);
    // A failure to read the pauses does not stop the listing.
    let pauses = match (ctx.out.format(), args.location()) {
        (Format::Table | Format::Tsv, Location::Board) => {
            board.lasting_pauses(Utc::now()).await.unwrap_or_default()
        }
        _ => Pauses::default(),
    };
    let columns = args.columns();
    let hides = ctx.hides_secrets();
    let mut rows = ctx.out.rows(&columns.shapes());
    if args.header {
        rows.titles(&columns.names())?;
    }
    let mut seen = 0;
    let listed = rows.stream(entries, |rows, entry| {
        seen += 1;
        if seen > limit {
            return Ok(());
        }
        let view = view(&entry, filter.now, &pauses).covered(hides);
        rows.push(&columns.row(view))
    });
    listed.await?;
    // A limit of 0 asks for no jobs.
    if seen > limit && limit > 0 {
        let note = format!("{} more not shown (--limit)", seen - limit);
        ctx.out.note(note);
    }
    Ok(seen)
}

fn view<'a>(entry: &'a Entry, now: DateTime<Utc>, pauses: &'a Pauses) -> JobView<'a> {
    let job = entry.job().filter(|job| job.state() == State::Unclaimed);
    let details = job.and_then(|job| job.details.as_ref());
    JobView {
        has_invalid_command: details.is_some_and(|details| check_posted(details).is_err()),
        ..JobView::of(entry, now).under(pauses)
    }
}

fn trying(ctx: &Context) -> Trying {
    ctx.trying("list", "the jobs")
}
