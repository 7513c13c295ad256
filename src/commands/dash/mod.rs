//! `jobboard dash`.

mod act;
mod cursor;
mod draw;
mod field;
mod keys;
mod listing;
mod picture;
mod position;
mod press;
mod questions;
mod rates;
mod row;
mod session;
mod state;
mod summary;
mod terminal;
#[cfg(test)]
mod tests;
mod update;

use std::{
    ffi::OsString,
    io::{self, IsTerminal as _},
};

use anyhow::Context as _;
use chrono::{SubsecRound, Utc};
use futures_util::StreamExt as _;
use ratatui::{buffer::Buffer, layout::Rect};

use self::{
    act::DashEffect,
    draw::{DrawStyle, draw},
    keys::View,
    questions::Questions,
    state::DashState,
    update::{DashInput, update},
};
use crate::{
    board::filter::{Filter, Filters},
    context::Context,
    diagnosis::Snapshot,
    exit::CommandError,
    job::Location,
    output::size_of,
};

/// The number of lines and columns of a single frame without a terminal.
const ONCE: (u16, usize) = (80, 100);

/// Show the board live on a terminal
///
/// Shows events as they happen and changes nothing. The seven views are problems, jobs, claims by owner, trash, history
/// (latest 1,000), conductors, and events. Enter opens the selected line: a problem leads to its jobs, a job to its last
/// output, its explanation and its fix. Press / to filter as you type, or ? to list all keys.
///
/// With --act, F repairs the selected problem. The other upper-case keys act on the selected job, or on all jobs marked
/// with x: A abandons, T trashes, R retries and C consumes (each by force), and P pauses or resumes all jobs of that
/// name. The dashboard shows the jobs, asks, and skips jobs that have changed in the meantime.
///
/// Needs a terminal of at least 60x12. No information is conveyed by color alone. For screen readers and tickets, use
/// --once, `watch` or `list`.
#[derive(Debug, clap::Args)]
pub(crate) struct DashArgs {
    /// First view to show [default: problems if there are any, otherwise jobs]
    #[arg(long, value_enum, value_name = "VIEW")]
    view: Option<View>,

    /// Initial filter; repeat to narrow further (`jobboard help filters`)
    #[arg(long, value_name = "EXPR")]
    filter: Vec<Filter>,

    /// Enable the upper-case keys, which change the board after confirmation
    #[arg(long, conflicts_with = "once")]
    act: bool,

    /// Print one frame as plain text and exit
    ///
    /// The frame is as wide as the terminal, or 80 columns, and shows up to 100 lines of the view.
    #[arg(long)]
    once: bool,

    /// Draw with ASCII only; other characters become ?
    ///
    /// This is the default if LC_ALL, LC_CTYPE or LANG names a non-UTF-8 locale.
    #[arg(long)]
    ascii: bool,
}

pub(crate) async fn run(ctx: &mut Context, args: DashArgs) -> anyhow::Result<()> {
    if let Some((problem, hint)) = problem(ctx, &args) {
        return Err(CommandError::usage(problem).hint(hint).into());
    }
    let board = ctx.board_writable_if(args.act)?;
    let choice = &ctx.config.board.value;
    let title = match &choice.name {
        Some(name) => format!("{name} ({})", board.url()),
        None => board.url().to_owned(),
    };
    let snapshot = Snapshot::new(board.capabilities(), None, Utc::now().trunc_subsecs(6)).unread();
    let mut state = DashState::new(&title, Filters::new(args.filter), args.view, snapshot);
    state.program = ctx.program();
    state.is_read_only = ctx.config.read_only.value;
    let look = DrawStyle {
        is_ascii: args.ascii || !is_utf8(ctx),
        is_coloured: ctx.out.is_coloured() && !args.once,
    };
    let questions = Questions {
        ctx,
        board: &*board,
    };
    if args.once {
        let frame = once(questions, state, look).await?;
        return ctx.out.document(frame.as_bytes());
    }
    state.may_act = args.act;
    state.protected = choice.name.clone().filter(|_| choice.is_protected);
    session::run(questions, state, look).await
}

fn problem(ctx: &Context, args: &DashArgs) -> Option<(&'static str, &'static str)> {
    let once = "`jobboard dash --once` prints one frame";
    let is_dumb = |term: OsString| term == "dumb" || term.is_empty();
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match args.once {
        true if args.view == Some(View::Events) => Some((
            "--once cannot show events: it prints the board at one moment",
            "`jobboard watch` prints events",
        )),
        false if !is_terminal => Some(("dash needs a terminal for its input and output", once)),
        false if ctx.environment.variable("TERM").is_none_or(is_dumb) => Some((
            "dash needs a terminal that can move its cursor; TERM names none",
            once,
        )),
        _ if ctx.out.is_json() => Some((
            "dash has no JSON output",
            "use `jobboard status --json` or `jobboard list --json`",
        )),
        _ => None,
    }
}

fn is_utf8(ctx: &Context) -> bool {
    let named = |name| ctx.environment.variable(name).filter(|it| !it.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(named);
    locale.is_none_or(|locale| {
        let locale = locale.to_string_lossy().to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    })
}

async fn once(
    questions: Questions<'_>,
    mut state: DashState,
    look: DrawStyle,
) -> anyhow::Result<String> {
    state.is_once = true;
    let filters = state.picture.filters.clone();
    let trying = || questions.ctx.trying("read", "the board");
    let mut take = |input| {
        let input = match input {
            DashInput::Unread(why) | DashInput::Hidden(Location::Board, why) => {
                return Err(anyhow::Error::msg(why)).with_context(trying);
            }
            DashInput::Hidden(_, why)
            | DashInput::History(Err(why))
            | DashInput::Snapshot(Err(why)) => {
                questions.ctx.out.note(format!("warning: {why}"));
                return Ok(());
            }
            input => input,
        };
        update(&mut state, input, Utc::now());
        Ok(())
    };
    questions.board.health().await.with_context(trying)?;
    let mut reading = questions.read(&filters);
    while let Some(some) = reading.next().await {
        take(some)?;
    }
    take(DashInput::Read)?;
    take(questions.ask(DashEffect::ReadHistory, filters).await)?;
    state.update_summary();
    let (columns, most) = ONCE;
    let terminal = size_of(io::stdout()).and_then(|(columns, _)| u16::try_from(columns).ok());
    let columns = terminal.unwrap_or(columns).max(draw::SMALLEST.0);
    let most = state.len().clamp(1, most);
    // The frame grows until all lines fit.
    state.size = (columns, u16::MAX);
    let above = usize::from(u16::MAX) - draw::lines(&state);
    state.size.1 = u16::try_from(above + most).unwrap_or(u16::MAX);
    state.fit(most, 0);
    let left_out = state.len() - most.min(state.len());
    Ok(text(&state, look, left_out))
}

fn text(state: &DashState, look: DrawStyle, left_out: usize) -> String {
    let (columns, rows) = state.size;
    let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
    draw(state, look, &mut buffer);
    let mut text = String::new();
    for row in buffer.content.chunks(usize::from(columns)) {
        let line: String = row.iter().map(ratatui::buffer::Cell::symbol).collect();
        text += line.trim_end();
        text.push('\n');
    }
    if left_out > 0 {
        text += &format!("  {left_out} more not shown\n");
    }
    text
}
