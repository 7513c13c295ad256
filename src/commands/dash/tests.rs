//! Tests how the dashboard changes with events.

mod acting;

use std::{collections::BTreeSet, time::Duration};

use chrono::{DateTime, TimeDelta, Utc};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    act::{DashEffect, Operation},
    cursor::Lines,
    draw::fit,
    field::Field,
    keys::View,
    listing::RowOrder,
    rates::Rate,
    state::{DashState, Link, Overlay},
    update::{DashInput, update},
};
use crate::{
    board::{
        Capabilities, Event, EventKind, JobRef,
        filter::Filters,
        testing::{
            assert_matches,
            scripted::{Scripted, event},
        },
    },
    diagnosis::{Figures, Snapshot, Surveyor},
    job::{
        ClaimEnd, Conductor, ConductorReport, Entry, Failure, Fence, Holding, Job, JobKey,
        Location, Outcome, Owner, PublishedPolicy,
    },
    problem::{Code, Problem},
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
    let owner = Some(Owner::from_stored(owner));
    job.holding = Some(Holding {
        claimed_on: Some(now() - TimeDelta::minutes(minutes)),
        ..Holding::new(owner, ClaimEnd::Never, None)
    });
    job
}

pub(super) fn failed(mut job: Job, stderr: &str, minutes: i64) -> Job {
    job.attempts.count += 1;
    job.attempts.failures.push(Failure {
        exit_code: Some(1),
        stderr: stderr.to_owned(),
        time: now() - TimeDelta::minutes(minutes),
        ..Failure::reported("the command ended with code 1", "c1")
    });
    job
}

pub(super) fn trashed(mut job: Job) -> Job {
    job.location = Location::Trash;
    job.trashed_on = Some(now() - TimeDelta::minutes(1));
    job
}

pub(super) fn snapshot_of(conductors: Vec<Conductor>) -> Snapshot {
    let capabilities = Capabilities {
        has_expiring_claims: true,
        ..Capabilities::default()
    };
    Snapshot::new(capabilities, None, now()).with_conductors(conductors)
}

/// A conductor that lives on another machine.
pub(super) fn east() -> Conductor {
    Conductor {
        name: "east".to_owned(),
        host: "desk-7".to_owned(),
        pid: u32::MAX >> 1,
        since: now() - TimeDelta::hours(3),
        owner: Owner::new("east").unwrap(),
        silence: Some(Duration::from_secs(2)),
        has_left: false,
        report: ConductorReport {
            slots: Some(4),
            lease: Some(30.0),
            running: Some(1),
            version: Some("0.2.0".to_owned()),
            takes: Some(PublishedPolicy {
                max_attempts: 3,
                ..PublishedPolicy::default()
            }),
            ..ConductorReport::default()
        },
    }
}

pub(super) fn entries(jobs: Vec<Job>) -> Vec<Entry> {
    let entry = |job| Entry::Job(Box::new(job));
    jobs.into_iter().map(entry).collect()
}

pub(super) fn feed(state: &mut DashState, input: DashInput) -> Vec<DashEffect> {
    update(state, input, now())
}

/// Shows the end of a pass over board and trash.
pub(super) fn read(state: &mut DashState, jobs: Vec<Job>) {
    let is_trashed = |job: &Job| job.location == Location::Trash;
    let (trash, board): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_trashed);
    feed(state, DashInput::Entries(Location::Board, entries(board)));
    feed(state, DashInput::Entries(Location::Trash, entries(trash)));
    feed(state, DashInput::Read);
}

pub(super) fn state(view: View, jobs: Vec<Job>) -> DashState {
    let snapshot = snapshot_of(Vec::new()).unread();
    let url = "redis://localhost";
    let mut state = DashState::new(url, Filters::default(), Some(view), snapshot);
    feed(&mut state, DashInput::Listening(None));
    feed(&mut state, DashInput::Reading);
    know(&mut state, snapshot_of(Vec::new()));
    read(&mut state, jobs);
    feed(&mut state, DashInput::History(Ok(Vec::new())));
    state.update_summary();
    state.fit(10, 0);
    state
}

pub(super) fn know(state: &mut DashState, snapshot: Snapshot) {
    feed(state, DashInput::Snapshot(Ok(snapshot)));
}

/// Returns the input line on the screen.
fn field(state: &DashState) -> &Field {
    match &state.overlay {
        Overlay::Input(field) => field,
        other => panic!("{other:?}"),
    }
}

fn codes(state: &DashState) -> Vec<Code> {
    let problems = state.summary.problems.iter();
    problems.map(|it| it.code).collect()
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
    feed(state, DashInput::Event(event(kind, job)))
}

#[test]
fn event_causes_a_lookup_and_stale_replies_are_ignored() {
    let (old, new) = (job("old", 9), job("new", 1));
    let mut state = state(View::Jobs, vec![old.clone()]);
    apply(&mut state, EventKind::Posted, &new);
    assert_eq!(names(&state), ["old"]);
    let asked = state.picture.ask(9);
    assert_eq!(asked, [(Location::Board, new.key.clone())]);
    let found = |job: &Job| {
        let entry = Entry::Job(Box::new(job.clone()));
        Ok(vec![((Location::Board, job.key.clone()), Some(entry))])
    };
    feed(&mut state, DashInput::Found(found(&new)));
    assert_eq!(names(&state), ["old", "new"]);
    // The event comes before the answer that still has the job.
    apply(&mut state, EventKind::Claimed, &old);
    state.picture.ask(9);
    apply(&mut state, EventKind::Consumed, &old);
    feed(&mut state, DashInput::Found(found(&old)));
    assert_eq!(names(&state), ["new"]);
    assert!(!state.picture.wants());
}

#[test]
fn reread_board_drops_missing_jobs_and_keeps_concurrent_events() {
    let (gone, stays, late) = (job("gone", 9), job("stays", 8), job("late", 1));
    let mut state = state(View::Jobs, vec![gone.clone(), stays.clone()]);
    feed(&mut state, DashInput::Reading);
    apply(&mut state, EventKind::Consumed, &gone);
    apply(&mut state, EventKind::Posted, &late);
    // The page was sent earlier.
    read(&mut state, vec![gone, stays]);
    assert_eq!(names(&state), ["stays"]);
    assert_eq!(state.picture.ask(9), [(Location::Board, late.key)]);
}

#[test]
fn cursor_stays_on_its_job() {
    let mut state = state(View::Jobs, vec![job("b", 5), job("c", 4), job("a", 9)]);
    assert_eq!(names(&state), ["a", "b", "c"]);
    press(&mut state, "j");
    apply(&mut state, EventKind::Consumed, &job("a", 9));
    state.fit(10, 0);
    assert_eq!((names(&state), state.cursor().at), (vec!["b", "c"], 0));
    press(&mut state, "sssS");
    assert_eq!((names(&state), state.cursor().at), (vec!["c", "b"], 1));
}

#[test]
fn invalid_filter_is_reported_and_the_last_one_stays() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    assert!(press(&mut state, "/name=b").is_empty());
    let effects = press(&mut state, "\n");
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    press(&mut state, "/ and nonsense\n");
    let error = field(&state).error.as_ref().unwrap();
    assert!(error.contains("nonsense"), "{error}");
    press(&mut state, "\u{1b}");
    assert_eq!(state.picture.filters.to_string(), "name=b");
    feed(&mut state, DashInput::Reading);
    read(&mut state, vec![job("a", 9), job("b", 5)]);
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
    press(&mut state, "\u{1b}4");
    let Lines::Groups(groups) = state.shown() else {
        panic!("not folded");
    };
    assert_eq!(groups[0].jobs, 1);
    press(&mut state, "\n");
    assert_eq!(names(&state), ["d"]);
    let effects = press(&mut state, "\n");
    let key = JobRef::Key(JobKey::new("d"));
    assert!(matches!(&effects[..], [DashEffect::Open(job), DashEffect::Explain(_)] if *job == key));
}

fn scrambled(number: u64) -> u64 {
    let factor = 6_364_136_223_846_793_005;
    number.wrapping_mul(factor).wrapping_add(1)
}

#[test]
fn problems_match_the_survey() {
    let mut seed = 7_u64;
    let mut random = |most: u64| {
        seed = scrambled(seed);
        i64::try_from((seed >> 33) % most).unwrap()
    };
    for _ in 0..50 {
        let jobs = (0..random(40)).map(|at| {
            let name = format!("job-{}", at % 7);
            let mut job = job(&format!("{name}-{at}"), random(500));
            job.name = name;
            job.is_unfit = random(9) == 0;
            job.problem = (job.is_unfit || random(9) == 0).then(|| format!("odd {}", random(3)));
            job.is_misnamed = random(9) == 0;
            for _ in 0..random(5) {
                let disk = "x".repeat(random(3) as usize);
                job = failed(job, &format!("no room on sda{disk}"), 9);
            }
            let owner = ["ada", "gone.:1:c0ffee01"][random(2) as usize];
            match random(4) {
                0 => held(job, owner, random(90)),
                1 => trashed(job),
                _ => job,
            }
        });
        let jobs: Vec<_> = jobs.collect();
        let mut surveyor = Surveyor::new(snapshot_of(Vec::new()));
        for entry in entries(jobs.clone()) {
            surveyor.add(&entry);
        }
        let survey = surveyor.counted();
        let facts = |problems: &[Problem]| -> BTreeSet<_> {
            let facts = problems.iter();
            let facts = facts.map(|it| (it.code, it.jobs, it.summary.clone()));
            facts.collect()
        };
        let state = state(View::Problems, jobs);
        assert_eq!(facts(&state.summary.problems), facts(&survey.problems()));
        let counted = |figures: &Figures| serde_json::to_value(figures).unwrap();
        assert_eq!(counted(&state.summary.figures), counted(&survey.figures));
    }
}

#[test]
fn claim_that_is_not_renewed_becomes_a_problem() {
    let mut late = held(job("a", 9), "vm:4242:c0ffee01", 3);
    let holding = late.holding.as_mut().unwrap();
    (holding.end, holding.fence) = (ClaimEnd::Timed, Some(Fence("1".to_owned())));
    holding.expires_in = Some(Duration::from_secs(4));
    holding.owner = Some(east().owner);
    let mut state = state(View::Problems, Vec::new());
    know(&mut state, snapshot_of(vec![east()]));
    let page = DashInput::Entries(Location::Board, entries(vec![late]));
    feed(&mut state, page);
    state.update_summary();
    assert_eq!(codes(&state), []);
    assert_eq!(state.summary.doubts.len(), 1);
    state.now += TimeDelta::seconds(8);
    state.update_summary();
    assert_eq!(codes(&state), [Code::ClaimNotRenewed]);
}

#[test]
fn problem_leads_to_its_jobs_and_their_repair() {
    let jobs = vec![
        job("free", 9),
        trashed(failed(job("a", 4), "no room on /dev/sda1", 2)),
        trashed(failed(job("b", 4), "no room on /dev/sda1", 1)),
        trashed(failed(job("c", 4), "refused", 1)),
    ];
    let mut state = state(View::Problems, jobs);
    let position = |state: &DashState, is_it: fn(&Problem) -> bool| {
        let at = state.summary.problems.iter().position(is_it);
        "j".repeat(at.unwrap())
    };
    let down = position(&state, |it| it.jobs == 2);
    press(&mut state, &down);
    state.may_act = true;
    let effects = press(&mut state, "F");
    let DashEffect::Prepare(Operation::Retry, places) = &effects[0] else {
        panic!("{effects:?}");
    };
    assert_eq!(places.len(), 2);
    press(&mut state, "\u{1b}\n");
    assert_eq!(names(&state), ["a", "b"]);
    // Inside, the key means the same problem.
    let effects = press(&mut state, "F");
    assert!(matches!(&effects[..], [DashEffect::Prepare(_, places)] if places.len() == 2));
    // A job without a conductor cannot be repaired from here.
    press(&mut state, "\u{1b}\u{1b}");
    let down = position(&state, |it| it.code == Code::NoConductor);
    press(&mut state, &format!("g{down}F"));
    assert!(matches!(state.overlay, Overlay::None));
    assert!(state.message.is_some());
}

#[test]
fn filter_narrows_while_it_is_typed_and_escape_restores() {
    let jobs = vec![job("alpha", 9), job("beta", 5), job("betty", 3)];
    let mut state = state(View::Jobs, jobs);
    press(&mut state, "/bet");
    assert_eq!(names(&state), ["beta", "betty"]);
    press(&mut state, "t");
    assert_eq!(names(&state), ["betty"]);
    let effects = press(&mut state, "\u{1b}");
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    assert!(state.picture.filters.is_empty());
    press(&mut state, "/expi");
    feed(&mut state, DashInput::Key(KeyCode::Tab.into()));
    assert_eq!(field(&state).text, "expires");
}

#[test]
fn view_opens_by_name() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    press(&mut state, ":con\n");
    assert_eq!(state.view, View::Conductors);
    press(&mut state, ":keys\n");
    assert!(matches!(state.overlay, Overlay::Help));
    press(&mut state, "q:nonsense\n");
    let error = field(&state).error.as_deref();
    assert_eq!(error, Some("no such view or command"));
}

#[test]
fn mouse_selects_sorts_and_opens() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5), job("c", 3)]);
    state.size = (100, 30);
    fit(&mut state);
    let click = |state: &mut DashState, x, y| feed(state, DashInput::Click(x, y));
    // Below the header of four lines, the tabs and the titles.
    click(&mut state, 5, 7);
    assert_eq!(state.cursor().at, 1);
    let effects = click(&mut state, 5, 7);
    assert_matches!(&effects[..], [DashEffect::Open(_), DashEffect::Explain(_)]);
    press(&mut state, "\u{1b}");
    click(&mut state, 2, 5);
    assert_eq!(state.picture.listing.sort, RowOrder::Name);
    click(&mut state, 2, 5);
    assert_eq!(names(&state), ["c", "b", "a"]);
    feed(&mut state, DashInput::Scroll(-3));
    assert_eq!(state.cursor().at, 0);
    click(&mut state, 3, 4);
    assert_eq!(state.view, View::Problems);
}

#[test]
fn page_of_a_conductor_closes_when_the_conductor_is_gone() {
    let mut state = state(View::Conductors, Vec::new());
    let mut is_open_with = |conductors, keys| {
        know(&mut state, snapshot_of(conductors));
        fit(&mut state);
        press(&mut state, keys);
        assert_matches!(state.overlay, Overlay::Line | Overlay::None);
        matches!(state.overlay, Overlay::Line)
    };
    assert!(is_open_with(vec![east()], "\n"));
    assert!(is_open_with(vec![east()], ""));
    assert!(!is_open_with(Vec::new(), ""));
}

#[test]
fn wide_view_reads_the_selected_job_once() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    let effects = feed(&mut state, DashInput::Resize(160, 40));
    assert_matches!(&effects[..], [DashEffect::Open(_), DashEffect::Explain(_)]);
    let found = Entry::Job(Box::new(job("a", 9)));
    let reference = JobRef::Key(found.key().clone());
    feed(&mut state, DashInput::Opened(reference, Ok(found)));
    assert!(feed(&mut state, DashInput::Tick).is_empty());
    let effects = press(&mut state, "j");
    assert_matches!(&effects[..], [DashEffect::Open(_), DashEffect::Explain(_)]);
}

#[test]
fn input_stays_open_on_the_smallest_terminal() {
    let mut state = state(View::Jobs, vec![job("a", 9)]);
    press(&mut state, "/");
    feed(&mut state, DashInput::Resize(1, 1));
    press(&mut state, "a");
    assert_matches!(&state.overlay, Overlay::Input(field) if field.text == "a");
}

#[test]
fn reconnected_board_is_reread() {
    let mut state = state(View::Jobs, vec![]);
    assert!(!state.changes_with_time());
    feed(&mut state, DashInput::Lost("refused".to_owned()));
    assert_eq!(state.link, Link::Away(now()));
    assert!(state.changes_with_time());
    let effects = feed(&mut state, DashInput::Listening(None));
    assert!(matches!(effects[..], [DashEffect::Read]), "{effects:?}");
}

#[test]
fn filter_length_is_limited_and_unjudged_jobs_are_hidden() {
    let mut state = state(View::Jobs, vec![job("a", 9), job("b", 5)]);
    press(&mut state, "/");
    feed(&mut state, DashInput::Paste("x".repeat(1_000_000)));
    let field = field(&state);
    assert!(field.text.len() < 10_000 && field.error.is_some());
    let effects = press(&mut state, "\u{1b}/details.size=1\n");
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
    feed(&mut state, DashInput::Pinged(Err("no answer".to_owned())));
    assert!(matches!(state.link, Link::Away(_)));
    let effects = tick(&mut state, 31);
    assert!(matches!(effects[..], [DashEffect::Ping]), "{effects:?}");
    let effects = feed(&mut state, DashInput::Pinged(Ok(())));
    assert!(matches!(effects[..], [DashEffect::ReadNow]), "{effects:?}");
    assert_eq!(state.link, Link::Live);
}

fn look_up(state: &mut DashState, location: Location, job: &Job) {
    state.picture.ask(100);
    let place = (location, job.key.clone());
    let found = vec![(place, Some(Entry::Job(Box::new(job.clone()))))];
    feed(state, DashInput::Found(Ok(found)));
}

#[test]
fn failure_is_counted_once_despite_clock_differences() {
    let old = failed(job("a", 90), "no room", 60);
    let mut state = state(View::Jobs, vec![old.clone()]);
    let count = |state: &DashState| state.rates.of(Rate::Failed) / 60;
    assert_eq!(count(&state), 0);
    // Its conductor's clock is an hour ahead.
    let again = failed(old, "no room", -60);
    apply(&mut state, EventKind::Abandoned, &again);
    look_up(&mut state, Location::Board, &again);
    assert_eq!(count(&state), 1);
    // A move is no new failure, and an event with an old failure is none.
    apply(&mut state, EventKind::Trashed, &again);
    look_up(&mut state, Location::Trash, &trashed(again.clone()));
    apply(&mut state, EventKind::Restored, &again);
    look_up(&mut state, Location::Board, &again);
    let loaded = failed(job("b", 9), "no room", 5);
    apply(&mut state, EventKind::Posted, &loaded);
    look_up(&mut state, Location::Board, &loaded);
    assert_eq!(count(&state), 1);
    // It fails for the last time, and is in the trash before the lookup.
    let last = trashed(failed(again, "no room", -70));
    apply(&mut state, EventKind::Claimed, &last);
    apply(&mut state, EventKind::Trashed, &last);
    look_up(&mut state, Location::Trash, &last);
    assert_eq!(count(&state), 2);
}

#[test]
fn only_jobs_that_end_here_count_as_finished() {
    let mut state = state(View::Jobs, vec![job("moved", 9), job("done", 9)]);
    for (name, outcome) in [("moved", Outcome::Moved), ("done", Outcome::Consumed)] {
        let ended = Event {
            outcome: Some(outcome),
            ..event(EventKind::Consumed, &job(name, 9))
        };
        feed(&mut state, DashInput::Event(ended));
    }
    assert_eq!(state.rates.of(Rate::Finished), 60);
}

#[test]
fn rows_stay_sorted_under_random_changes() {
    let mut state = state(View::Jobs, Vec::new());
    let mut known = std::collections::BTreeMap::new();
    let mut number = 7_u64;
    for step in 0..2_000 {
        number = scrambled(number);
        let at = i64::try_from(number >> 33).unwrap() % 97;
        let job = job(&format!("job-{at:02}"), at);
        match step % 3 {
            0 => {
                apply(&mut state, EventKind::Consumed, &job);
                known.remove(&at);
            }
            _ => {
                apply(&mut state, EventKind::Claimed, &job);
                let claimed = held(job.clone(), "ada", step % 5);
                look_up(&mut state, Location::Board, &claimed);
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
