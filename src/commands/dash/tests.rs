//! Tests how the dashboard changes with events.

mod acting;

use chrono::{DateTime, TimeDelta, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    draw::fit,
    effect::{DashEffect, DashInput},
    rates::Rate,
    state::{DashState, Link, Overlay},
    update::update,
    view::View,
};
use crate::{
    board::{
        Event, EventKind, JobRef,
        filter::Filters,
        testing::scripted::{Scripted, event},
    },
    job::{Entry, Failure, Holding, Job, JobKey, Lease, Owner, Shelf},
};

pub(super) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(10_000)
}

pub(super) fn job(name: &str, minutes: i64) -> Job {
    let mut job = Scripted::new().post(name, None);
    job.created_on = Some(now() - TimeDelta::minutes(minutes));
    job.sequence = Some(1_000_000 - minutes);
    job.uuid = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string();
    job
}

pub(super) fn held(mut job: Job, owner: &str, minutes: i64) -> Job {
    job.holding = Some(Holding {
        owner: Some(Owner::from_stored(owner)),
        lease: Lease::None,
        expires_in: None,
        outlives: None,
        claimed_on: Some(now() - TimeDelta::minutes(minutes)),
        fence: None,
    });
    job
}

pub(super) fn failed(mut job: Job, said: &str, minutes: i64) -> Job {
    job.history.attempts += 1;
    job.history.failures.push(Failure {
        exit_code: Some(1),
        stderr: said.to_owned(),
        time: now() - TimeDelta::minutes(minutes),
        ..Failure::reported("the command ended with code 1", "c1")
    });
    job
}

pub(super) fn trashed(mut job: Job) -> Job {
    job.shelf = Shelf::Trash;
    job.trashed_on = Some(now() - TimeDelta::minutes(1));
    job
}

fn entries(jobs: Vec<Job>) -> Vec<Entry> {
    jobs.into_iter()
        .map(|job| Entry::Job(Box::new(job)))
        .collect()
}

pub(super) fn state(view: View, jobs: Vec<Job>) -> DashState {
    let mut state = DashState::new("redis://localhost", Filters::default(), view, now());
    let (trash, board): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| job.shelf == Shelf::Trash);
    for input in [
        DashInput::Listening(None),
        DashInput::Reading,
        DashInput::Entries(Shelf::Board, entries(board)),
        DashInput::Entries(Shelf::Trash, entries(trash)),
        DashInput::Read,
        DashInput::Conductors(Ok(Vec::new())),
    ] {
        update(&mut state, input, now());
    }
    state.sum_up();
    state.fit(10, 0);
    state
}

pub(super) fn press(state: &mut DashState, keys: &str) -> Vec<DashEffect> {
    let code = |char| match char {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        char => KeyCode::Char(char),
    };
    let keys = keys.chars().map(code);
    let key = |code| DashInput::Key(KeyEvent::new(code, KeyModifiers::NONE));
    let effects = keys.flat_map(|code| {
        let effects = update(state, key(code), now());
        fit(state);
        effects
    });
    effects.collect()
}

fn names(state: &DashState) -> Vec<&str> {
    (0..state.len())
        .filter_map(|at| Some(&*state.picture.at(at)?.1.name))
        .collect()
}

fn apply(state: &mut DashState, kind: EventKind, job: &Job) -> Vec<DashEffect> {
    update(state, DashInput::Event(event(kind, job)), now())
}

#[test]
fn event_causes_a_lookup_and_stale_replies_are_ignored() {
    let (old, new) = (job("old", 9), job("new", 1));
    let mut state = state(View::Jobs, vec![old.clone()]);
    apply(&mut state, EventKind::Posted, &new);
    assert_eq!(names(&state), ["old"]);
    let asked = state.picture.ask(9);
    assert_eq!(asked, [(Shelf::Board, new.key.clone())]);
    let found = |job: &Job| {
        let entry = Entry::Job(Box::new(job.clone()));
        Ok(vec![((Shelf::Board, job.key.clone()), Some(entry))])
    };
    update(&mut state, DashInput::Found(found(&new)), now());
    assert_eq!(names(&state), ["old", "new"]);
    // The event comes before the answer that still has the job.
    apply(&mut state, EventKind::Claimed, &old);
    state.picture.ask(9);
    apply(&mut state, EventKind::Consumed, &old);
    update(&mut state, DashInput::Found(found(&old)), now());
    assert_eq!(names(&state), ["new"]);
    assert!(!state.picture.wants());
}

#[test]
fn reread_board_drops_missing_jobs_and_keeps_concurrent_events() {
    let (gone, stays, late) = (job("gone", 9), job("stays", 8), job("late", 1));
    let mut state = state(View::Jobs, vec![gone.clone(), stays.clone()]);
    update(&mut state, DashInput::Reading, now());
    apply(&mut state, EventKind::Consumed, &gone);
    apply(&mut state, EventKind::Posted, &late);
    // The page was sent earlier.
    let page = DashInput::Entries(Shelf::Board, entries(vec![gone, stays]));
    update(&mut state, page, now());
    update(&mut state, DashInput::Read, now());
    assert_eq!(names(&state), ["stays"]);
    assert_eq!(state.picture.ask(9), [(Shelf::Board, late.key)]);
}

#[test]
fn cursor_stays_on_its_job() {
    let mut state = state(View::Jobs, vec![job("b", 5), job("c", 4), job("a", 9)]);
    assert_eq!(names(&state), ["a", "b", "c"]);
    press(&mut state, "j");
    let first = Event {
        ..event(EventKind::Consumed, &job("a", 9))
    };
    update(&mut state, DashInput::Event(first), now());
    state.fit(10, 0);
    assert_eq!((names(&state), state.cursor().at), (vec!["b", "c"], 0));
    press(&mut state, "ssS");
    assert_eq!((names(&state), state.cursor().at), (vec!["c", "b"], 1));
}

#[test]
fn invalid_filter_is_reported_and_the_last_one_stays() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    assert!(press(&mut state, "/name=b").is_empty());
    let effects = press(&mut state, "\n");
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    press(&mut state, "/ and nonsense\n");
    let Overlay::Filter(field) = &state.overlay else {
        panic!("{:?}", state.overlay);
    };
    assert!(
        field
            .error
            .as_ref()
            .is_some_and(|error| error.contains("nonsense"))
    );
    press(&mut state, "\u{1b}");
    assert_eq!(state.picture.filters.to_string(), "name=b");
    update(&mut state, DashInput::Reading, now());
    let page = DashInput::Entries(Shelf::Board, entries(vec![job("a", 9), job("b", 5)]));
    update(&mut state, page, now());
    update(&mut state, DashInput::Read, now());
    assert_eq!(names(&state), ["b"]);
}

#[test]
fn groups_expand_to_their_jobs() {
    let jobs = vec![
        held(job("a", 9), "ada", 3),
        held(job("b", 5), "bob", 2),
        failed(job("c", 4), "no room on /dev/sda1", 2),
        trashed(failed(job("d", 4), "no room on /dev/sda1", 1)),
    ];
    let mut state = state(View::Claims, jobs);
    assert_eq!(state.len(), 2);
    press(&mut state, "\n");
    assert_eq!(names(&state), ["a"]);
    press(&mut state, "\u{1b}3\n");
    assert_eq!(state.summary.failures[0].failures, 2);
    assert_eq!(names(&state), ["c", "d"]);
    let effects = press(&mut state, "\n");
    let key = JobRef::Key(JobKey::new("c"));
    assert!(matches!(&effects[..], [DashEffect::Open(job), DashEffect::Explain(_)] if *job == key));
}

#[test]
fn paused_view_is_frozen_and_catches_up() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    press(&mut state, " ");
    apply(&mut state, EventKind::Consumed, &job("a", 9));
    assert_eq!(names(&state), ["a"]);
    assert!(!state.changes_with_time());
    assert!(state.events.is_empty());
    let effects = press(&mut state, " ");
    assert!(matches!(effects[..], [DashEffect::Read]), "{effects:?}");
    // The event log still has the events.
    assert_eq!(state.events.len(), 1);
    assert!(state.rates.of(Rate::Finished) > 0.0);
}

#[test]
fn reconnected_board_is_reread() {
    let mut state = state(View::Jobs, vec![]);
    assert!(!state.changes_with_time());
    update(&mut state, DashInput::Lost("refused".to_owned()), now());
    assert_eq!(state.link, Link::Away(now()));
    assert!(state.changes_with_time());
    let effects = update(&mut state, DashInput::Listening(None), now());
    assert!(matches!(effects[..], [DashEffect::Read]), "{effects:?}");
}

#[test]
fn filter_length_is_limited_and_unjudged_jobs_are_hidden() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    press(&mut state, "/");
    update(&mut state, DashInput::Paste("x".repeat(1_000_000)), now());
    let Overlay::Filter(field) = &state.overlay else {
        panic!("{:?}", state.overlay);
    };
    assert!(field.text.len() < 10_000 && field.error.is_some());
    let effects = press(&mut state, "\u{1b}/name=b\n");
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    assert_eq!((state.len(), state.has_read), (0, false));
}

#[test]
fn silent_board_is_probed() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    let tick = |state: &mut DashState, seconds| {
        update(state, DashInput::Tick, now() + TimeDelta::seconds(seconds))
    };
    assert!(tick(&mut state, 9).is_empty());
    let effects = tick(&mut state, 11);
    assert!(matches!(effects[..], [DashEffect::Ping]), "{effects:?}");
    update(
        &mut state,
        DashInput::Pinged(Err("no answer".to_owned())),
        now(),
    );
    assert!(matches!(state.link, Link::Away(_)));
    let effects = tick(&mut state, 31);
    assert!(matches!(effects[..], [DashEffect::Ping]), "{effects:?}");
    let effects = update(&mut state, DashInput::Pinged(Ok(())), now());
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    assert_eq!(state.link, Link::Live);
}

fn look_up(state: &mut DashState, shelf: Shelf, job: &Job) {
    state.picture.ask(100);
    let place = (shelf, job.key.clone());
    let found = vec![(place, Some(Entry::Job(Box::new(job.clone()))))];
    update(state, DashInput::Found(Ok(found)), now());
}

#[test]
fn failure_is_counted_once_despite_clock_differences() {
    let old = failed(job("a", 90), "no room", 60);
    let mut state = state(View::Jobs, vec![old.clone()]);
    let count = |state: &DashState| (state.rates.of(Rate::Failed) * 10.0).round();
    assert_eq!(count(&state), 0.0);
    // Its conductor's clock is an hour ahead.
    let again = failed(old, "no room", -60);
    apply(&mut state, EventKind::Abandoned, &again);
    look_up(&mut state, Shelf::Board, &again);
    assert_eq!(count(&state), 10.0);
    // A move is no new failure, and an event with an old failure is none.
    apply(&mut state, EventKind::Trashed, &again);
    look_up(&mut state, Shelf::Trash, &trashed(again.clone()));
    apply(&mut state, EventKind::Restored, &again);
    look_up(&mut state, Shelf::Board, &again);
    let loaded = failed(job("b", 9), "no room", 5);
    apply(&mut state, EventKind::Posted, &loaded);
    look_up(&mut state, Shelf::Board, &loaded);
    assert_eq!(count(&state), 10.0);
    // It fails for the last time, and is in the trash before the lookup.
    let last = trashed(failed(again, "no room", -70));
    apply(&mut state, EventKind::Claimed, &last);
    apply(&mut state, EventKind::Trashed, &last);
    look_up(&mut state, Shelf::Trash, &last);
    assert_eq!(count(&state), 20.0);
}

#[test]
fn rows_stay_sorted_under_random_changes() {
    let mut state = state(View::Jobs, Vec::new());
    let mut known = std::collections::BTreeMap::new();
    let mut number = 7_u64;
    for step in 0..2_000 {
        number = number
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let at = i64::try_from(number >> 33).unwrap() % 97;
        let job = job(&format!("job-{at:02}"), at);
        match step % 3 {
            0 => {
                apply(&mut state, EventKind::Consumed, &job);
                known.remove(&at);
            }
            _ => {
                apply(&mut state, EventKind::Claimed, &job);
                look_up(
                    &mut state,
                    Shelf::Board,
                    &held(job.clone(), "ada", step % 5),
                );
                known.insert(at, job.name);
            }
        }
        if step % 500 == 0 {
            press(&mut state, "S");
        }
    }
    // The older one comes first, and that is reversed four times.
    let expected: Vec<_> = known.values().rev().map(String::as_str).collect();
    assert_eq!(names(&state), expected);
    assert!(expected.len() > 20);
}
