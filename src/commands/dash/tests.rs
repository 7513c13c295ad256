//! What becomes of the dashboard by what happens.

use chrono::{DateTime, TimeDelta, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    act::{Deed, Dialog, Stage},
    state::{Link, Overlay, State, View},
    update::{Effect, Input, update},
};
use crate::{
    board::{
        Event, EventKind, JobRef,
        filter::Filters,
        testing::scripted::{Scripted, event},
    },
    job::{Entry, Failure, Holding, Job, JobKey, Lease, Owner, Shelf},
};

/// The moment of all tests.
pub(super) fn now() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(10_000)
}

/// Returns a job that was posted so long ago.
pub(super) fn job(name: &str, minutes: i64) -> Job {
    let mut job = Scripted::new().post(name, None);
    job.created_on = Some(now() - TimeDelta::minutes(minutes));
    job.sequence = Some(1_000_000 - minutes);
    job.uuid = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, name.as_bytes()).to_string();
    job
}

/// Has somebody hold a job for so long.
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

/// Has a job fail so long ago.
pub(super) fn failed(mut job: Job, said: &str, minutes: i64) -> Job {
    job.history.attempts += 1;
    job.history.failures.push(Failure {
        exit_code: Some(1),
        stderr: said.to_owned(),
        time: now() - TimeDelta::minutes(minutes),
        ..Failure::told("the command ended with code 1", "c1")
    });
    job
}

/// Puts a job in the trash.
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

/// Returns what is seen of a board with these jobs.
pub(super) fn state(view: View, jobs: Vec<Job>) -> State {
    let mut state = State::new("redis://localhost", Filters::default(), view, now());
    let (trash, board): (Vec<_>, Vec<_>) =
        jobs.into_iter().partition(|job| job.shelf == Shelf::Trash);
    for input in [
        Input::Listening(None),
        Input::Reading,
        Input::Entries(Shelf::Board, entries(board)),
        Input::Entries(Shelf::Trash, entries(trash)),
        Input::Read,
        Input::Conductors(Ok(Vec::new())),
    ] {
        update(&mut state, input, now());
    }
    state.sum_up();
    state.settle(10);
    state
}

/// Types keys: a character each.
pub(super) fn press(state: &mut State, keys: &str) -> Vec<Effect> {
    let code = |char| match char {
        '\n' => KeyCode::Enter,
        '\u{1b}' => KeyCode::Esc,
        char => KeyCode::Char(char),
    };
    let keys = keys.chars().map(code);
    let key = |code| Input::Key(KeyEvent::new(code, KeyModifiers::NONE));
    let effects = keys.flat_map(|code| {
        let effects = update(state, key(code), now());
        state.settle(10);
        effects
    });
    effects.collect()
}

fn names(state: &State) -> Vec<&str> {
    (0..state.len())
        .filter_map(|at| Some(&*state.picture.at(at)?.name))
        .collect()
}

fn tell(state: &mut State, kind: EventKind, job: &Job) -> Vec<Effect> {
    update(state, Input::Event(event(kind, job)), now())
}

#[test]
fn what_happened_is_looked_up_and_what_was_asked_before_is_no_answer() {
    let (old, new) = (job("old", 9), job("new", 1));
    let mut state = state(View::Jobs, vec![old.clone()]);
    tell(&mut state, EventKind::Posted, &new);
    assert_eq!(names(&state), ["old"]);
    let asked = state.picture.ask(9);
    assert_eq!(asked, [(Shelf::Board, new.key.clone())]);
    let found = |job: &Job| {
        let entry = Entry::Job(Box::new(job.clone()));
        Ok(vec![((Shelf::Board, job.key.clone()), Some(entry))])
    };
    update(&mut state, Input::Found(found(&new)), now());
    assert_eq!(names(&state), ["old", "new"]);
    // It is gone before the answer says that it is there.
    tell(&mut state, EventKind::Claimed, &old);
    state.picture.ask(9);
    tell(&mut state, EventKind::Consumed, &old);
    update(&mut state, Input::Found(found(&old)), now());
    assert_eq!(names(&state), ["new"]);
    assert!(state.picture.wanted.is_empty());
}

#[test]
fn a_board_that_is_read_anew_forgets_what_is_gone_and_nothing_that_came_meanwhile() {
    let (gone, stays, late) = (job("gone", 9), job("stays", 8), job("late", 1));
    let mut state = state(View::Jobs, vec![gone.clone(), stays.clone()]);
    update(&mut state, Input::Reading, now());
    tell(&mut state, EventKind::Consumed, &gone);
    tell(&mut state, EventKind::Posted, &late);
    // The page was sent before.
    let page = Input::Entries(Shelf::Board, entries(vec![gone, stays]));
    update(&mut state, page, now());
    update(&mut state, Input::Read, now());
    assert_eq!(names(&state), ["stays"]);
    assert_eq!(state.picture.ask(9), [(Shelf::Board, late.key)]);
}

#[test]
fn the_cursor_stays_on_its_job() {
    let mut state = state(View::Jobs, vec![job("b", 5), job("c", 4), job("a", 9)]);
    assert_eq!(names(&state), ["a", "b", "c"]);
    press(&mut state, "j");
    let first = Event {
        ..event(EventKind::Consumed, &job("a", 9))
    };
    update(&mut state, Input::Event(first), now());
    state.settle(10);
    assert_eq!((names(&state), state.cursor().at), (vec!["b", "c"], 0));
    press(&mut state, "ssS");
    assert_eq!((names(&state), state.cursor().at), (vec!["c", "b"], 1));
}

#[test]
fn a_filter_that_is_none_is_said_and_the_last_one_stays() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    assert!(press(&mut state, "/name=b").is_empty());
    let effects = press(&mut state, "\n");
    assert!(matches!(effects[..], [Effect::ReadNow]), "{effects:?}");
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
    update(&mut state, Input::Reading, now());
    let page = Input::Entries(Shelf::Board, entries(vec![job("a", 9), job("b", 5)]));
    update(&mut state, page, now());
    update(&mut state, Input::Read, now());
    assert_eq!(names(&state), ["b"]);
}

#[test]
fn groups_open_to_their_jobs() {
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
    assert!(matches!(&effects[..], [Effect::Open(job), Effect::Explain(_)] if *job == key));
}

#[test]
fn paused_it_stands_still_and_reads_what_it_missed() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    press(&mut state, " ");
    tell(&mut state, EventKind::Consumed, &job("a", 9));
    assert_eq!(names(&state), ["a"]);
    assert!(!state.ages());
    let effects = press(&mut state, " ");
    assert!(matches!(effects[..], [Effect::Read]), "{effects:?}");
}

#[test]
fn a_board_that_comes_back_is_read_anew() {
    let mut state = state(View::Jobs, vec![]);
    assert!(!state.ages());
    update(&mut state, Input::Lost("refused".to_owned()), now());
    assert_eq!(state.link, Link::Away(now()));
    assert!(state.ages());
    let effects = update(&mut state, Input::Listening(None), now());
    assert!(matches!(effects[..], [Effect::Read]), "{effects:?}");
}

/// Returns what was found of these jobs when something was to be done to them.
fn prepared(deed: Deed, jobs: &[Job]) -> Input {
    let places = jobs.iter().map(|job| (job.shelf, job.key.clone()));
    let dialog = Dialog {
        jobs: (entries(jobs.to_vec()).into_iter())
            .map(|entry| (entry, false))
            .collect(),
        stage: Stage::Asking,
        ..Dialog::of(deed, places.clone().collect())
    };
    Input::Prepared(deed, places.collect(), Ok(dialog))
}

#[test]
fn what_is_marked_is_acted_on_once_somebody_agrees() {
    let jobs = vec![held(job("a", 9), "ada", 3), job("b", 5)];
    let mut state = state(View::Jobs, jobs.clone());
    assert!(press(&mut state, "T").is_empty(), "it only looks");
    state.may_act = true;
    let found = || prepared(Deed::Trash, &jobs[..1]);
    let ask = |state: &mut State| {
        let effects = press(state, "T");
        let place = (Shelf::Board, JobKey::new("a"));
        assert!(
            matches!(&effects[..], [Effect::Prepare(Deed::Trash, places)] if *places == [place])
        );
    };
    press(&mut state, "x");
    // Whatever is no yes is a no.
    ask(&mut state);
    update(&mut state, found(), now());
    assert!(press(&mut state, "n").is_empty());
    assert!(matches!(state.overlay, Overlay::None));
    // What is typed before the question is there agrees to nothing.
    ask(&mut state);
    assert!(press(&mut state, "yyT").is_empty());
    update(&mut state, found(), now());
    let effects = press(&mut state, "y");
    assert!(matches!(effects[..], [Effect::Perform(_)]), "{effects:?}");
    // Nothing that is typed now is taken for an answer.
    assert!(press(&mut state, "yq\n").is_empty());
    update(
        &mut state,
        Input::Performed(Stage::Done(String::new(), Vec::new())),
        now(),
    );
    press(&mut state, "q");
    assert!(state.marks.is_empty());
    // A protected board is called by its name.
    state.protected = Some("prod".to_owned());
    press(&mut state, "gx");
    ask(&mut state);
    update(&mut state, found(), now());
    assert!(press(&mut state, "y\n").is_empty());
    ask(&mut state);
    update(&mut state, found(), now());
    let effects = press(&mut state, "prod\n");
    assert!(matches!(effects[..], [Effect::Perform(_)]), "{effects:?}");
}

#[test]
fn an_answer_belongs_to_its_question() {
    let jobs = vec![job("a", 9), job("b", 5)];
    let mut state = state(View::Jobs, jobs.clone());
    state.may_act = true;
    press(&mut state, "A\u{1b}C");
    update(&mut state, prepared(Deed::Abandon, &jobs[..1]), now());
    assert!(
        press(&mut state, "y").is_empty(),
        "that is another question"
    );
    update(&mut state, prepared(Deed::Consume, &jobs[..1]), now());
    // Something happens to it: what was shown is not what would be acted on.
    tell(&mut state, EventKind::Claimed, &jobs[0]);
    assert!(press(&mut state, "y").is_empty());
    // Also while nothing moves.
    press(&mut state, "C");
    update(&mut state, prepared(Deed::Consume, &jobs[..1]), now());
    state.is_paused = true;
    tell(&mut state, EventKind::Claimed, &jobs[0]);
    assert!(press(&mut state, "y").is_empty());
}

#[test]
fn only_what_is_shown_and_fit_for_it_is_acted_on() {
    let jobs = vec![job("a", 9), job("b", 5), trashed(job("c", 3))];
    let mut state = state(View::Trash, jobs.clone());
    state.may_act = true;
    // A job on the board may have its key.
    for keys in ["C", "T", "A"] {
        assert!(press(&mut state, keys).is_empty(), "{keys}");
    }
    let effects = press(&mut state, "xR\u{1b}1C");
    assert!(
        matches!(&effects[..], [Effect::Prepare(Deed::Retry, _)]),
        "{effects:?}"
    );
    assert!(matches!(state.overlay, Overlay::None));
    assert!(
        state
            .message
            .as_ref()
            .is_some_and(|it| it.1.as_str().contains("not shown here"))
    );
}

#[test]
fn a_filter_has_an_end_and_hides_what_it_has_not_judged_yet() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    press(&mut state, "/");
    update(&mut state, Input::Paste("x".repeat(1_000_000)), now());
    let Overlay::Filter(field) = &state.overlay else {
        panic!("{:?}", state.overlay);
    };
    assert!(field.text.len() < 10_000 && field.error.is_some());
    let effects = press(&mut state, "\u{1b}/name=b\n");
    assert!(matches!(effects[..], [Effect::ReadNow]), "{effects:?}");
    assert_eq!((state.len(), state.has_read), (0, false));
}

#[test]
fn a_board_that_is_silent_is_asked_whether_it_is_there() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    let tick = |state: &mut State, seconds| {
        update(state, Input::Tick, now() + TimeDelta::seconds(seconds))
    };
    assert!(tick(&mut state, 9).is_empty());
    let effects = tick(&mut state, 11);
    assert!(matches!(effects[..], [Effect::Ping]), "{effects:?}");
    update(
        &mut state,
        Input::Pinged(Err("no answer".to_owned())),
        now(),
    );
    assert!(matches!(state.link, Link::Away(_)));
    let effects = tick(&mut state, 31);
    assert!(matches!(effects[..], [Effect::Ping]), "{effects:?}");
    let effects = update(&mut state, Input::Pinged(Ok(())), now());
    assert!(matches!(effects[..], [Effect::ReadNow]), "{effects:?}");
    assert_eq!(state.link, Link::Live);
}
