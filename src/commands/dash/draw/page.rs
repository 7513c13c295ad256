//! The page of a job, a problem or a conductor; beside a wide view, the one of the selected line.

use std::ops::Range;

use super::{
    Canvas,
    table::{conductor, mark, mark_of},
};
use crate::{
    commands::{
        dash::cursor::Lines,
        dash::state::{DashState, Opened, Overlay},
        parts::problems,
    },
    duration,
    job::{Entry, Failure},
    output::{JobView, Page, Pieces, Report as _, Text, Tone},
    problem::Problem,
    secret::covered_text,
};

/// Evidence that repeats a fact of the job.
const FACTS: [&str; 11] = [
    "attempts", "by", "claimed", "ended", "expires", "failed", "owner", "posted", "released",
    "trashed", "until",
];

/// The last lines of a failed command's output.
const OUTPUT: usize = 8;

pub(super) fn draw(state: &DashState, body: Range<u16>, canvas: &mut Canvas<'_>) {
    let height = usize::from(body.end - body.start);
    let page = page(state);
    let from = state.scroll.min(page.len().saturating_sub(height));
    for (line, y) in page.iter().skip(from).zip(body.clone()) {
        canvas.line(1, y, line);
    }
    if page.len() > height {
        let place = format!("{}-{}/{}", from + 1, from + height, page.len());
        canvas.right(body.end, &[(Tone::Faint, Text::from(place))]);
    }
}

pub(super) fn draw_aside(state: &DashState, body: Range<u16>, x: u16, canvas: &mut Canvas<'_>) {
    let room = usize::from(state.size.0.saturating_sub(x + 3));
    let lines = match (&state.opened, state.selected()) {
        (Some(opened), Some(selected)) if opened.reference == selected.reference => {
            job(state, opened, room)
        }
        (_, Some(_)) => Vec::new(),
        (_, None) => selected(state, room),
    };
    let mut lines = lines.into_iter();
    for y in body {
        canvas.line(x, y, &[(Tone::Faint, Text::from("│"))]);
        canvas.line(x + 2, y, &lines.next().unwrap_or_default());
    }
}

fn selected(state: &DashState, room: usize) -> Vec<Pieces> {
    let at = state.cursor().at;
    let summary = &state.summary;
    match state.shown() {
        Lines::Groups(groups) => groups.get(at).map_or_else(Vec::new, |group| {
            let names: Vec<_> = group.names.iter().map(String::as_str).collect();
            let sentences = [
                (Tone::Strong, group.reason.as_str()),
                (Tone::Plain, &names.join("\n")),
                (Tone::Faint, "Enter shows the jobs, Space unfolds all"),
            ];
            wrapped_sentences(room, &sentences)
        }),
        Lines::Problems => {
            let problem = summary.problems.get(at);
            problem.map_or_else(Vec::new, |it| problem_page(state, it, room))
        }
        Lines::Conductors => {
            let conductor = state.conductors().nth(at);
            conductor_page(state, room, conductor.map(|it| &it.name))
        }
        Lines::Owners => {
            let owner = summary.owners.get(at);
            conductor_page(state, room, owner.and_then(|it| it.conductor.as_ref()))
        }
        Lines::Rows | Lines::History | Lines::Events => Vec::new(),
    }
}

fn conductor_page(state: &DashState, room: usize, name: Option<&String>) -> Vec<Pieces> {
    let mut known = state.conductors();
    let known = known.find(|it| Some(&it.name) == name);
    known.map_or_else(Vec::new, |it| {
        lines(room, |page| conductor(state, it).human(page))
    })
}

fn problem_page(state: &DashState, problem: &Problem, room: usize) -> Vec<Pieces> {
    lines(room, |page| {
        let (mark, tone) = mark_of(problem.severity);
        page.line()
            .add(tone, format!("{mark} "))
            .add(Tone::Strong, problem.code.name());
        page.sentence(0).plain(&problem.summary);
        // Without jobs, the rest begins with the impact.
        if problem.jobs > 0 {
            page.sentence(0).add(Tone::Faint, problem.impact);
        }
        problems::print_rest(problem, state.now, "", page);
    })
}

pub(super) fn page(state: &DashState) -> Vec<Pieces> {
    let room = usize::from(state.size.0).saturating_sub(2);
    match &state.overlay {
        Overlay::Job => {
            let opened = state.page_job();
            opened.map_or_else(Vec::new, |it| job(state, it, room))
        }
        Overlay::Line => selected(state, room),
        Overlay::None | Overlay::Help | Overlay::Input(_) | Overlay::Dialog(_) => Vec::new(),
    }
}

fn job(state: &DashState, opened: &Opened, room: usize) -> Vec<Pieces> {
    let entry = match &opened.found {
        None => return wrapped_sentences(room, &[(Tone::Faint, "looking…")]),
        Some(Err(why)) => return wrapped_sentences(room, &[(Tone::Bad, why)]),
        Some(Ok(entry)) => entry,
    };
    // The last failure comes first; nothing is shown twice.
    let mut brief = entry.clone();
    let failure = match &mut brief {
        Entry::Job(job) => job.attempts.failures.pop(),
        Entry::Malformed(_) => None,
    };
    if let (Some(failure), Entry::Job(job)) = (&failure, &mut brief)
        && let Some(audit) = &mut job.attempts.audit
    {
        audit.reason.take_if(|reason| *reason == failure.reason);
    }
    let top = lines(room, |page| {
        title(page, entry, opened);
        if let Some(failure) = &failure {
            failed(state, failure, page);
        }
        match &opened.explained {
            None => _ = page.line().add(Tone::Faint, "explaining…"),
            Some(Err(why)) => _ = page.sentence(0).add(Tone::Bad, why),
            Some(Ok(explanation)) => explanation.reasons(page, |what| !FACTS.contains(&what)),
        }
        page.line();
    });
    let facts = lines(room, |page| {
        let view = JobView::of(&brief, state.now);
        view.under(&state.picture.snapshot.pauses).human(page);
    });
    // The title is there already.
    top.into_iter().chain(facts.into_iter().skip(1)).collect()
}

fn title(page: &mut Page, entry: &Entry, opened: &Opened) {
    let line = page.line().add(Tone::Strong, entry.name()).plain("  ");
    match &opened.explained {
        Some(Ok(explanation)) => {
            let (mark, tone) = mark(explanation.verdict);
            line.add(tone, format!("{mark} {}", explanation.verdict));
        }
        _ => {
            let state = entry.state();
            line.add(Tone::of(state), state.name());
        }
    }
}

fn failed(state: &DashState, failure: &Failure, page: &mut Page) {
    let ago = duration::between(failure.time, state.now);
    page.sentence(2)
        .add(Tone::Bad, failure.headline())
        .plain(format!("  {ago} ago on {}", failure.conductor));
    let text = failure
        .last_lines()
        .last()
        .map(|(_, text)| covered_text(text));
    let text = text.unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    // The headline has the last line.
    let lines = &lines[..lines.len().saturating_sub(1)];
    for line in &lines[lines.len().saturating_sub(OUTPUT)..] {
        page.block(&format!("  {line}"));
    }
}

pub(super) fn wrapped_sentences(columns: usize, sentences: &[(Tone, &str)]) -> Vec<Pieces> {
    lines(columns, |page| {
        for (tone, text) in sentences {
            page.line().add(*tone, text);
        }
    })
}

fn lines(columns: usize, write: impl FnOnce(&mut Page)) -> Vec<Pieces> {
    let mut page = Page::new(Some((columns, 0))).wrapping_commands();
    write(&mut page);
    page.into_lines()
}
