//! What lies over a view: the keys, a filter that is typed, a question.

use super::Canvas;
use crate::{
    commands::{
        dash::{
            act::{Dialog, Stage},
            keys::{KEYS, acts},
            state::{Field, Overlay, State},
        },
        parts::select,
    },
    output::{Pieces, Text, Tone},
};

/// How many jobs are shown at most before something is done to them, and how many lines are beside them.
const SAMPLE: (usize, usize) = (5, 8);

pub(super) fn draw(state: &State, canvas: &mut Canvas<'_>) {
    match &state.overlay {
        Overlay::Help => window(state, "keys", &keys(state), canvas),
        Overlay::Filter(field) => filter(state, field, canvas),
        Overlay::Dialog(dialog) => {
            let lines = dialog_lines(state, dialog);
            window(state, &dialog.question(), &lines, canvas);
        }
        Overlay::None | Overlay::Job(_) | Overlay::Conductor(..) => {}
    }
}

/// Draws a window in the middle of the screen.
fn window(state: &State, title: &str, lines: &[Pieces], canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    let wide = |line: &Pieces| line.iter().map(|(_, text)| text.width()).sum::<usize>();
    let title = Text::from(format!(" {title} ")).cut(usize::from(columns) - 8);
    let widest = lines.iter().map(wide).max().unwrap_or_default();
    let width = (widest.max(title.width()) + 4).min(usize::from(columns));
    let room = width - 4;
    let height = u16::try_from(lines.len() + 2).unwrap_or(rows).min(rows);
    let x = (columns - u16::try_from(width).unwrap_or(columns)) / 2;
    let y = (rows - height) / 2;
    let bar =
        |left: &str, right: &str| Text::from(format!("{left}{}{right}", "─".repeat(width - 2)));
    let end = x + u16::try_from(width).unwrap_or(columns);
    for (at, y) in (y..y + height).enumerate() {
        canvas.wipe(x..end, y);
        let line = at.checked_sub(1).and_then(|at| lines.get(at));
        match line {
            Some(line) if at + 1 < usize::from(height) => {
                canvas.line(x, y, &[(Tone::Plain, Text::from("│ "))]);
                for line in super::page::wrapped(vec![line.clone()], room)
                    .iter()
                    .take(1)
                {
                    canvas.line(x + 2, y, line);
                }
                canvas.line(end - 1, y, &[(Tone::Plain, Text::from("│"))]);
            }
            _ if at == 0 => {
                canvas.line(x, y, &[(Tone::Plain, bar("┌", "┐"))]);
                canvas.line(x + 2, y, &[(Tone::Strong, title.clone())]);
            }
            _ => _ = canvas.line(x, y, &[(Tone::Plain, bar("└", "┘"))]),
        }
    }
}

/// Tells of the keys, in two columns where there are not enough lines for one.
fn keys(state: &State) -> Vec<Pieces> {
    let known = KEYS.iter().filter(|keys| state.may_act || !acts(keys));
    let told = known.map(|(keys, does, ..)| {
        let keys = Text::from(format!("{keys:<14}"));
        vec![(Tone::Strong, keys), (Tone::Plain, Text::from(*does))]
    });
    let told: Vec<_> = told.collect();
    if told.len() + 2 <= usize::from(state.size.1) {
        return told;
    }
    let half = told.len().div_ceil(2);
    let room = (usize::from(state.size.0) - 4) / 2 - 14;
    let cut = |line: &Pieces| {
        let does = line[1].1.cut(room - 1);
        let space = " ".repeat(room - does.width());
        vec![
            line[0].clone(),
            (Tone::Plain, does),
            (Tone::Plain, Text::from(space)),
        ]
    };
    let (left, right) = told.split_at(half);
    let rows = left.iter().enumerate().map(|(at, line)| {
        let right = right.get(at).map(cut).unwrap_or_default();
        [cut(line), right].concat()
    });
    rows.collect()
}

/// Draws the filter that is typed, and under it what is wrong with it.
fn filter(state: &State, field: &Field, canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    let room = usize::from(columns).saturating_sub(11);
    let text = Text::from(&field.text);
    // The end is where one types.
    let hidden = text.width().saturating_sub(room);
    let shown = text.split(hidden).1;
    let y = rows - 3;
    let end = canvas.line(
        1,
        y,
        &[(Tone::Strong, Text::from("filter: ")), (Tone::Plain, shown)],
    );
    canvas.highlight(end..end + 1, y);
    let (tone, under) = match &field.error {
        Some(error) => (Tone::Bad, error.as_str()),
        None => (
            Tone::Faint,
            "such as held>10m and name=backup-*; Enter looks for it, Esc leaves it",
        ),
    };
    let under = vec![vec![(tone, Text::from(under))]];
    let lines = super::page::wrapped(under, usize::from(columns) - 2);
    for (line, y) in lines.iter().zip(y + 1..rows) {
        canvas.line(1, y, line);
    }
}

/// Shows what is to be done to which jobs, or what came of it.
fn dialog_lines(state: &State, dialog: &Dialog) -> Vec<Pieces> {
    let say =
        |tone, text: String| vec![(tone, Text::from(text).cut(usize::from(state.size.0) - 6))];
    let sample = usize::from(state.size.1)
        .saturating_sub(SAMPLE.1)
        .clamp(1, SAMPLE.0);
    let mut lines = Vec::new();
    if let Stage::Done(done, problems) = &dialog.stage {
        lines.push(say(Tone::Strong, done.clone()));
        lines.extend(
            problems
                .iter()
                .take(sample)
                .map(|problem| say(Tone::Bad, problem.clone())),
        );
        if problems.len() > sample {
            lines.push(say(
                Tone::Bad,
                format!("… and {} more", problems.len() - sample),
            ));
        }
        lines.push(say(Tone::Faint, "any key goes on".to_owned()));
        return lines;
    }
    lines.push(say(Tone::Faint, format!("on {}", state.board)));
    for (entry, has_changed) in dialog.jobs.iter().take(sample) {
        let described = select::describe(entry);
        lines.push(match has_changed {
            true => say(
                Tone::Bad,
                format!("{described}: changed since, and left alone"),
            ),
            false => say(Tone::Plain, described),
        });
    }
    if dialog.jobs.len() > sample {
        lines.push(say(
            Tone::Plain,
            format!("… and {} more", dialog.jobs.len() - sample),
        ));
    }
    if dialog.gone > 0 {
        lines.push(say(Tone::Busy, format!("{} gone meanwhile", dialog.gone)));
    }
    lines.push(Pieces::new());
    lines.push(match (&dialog.stage, &state.protected) {
        (Stage::Looking, _) => say(Tone::Busy, "looking at the jobs…".to_owned()),
        (Stage::Acting, _) => say(Tone::Busy, "…".to_owned()),
        (_, Some(_)) => say(
            Tone::Strong,
            format!(
                "This board is protected; type its name to go on: {}",
                dialog.typed
            ),
        ),
        (_, None) => say(Tone::Strong, "y does it, any other key does not".to_owned()),
    });
    lines
}
