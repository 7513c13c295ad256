//! Tests how keys act on jobs.

use super::{apply, entries, feed, held, job, know, now, press, read, snapshot_of, state, trashed};
use crate::{
    board::{EventKind, testing::assert_matches},
    commands::dash::{
        act::{DashEffect, Operation, TaskStage},
        keys::View,
        state::{DashState, Overlay},
        update::DashInput,
    },
    job::{AuditEntry, Job, JobKey, Location, Pause, Pauses},
};

fn prepared(operation: Operation, jobs: &[Job]) -> DashInput {
    let places = jobs.iter().map(|job| (job.location, job.key.clone()));
    DashInput::Prepared(operation, places.collect(), Ok(entries(jobs.to_vec())))
}

fn has_message(state: &DashState, part: &str) -> bool {
    let message = state.message.as_ref();
    message.is_some_and(|(_, text)| text.as_str().contains(part))
}

#[test]
fn marked_jobs_are_changed_after_confirmation() {
    let jobs = vec![held(job("a", 9), "ada", 3), job("b", 5)];
    let mut state = state(View::Jobs, jobs.clone());
    assert!(press(&mut state, "T").is_empty(), "it only looks");
    state.may_act = true;
    let found = || prepared(Operation::Trash, &jobs[..1]);
    let ask = |state: &mut DashState| {
        let effects = press(state, "T");
        let place = (Location::Board, JobKey::new("a"));
        assert_matches!(&effects[..], [DashEffect::Prepare(Operation::Trash, it)] if *it == [place]);
    };
    press(&mut state, "x");
    // Every other answer is a no.
    ask(&mut state);
    feed(&mut state, found());
    assert!(press(&mut state, "y").is_empty());
    assert!(matches!(state.overlay, Overlay::None));
    // Keys before the question confirm nothing.
    ask(&mut state);
    assert!(press(&mut state, "\ny\nT").is_empty());
    feed(&mut state, found());
    let effects = press(&mut state, "\n");
    assert_matches!(&effects[..], [DashEffect::Perform(_)]);
    // These keys confirm nothing.
    assert!(press(&mut state, "yq\n").is_empty());
    let done = TaskStage::Done(String::new(), Vec::new());
    feed(&mut state, DashInput::Performed(done));
    press(&mut state, "q");
    assert!(state.marks.is_empty());
    // The question on a protected board requires its name.
    state.protected = Some("prod".to_owned());
    press(&mut state, "gx");
    ask(&mut state);
    feed(&mut state, found());
    assert!(press(&mut state, "y\n").is_empty());
    ask(&mut state);
    feed(&mut state, found());
    let effects = press(&mut state, "prod\n");
    assert_matches!(&effects[..], [DashEffect::Perform(_)]);
}

#[test]
fn confirmation_belongs_to_its_own_question() {
    let jobs = vec![job("a", 9), job("b", 5)];
    let mut state = state(View::Jobs, jobs.clone());
    state.may_act = true;
    press(&mut state, "A\u{1b}C");
    feed(&mut state, prepared(Operation::Abandon, &jobs[..1]));
    assert!(press(&mut state, "\n").is_empty(), "another question");
    feed(&mut state, prepared(Operation::Consume, &jobs[..1]));
    // The job has changed since it was shown.
    apply(&mut state, EventKind::Claimed, &jobs[0]);
    assert!(press(&mut state, "\n").is_empty());
}

#[test]
fn only_visible_suitable_jobs_are_changed() {
    let jobs = vec![job("a", 9), job("b", 5), trashed(job("c", 3))];
    let mut state = state(View::Trash, jobs.clone());
    state.may_act = true;
    // A job on the board may have the same key.
    for keys in ["C", "T", "A"] {
        assert!(press(&mut state, keys).is_empty(), "{keys}");
    }
    let effects = press(&mut state, " xR\u{1b}2C");
    assert_matches!(&effects[..], [DashEffect::Prepare(Operation::Retry, _)]);
    assert!(matches!(state.overlay, Overlay::None));
    assert!(has_message(&state, "not in this view"));
}

#[test]
fn impossible_action_is_reported_immediately() {
    let jobs = vec![job("a", 9), trashed(job("c", 3))];
    let mut state = state(View::Jobs, jobs);
    state.may_act = true;
    for (keys, problem) in [
        ("A", "the job is not claimed"),
        ("4 C", "is in the trash"),
        ("6x", "select a job"),
        ("1T", "select a job"),
    ] {
        assert!(press(&mut state, &keys[..keys.len() - 1]).len() < 2);
        assert!(press(&mut state, &keys[keys.len() - 1..]).is_empty());
        assert!(has_message(&state, problem), "{:?}", state.message);
    }
}

#[test]
fn same_key_pauses_and_resumes() {
    let jobs = vec![job("backup-1", 9), job("resize", 5)];
    let mut state = state(View::Jobs, jobs.clone());
    state.may_act = true;
    let audit = AuditEntry::now("paused", "olga", None);
    let pause = Pause::new("backup-*".to_owned(), None, audit);
    let pauses = Pauses::new(vec![pause], now());
    know(&mut state, snapshot_of(Vec::new()).with_pauses(pauses));
    for (keys, operation, asked) in [
        ("P", Operation::Resume, "resume jobs named backup-*?"),
        ("\u{1b}jP", Operation::Pause, "pause all jobs named resize?"),
    ] {
        let effects = press(&mut state, keys);
        assert!(matches!(effects[..], [DashEffect::Prepare(it, _)] if it == operation));
        let at = usize::from(operation == Operation::Pause);
        feed(&mut state, prepared(operation, &jobs[at..=at]));
        let Overlay::Dialog(dialog) = &state.overlay else {
            panic!("{:?}", state.overlay);
        };
        assert_eq!(dialog.question(), asked);
    }
}

#[test]
fn escape_closes_then_unmarks_then_clears_the_filter() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    state.may_act = true;
    press(&mut state, "/name=*\n");
    feed(&mut state, DashInput::Reading);
    read(&mut state, vec![job("a", 9), job("b", 5)]);
    press(&mut state, "x?");
    assert!(press(&mut state, "\u{1b}").is_empty());
    assert_eq!(state.marks.len(), 1);
    assert!(press(&mut state, "\u{1b}").is_empty());
    assert!(state.marks.is_empty() && !state.picture.filters.is_empty());
    let effects = press(&mut state, "\u{1b}");
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    assert!(state.picture.filters.is_empty());
}
