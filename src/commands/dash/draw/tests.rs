//! Snapshot tests of frames.

use std::time::Duration;

use chrono::TimeDelta;
use clap::ValueEnum as _;
use ratatui::{
    Terminal,
    backend::TestBackend,
    style::{Color, Modifier},
};
use serde_json::json;

use super::{DrawStyle, draw, fit};
use crate::{
    commands::dash::{
        act::{DashEffect, Dialog, Operation, TaskStage},
        keys::View,
        rates::{Rate, Rates},
        state::{DashState, Overlay},
        tests::{
            east, entries, failed, feed, held, job, know, now, press, read, snapshot_of, state,
            trashed,
        },
        update::{DashInput, update},
    },
    diagnosis::ExplainedJob,
    job::{
        AuditEntry, ClaimEnd, End, Entry, Holding, Job, JobKey, Location, Outcome, Pause, Pauses,
    },
    output::Tone,
    suggest::Suggestion,
};

const COLOURED: DrawStyle = DrawStyle {
    is_ascii: false,
    is_coloured: true,
};

fn frame(state: &mut DashState, size: (u16, u16), look: DrawStyle) -> TestBackend {
    state.size = size;
    fit(state);
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal
        .draw(|frame| draw(state, look, frame.buffer_mut()))
        .unwrap();
    terminal.backend().clone()
}

fn busy() -> Vec<Job> {
    let jobs = (0..40).map(|at| job(&format!("backup-{at:02}"), 100 - at));
    let mut jobs: Vec<_> = jobs.collect();
    let mut renewed = held(job("convert", 30), "east", 12);
    renewed.holding = renewed.holding.map(|holding| Holding {
        end: ClaimEnd::Timed,
        expires_in: Some(Duration::from_secs(21)),
        ..holding
    });
    let mut delayed = failed(job("snapshot", 200), "no room on /dev/sda1", 3);
    delayed.attempts.not_before = Some(now() + TimeDelta::minutes(2));
    jobs.extend([renewed, delayed]);
    jobs.push(held(job("resize", 300), "ada@desk-4:4711:c0ffee01", 61));
    for at in 0..3 {
        let mail = job(&format!("mail-{at}"), 400);
        jobs.push(trashed(failed(mail, "connected\nconnection refused", 8)));
    }
    let export = job("export", 500);
    jobs.push(trashed(failed(export, "no room on /dev/sdb7", 9)));
    for job in &mut jobs {
        job.details = Some(json!({ "command": ["true"] }).into());
    }
    jobs.push(job("no-handler", 20));
    jobs
}

fn ended(name: &str, outcome: Outcome) -> Entry {
    let ended = End {
        outcome,
        on: now() - TimeDelta::minutes(name.len() as i64),
        owner: None,
        claimed_on: None,
        has_succeeded: outcome == Outcome::Consumed,
    };
    Entry::Job(Box::new(Job {
        location: Location::History,
        ended: Some(ended),
        ..job(name, 90)
    }))
}

fn seen(view: View) -> DashState {
    let mut state = state(view, busy());
    let audit = AuditEntry::now("paused", "olga", Some("maintenance"));
    let pause = Pause::new("backup-3*".to_owned(), None, audit);
    let snapshot = snapshot_of(vec![east()]).with_pauses(Pauses::new(vec![pause], now()));
    let history = [
        ("resize", Outcome::Consumed),
        ("old", Outcome::Purged),
        ("new", Outcome::Consumed),
    ];
    let history = history.map(|(name, outcome)| ended(name, outcome));
    state.events.clear();
    feed(&mut state, DashInput::Reading);
    know(&mut state, snapshot);
    read(&mut state, busy());
    feed(&mut state, DashInput::History(Ok(history.to_vec())));
    state.update_summary();
    state.rates = Rates::default();
    for (second, count) in [(0, 2), (1, 8), (5, 4)] {
        let at = now() - TimeDelta::seconds(9 - second);
        state.rates.count(Rate::Posted, count, at);
        state.rates.count(Rate::Finished, count * 2, at);
    }
    state.rates.advance(now());
    state
}

#[test]
fn too_small_terminal_shows_a_message() {
    insta::assert_snapshot!(frame(&mut seen(View::Jobs), (40, 10), COLOURED));
}

#[test]
fn golden_frames() {
    for view in View::value_variants() {
        for size in [(80, 24), (100, 30), (140, 40), (200, 50)] {
            let mut state = seen(*view);
            state.size = size;
            press(&mut state, "gj");
            open_selected(&mut state);
            let name = format!("{}_{}x{}", view.title().to_lowercase(), size.0, size.1);
            insta::assert_snapshot!(name, frame(&mut state, size, COLOURED));
        }
    }
}

/// Supplies the selected job that a wide view requests.
fn open_selected(state: &mut DashState) {
    let Some(opened) = state.selected().filter(|_| state.has_aside()) else {
        return;
    };
    let selected = state.picture.at(state.cursor().at);
    let entry = match (selected, &opened.found) {
        (_, Some(Ok(entry))) => entry.clone(),
        (Some((place, _)), _) if state.has_rows() => {
            let jobs = busy().into_iter();
            let mut jobs = jobs.filter(|job| job.key == place.1 && job.location == place.0);
            Entry::Job(Box::new(jobs.next().unwrap()))
        }
        _ => return,
    };
    let explained = ExplainedJob {
        entry: &entry,
        location: entry.job().unwrap().location,
        is_late: false,
        before: None,
    };
    let explanation = state.picture.snapshot.explain(&explained);
    let program = Suggestion::of("jobboard");
    let reference = opened.reference;
    feed(state, DashInput::Opened(reference.clone(), Ok(entry)));
    let explained = DashInput::Explained(reference.clone(), Ok(explanation.on(&program)));
    feed(state, explained);
}

#[test]
fn small_terminal() {
    let mut state = seen(View::Jobs);
    state.may_act = true;
    press(&mut state, "xx");
    insta::assert_snapshot!(frame(&mut state, (60, 12), COLOURED));
    press(&mut state, "?G");
    insta::assert_snapshot!(frame(&mut state, (60, 12), COLOURED));
    press(&mut state, "\u{1b}");
    let refused = "redis://localhost cannot be reached to watch the jobs: connection refused; start the server there, or choose another with --board";
    feed(&mut state, DashInput::Lost(refused.to_owned()));
    insta::assert_snapshot!(frame(&mut state, (60, 12), COLOURED));
}

#[test]
fn empty_unreachable_board() {
    let mut state = state(View::Jobs, Vec::new());
    let refused = DashInput::Lost("redis://localhost cannot be reached: refused".to_owned());
    update(&mut state, refused, now() - TimeDelta::seconds(12));
    state.now = now();
    insta::assert_snapshot!(frame(&mut state, (80, 24), COLOURED));
}

#[test]
fn filter_input_and_its_error() {
    let mut state = seen(View::Jobs);
    press(&mut state, "/claims>3");
    insta::assert_snapshot!(frame(&mut state, (80, 24), COLOURED));
    press(&mut state, "\u{1b}?");
    state.may_act = true;
    insta::assert_snapshot!(frame(&mut state, (80, 24), COLOURED));
}

#[test]
fn confirmation_and_result() {
    let mut state = seen(View::Jobs);
    state.may_act = true;
    let jobs = entries(busy().into_iter().rev().take(7).collect());
    let keys = jobs.iter().map(Entry::key).cloned();
    let places = keys.chain([JobKey::new("gone")]);
    let places = places.map(|key| (Location::Board, key)).collect();
    let mut dialog = Dialog::new(Operation::Trash, places);
    let changed = jobs[1].key().clone();
    dialog.ask(jobs, &state.picture.snapshot.pauses, now());
    dialog.note_change(&changed);
    dialog.typed = "pr".to_owned();
    state.overlay = Overlay::Dialog(Box::new(dialog));
    insta::assert_snapshot!(frame(&mut state, (80, 24), COLOURED));
    state.protected = Some("prod".to_owned());
    state.board = "prod (redis://localhost)".to_owned();
    insta::assert_snapshot!(frame(&mut state, (60, 12), COLOURED));
    let problems = vec!["1f0c9a58 resize: the job has changed meanwhile".to_owned()];
    let done = TaskStage::Done("trashed 6 jobs".to_owned(), problems);
    if let Overlay::Dialog(dialog) = &mut state.overlay {
        dialog.stage = done;
    }
    insta::assert_snapshot!(frame(&mut state, (80, 24), COLOURED));
}

#[test]
fn zero_columns_terminate() {
    let lines = super::page::wrapped_sentences(0, &[(Tone::Plain, "text")]);
    assert_eq!(lines.len(), 4);
}

/// Asserts that no text on the screen controls the terminal.
fn is_inert(state: &mut DashState) {
    for size in [(160, 30), (60, 12), (120, 20)] {
        let frame = frame(state, size, COLOURED);
        let cells = frame.buffer().content.iter();
        let mut chars = cells.flat_map(|cell| cell.symbol().chars());
        let acts = |char: &char| char.is_control() || "\u{202e}\u{200b}\u{9b}".contains(*char);
        assert_eq!(chars.find(acts), None, "{frame}");
    }
}

#[test]
fn hostile_names_are_harmless() {
    let mut evil = job("\u{1b}[2J\u{1b}]0;owned\u{7}\u{202e}gpj\tx\ny", 9);
    evil.problem = Some("\u{9b}31m".to_owned());
    let evil = held(evil, "\u{1b}[8m日本\u{200b}", 3);
    let mut state = state(View::Jobs, vec![failed(evil, "\u{1b}c", 1)]);
    for view in View::value_variants() {
        state.view = *view;
        state.list();
        is_inert(&mut state);
    }
    state.view = View::Jobs;
    state.list();
    // The same for overlays, the bottom line and pages.
    state.may_act = true;
    let (place, row) = state.picture.at(0).unwrap();
    let evil = row.entry(place, now());
    let place = (Location::Board, evil.key().clone());
    for (keys, operation) in [("T", Operation::Trash), ("P", Operation::Pause)] {
        press(&mut state, keys);
        let found = DashInput::Prepared(operation, vec![place.clone()], Ok(vec![evil.clone()]));
        feed(&mut state, found);
        is_inert(&mut state);
        let done = TaskStage::Done("\u{1b}[2J".to_owned(), vec!["\u{202e}\n".repeat(90)]);
        press(&mut state, "\n");
        feed(&mut state, DashInput::Performed(done));
        is_inert(&mut state);
        press(&mut state, "q");
    }
    let lost = "\u{1b}]0;owned\u{7}\n".repeat(30);
    feed(&mut state, DashInput::Lost(lost));
    is_inert(&mut state);
    let opened = press(&mut state, "\n");
    if let Some(DashEffect::Open(reference)) = opened.into_iter().next() {
        feed(&mut state, DashInput::Opened(reference, Ok(evil)));
    }
    is_inert(&mut state);
    press(&mut state, "\u{1b}");
    insta::assert_snapshot!(frame(&mut state, (80, 14), COLOURED));
}

#[test]
fn ascii_without_colours_is_complete() {
    let mut state = seen(View::Jobs);
    press(&mut state, "?");
    let look = DrawStyle {
        is_ascii: true,
        is_coloured: false,
    };
    let frame = frame(&mut state, (80, 24), look);
    let mut cells = frame.buffer().content.iter();
    assert!(cells.all(|cell| cell.symbol().is_ascii() && cell.fg == Color::Reset));
    insta::assert_snapshot!(frame);
}

#[test]
fn only_terminal_colours_are_used_and_the_selected_line_is_visible() {
    let frame = frame(&mut seen(View::Trash), (80, 24), COLOURED);
    let buffer = frame.buffer();
    let mut cells = buffer.content.iter();
    assert!(cells.all(|cell| !matches!(cell.fg, Color::Rgb(..) | Color::Indexed(_))));
    let is_selected = |line| {
        let cell = buffer.cell((5, line)).unwrap();
        cell.modifier.contains(Modifier::REVERSED)
    };
    assert!(is_selected(6) && !is_selected(7));
}

/// Run by hand in a release build, to measure a frame.
#[test]
#[ignore = "it measures"]
fn frame_of_100_000_jobs_is_fast() {
    let jobs = (0..100_000).map(|at| job(&format!("job-{at}"), at));
    let mut state = state(View::Jobs, jobs.collect());
    state.size = (200, 60);
    let mut terminal = Terminal::new(TestBackend::new(200, 60)).unwrap();
    let start = std::time::Instant::now();
    for _ in 0..1000 {
        press(&mut state, "j");
        fit(&mut state);
        let draw = |frame: &mut ratatui::Frame<'_>| draw(&state, COLOURED, frame.buffer_mut());
        terminal.draw(draw).unwrap();
    }
    println!("{:?} a frame", start.elapsed() / 1000);
}
