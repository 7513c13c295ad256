//! Overlays of a view: the key help, the filter input, a question.

use super::{Canvas, page::wrapped_sentences};
use crate::{
    commands::{
        bulk::select,
        dash::{
            act::{Dialog, TaskStage},
            field::Field,
            keys::known,
            state::{DashState, Overlay},
        },
    },
    output::{Pieces, Text, Tone, width},
};

/// The number of jobs shown in a question, and of lines beside them.
const SAMPLE: (usize, usize) = (5, 8);

pub(super) fn draw(state: &DashState, canvas: &mut Canvas<'_>) {
    match &state.overlay {
        Overlay::Help => window(state, "keys", keys(state), canvas),
        Overlay::Input(field) => filter(state, field, canvas),
        Overlay::Dialog(dialog) => {
            let lines = dialog_lines(state, dialog);
            window(state, dialog.operation.words().0, lines, canvas);
        }
        Overlay::None | Overlay::Job | Overlay::Line => {}
    }
}

fn window(state: &DashState, title: &str, lines: Vec<Pieces>, canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    let widest = lines.iter().map(|it| width(it)).max().unwrap_or_default();
    let width = (widest.max(title.len() + 16) + 4).min(usize::from(columns));
    let room = usize::from(rows).saturating_sub(2);
    let seen = lines.len().min(room);
    let from = state.scroll.min(lines.len() - seen);
    let title = match seen < lines.len() {
        true => format!(" {title} {}-{}/{} ", from + 1, from + seen, lines.len()),
        false => format!(" {title} "),
    };
    let bar = |[left, right]: [&str; 2]| {
        let bar = format!("{left}{}{right}", "─".repeat(width - 2));
        vec![(Tone::Plain, Text::from(bar))]
    };
    let x = (columns - u16::try_from(width).unwrap_or(columns)) / 2;
    let end = x + u16::try_from(width).unwrap_or(columns);
    let y = (rows - u16::try_from(seen + 2).unwrap_or(rows)) / 2;
    let inside = lines.into_iter().skip(from).take(seen).map(|line| {
        let border = vec![(Tone::Plain, Text::from("│ "))];
        [border, line].concat()
    });
    let framed = [bar(["┌", "┐"])].into_iter().chain(inside);
    for (line, y) in framed.chain([bar(["└", "┘"])]).zip(y..) {
        canvas.wipe(x..end, y);
        let border = canvas.line(x, y, &line) < end;
        if border {
            canvas.line(end - 1, y, &[(Tone::Plain, Text::from("│"))]);
        }
    }
    canvas.line(x + 2, y, &[(Tone::Strong, Text::from(title))]);
}

pub(super) fn keys(state: &DashState) -> Vec<Pieces> {
    let lines = known(state.may_act).map(|(keys, does, ..)| {
        let keys = Text::from(format!("{keys:<14}"));
        vec![(Tone::Strong, keys), (Tone::Plain, Text::from(*does))]
    });
    lines.collect()
}

pub(super) fn under(state: &DashState, field: &Field) -> Vec<Pieces> {
    let completions = field.completions().join("  ");
    let (tone, under) = match &field.error {
        _ if !completions.is_empty() && !field.text.is_empty() => (Tone::Faint, &*completions),
        Some(error) => (Tone::Bad, error.as_str()),
        None if !field.is_filter => (Tone::Faint, &*completions),
        None => (
            Tone::Faint,
            "a word, or for example held>10m and name=backup-*; Enter keeps it, Esc cancels, Tab completes",
        ),
    };
    let mut lines = wrapped_sentences(
        usize::from(state.size.0).saturating_sub(2),
        &[(tone, under)],
    );
    lines.truncate(usize::from(state.size.1 / 3));
    lines
}

fn filter(state: &DashState, field: &Field, canvas: &mut Canvas<'_>) {
    let (columns, rows) = state.size;
    let room = usize::from(columns).saturating_sub(11);
    let text = Text::from(&field.text);
    // Keeps the end visible for typing.
    let hidden = text.width().saturating_sub(room);
    let shown = (Tone::Plain, text.split(hidden).1);
    let under = under(state, field);
    let y = rows - 1 - u16::try_from(under.len()).unwrap_or(rows);
    let prompt = if field.is_filter { "filter: " } else { ":" };
    let end = canvas.line(1, y, &[(Tone::Strong, Text::from(prompt)), shown]);
    canvas.highlight(end..end + 1, y);
    for (line, y) in under.iter().zip(y + 1..) {
        canvas.line(1, y, line);
    }
}

fn dialog_lines(state: &DashState, dialog: &Dialog) -> Vec<Pieces> {
    let sample = usize::from(state.size.1)
        .saturating_sub(SAMPLE.1)
        .clamp(1, SAMPLE.0);
    let more = |all: usize| format!("… and {} more", all - sample);
    let mut lines = Vec::new();
    if let TaskStage::Done(done, problems) = &dialog.stage {
        lines.push((Tone::Strong, done.clone()));
        let problem = |problem: &String| (Tone::Bad, problem.clone());
        lines.extend(problems.iter().take(sample).map(problem));
        if problems.len() > sample {
            lines.push((Tone::Bad, more(problems.len())));
        }
        lines.push((Tone::Faint, "press any key".to_owned()));
    } else {
        lines.push((Tone::Strong, dialog.question()));
        lines.push((Tone::Faint, format!("on {}", state.board)));
        for (entry, has_changed) in dialog.jobs.iter().take(sample) {
            let described = select::describe(entry);
            lines.push(match has_changed {
                true => (
                    Tone::Bad,
                    format!("{described}: changed meanwhile, skipped"),
                ),
                false => (Tone::Plain, described),
            });
        }
        if dialog.jobs.len() > sample {
            lines.push((Tone::Plain, more(dialog.jobs.len())));
        }
        lines.extend(dialog.left_out.clone().map(|why| (Tone::Warning, why)));
        let gone = dialog.places.len().saturating_sub(dialog.jobs.len());
        if gone > 0 && dialog.stage != TaskStage::Looking {
            lines.push((Tone::Warning, format!("{gone} no longer there")));
        }
        lines.push(match (&dialog.stage, &state.protected) {
            (TaskStage::Looking, _) => (Tone::Warning, "reading the jobs…".to_owned()),
            (TaskStage::Acting, _) => (Tone::Warning, "…".to_owned()),
            (_, Some(_)) => {
                let ask = "This board is protected; type its name and press Enter:";
                (Tone::Strong, format!("{ask} {}", dialog.typed))
            }
            (_, None) => (
                Tone::Strong,
                "Enter confirms, any other key cancels".to_owned(),
            ),
        });
    }
    let lines: Vec<_> = (lines.iter())
        .map(|(tone, text)| (*tone, text.as_str()))
        .collect();
    wrapped_sentences(usize::from(state.size.0) - 6, &lines)
}
