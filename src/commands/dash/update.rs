//! Updates the dashboard's state for a key, an event or an answer.
//!
//! It only returns effects; the session runs them.

use chrono::{DateTime, TimeDelta, Utc};
use crossterm::event::KeyEvent;

use super::{
    act::{DashEffect, Operation, TaskStage},
    draw::hit,
    keys::View,
    press::{click, follow, press, read},
    rates::Rate,
    row::RowPlace,
    state::{DashState, Link, Overlay, PING_DELAYS},
};
use crate::{
    board::{Event, EventKind, JobRef},
    commands::watch::PrintedEvent,
    diagnosis::{Explanation, Snapshot},
    job::{Entry, Location, Outcome},
    output::Tone,
};

/// How often conductors are read while they are visible, and while only their claims are.
const CONDUCTORS: [TimeDelta; 2] = [TimeDelta::seconds(2), TimeDelta::seconds(10)];

/// How often visible claims are read again, as they may have been renewed.
const RENEWALS: TimeDelta = TimeDelta::seconds(3);

/// The number of changes between two sweeps of unused values.
const CHANGES_PER_SWEEP: u64 = 50_000;

/// How often time-dependent filters are evaluated again.
const AGES: TimeDelta = TimeDelta::seconds(5);

#[derive(Debug)]
pub(super) enum DashInput {
    Key(KeyEvent),
    Paste(String),
    Click(u16, u16),
    Scroll(isize),
    Resize(u16, u16),
    Tick,
    Listening(Option<String>),
    Lost(String),
    Event(Event),
    Reading,
    Entries(Location, Vec<Entry>),
    Read,
    Unread(String),
    Hidden(Location, String),
    Found(Result<Vec<(RowPlace, Option<Entry>)>, String>),
    Pinged(Result<(), String>),
    History(Result<Vec<Entry>, String>),
    Snapshot(Result<Snapshot, String>),
    Opened(JobRef, Result<Entry, String>),
    Explained(JobRef, Result<Explanation, String>),
    Prepared(Operation, Vec<RowPlace>, Result<Vec<Entry>, String>),
    Performed(TaskStage),
}

pub(super) fn update(
    state: &mut DashState,
    input: DashInput,
    now: DateTime<Utc>,
) -> Vec<DashEffect> {
    state.now = now;
    let effects = taken(state, input);
    match state.selected().filter(|_| state.has_aside()) {
        Some(selected) => [effects, follow(state, selected)].concat(),
        None => effects,
    }
}

fn taken(state: &mut DashState, input: DashInput) -> Vec<DashEffect> {
    let now = state.now;
    match input {
        DashInput::Key(key) => return press(state, key),
        DashInput::Paste(text) => {
            if let Overlay::Input(field) = &mut state.overlay {
                field.add(text.chars().filter(|char| !char.is_control()));
            }
        }
        DashInput::Click(column, line) => return click(state, hit(state, column, line)),
        DashInput::Scroll(by) => state.step(by),
        DashInput::Resize(columns, rows) => state.size = (columns, rows),
        DashInput::Tick => return tick(state),
        DashInput::Listening(lack) => {
            state.link = match &lack {
                Some(_) => Link::Polling,
                None => Link::Live,
            };
            (state.heard, state.is_silent) = (now, false);
            if let Some(lack) = lack {
                state.notify(Tone::Warning, lack);
            }
            return vec![DashEffect::Read];
        }
        DashInput::Lost(why) => {
            (state.link, state.is_reading) = (Link::Away(now), false);
            state.notify(Tone::Bad, why);
        }
        DashInput::Pinged(answer) => return pinged(state, answer),
        DashInput::Event(event) => {
            (state.heard, state.patience) = (now, PING_DELAYS.0);
            return hear(state, &event);
        }
        answer => return answered(state, answer),
    }
    Vec::new()
}

fn answered(state: &mut DashState, answer: DashInput) -> Vec<DashEffect> {
    let now = state.now;
    match answer {
        DashInput::Reading => {
            state.is_reading = true;
            state.hidden.clear();
            state.picture.begin();
        }
        DashInput::Entries(location, entries) => state.picture.read(location, &entries, now),
        DashInput::Read => {
            (state.is_reading, state.has_read) = (false, true);
            state.picture.end();
            state.summary.version = None;
            // The history supplies the first events.
            if state.view == View::History || (state.history.is_none() && state.events.is_empty()) {
                return vec![DashEffect::ReadHistory];
            }
        }
        DashInput::Hidden(location, why) => {
            state.hidden.push(location);
            state.notify(Tone::Bad, why);
        }
        DashInput::Found(Ok(found)) => {
            let failed = state.picture.found(found, now);
            state.rates.count(Rate::Failed, failed, now);
        }
        DashInput::History(Ok(entries)) => state.take_history(entries),
        DashInput::Snapshot(Ok(snapshot)) => {
            let is_alike = snapshot.gives_same_verdicts(&state.picture.snapshot);
            (state.picture.snapshot, state.snapshot_read) = (snapshot, now);
            state.summary.version = None;
            if !is_alike && !state.is_reading {
                return vec![DashEffect::Read];
            }
        }
        DashInput::Opened(reference, found) => {
            if let Some(opened) = state.opened(&reference) {
                opened.found = Some(found);
            }
        }
        DashInput::Explained(reference, explained) => {
            if let Some(opened) = state.opened(&reference) {
                opened.explained = Some(explained);
            }
        }
        DashInput::Prepared(operation, places, found) => ask(state, operation, &places, found),
        DashInput::Performed(stage) => {
            if let Overlay::Dialog(dialog) = &mut state.overlay
                && dialog.stage == TaskStage::Acting
            {
                dialog.end(stage);
                state.marks.clear();
            }
        }
        DashInput::Unread(why) => {
            state.is_reading = false;
            state.notify(Tone::Bad, why);
        }
        DashInput::Found(Err(why)) => {
            state.picture.ask_again();
            state.notify(Tone::Bad, why);
        }
        DashInput::Snapshot(Err(why)) => {
            state.snapshot_read = now;
            state.notify(Tone::Bad, why);
        }
        DashInput::History(Err(why)) => state.notify(Tone::Bad, why),
        _ => {}
    }
    Vec::new()
}

fn pinged(state: &mut DashState, answer: Result<(), String>) -> Vec<DashEffect> {
    let (now, was_silent) = (state.now, state.is_silent);
    state.heard = now;
    state.is_silent = answer.is_err();
    match answer {
        Err(why) => {
            if !was_silent {
                state.link = Link::Away(now);
            }
            state.patience = PING_DELAYS.0;
            state.notify(Tone::Bad, why);
        }
        Ok(()) if was_silent => {
            state.link = Link::Live;
            return vec![DashEffect::ReadNow];
        }
        Ok(()) => state.patience = (state.patience * 2).min(PING_DELAYS.1),
    }
    Vec::new()
}

fn ask(
    state: &mut DashState,
    operation: Operation,
    places: &[RowPlace],
    found: Result<Vec<Entry>, String>,
) {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return;
    };
    if dialog.stage != TaskStage::Looking
        || dialog.operation != operation
        || dialog.places != places
    {
        return;
    }
    let problem = match found {
        Ok(jobs) if !jobs.is_empty() => {
            return dialog.ask(jobs, &state.picture.snapshot.pauses, state.now);
        }
        Ok(_) => "the selected jobs no longer exist".to_owned(),
        Err(why) => why,
    };
    state.overlay = Overlay::None;
    state.notify(Tone::Bad, problem);
}

fn hear(state: &mut DashState, event: &Event) -> Vec<DashEffect> {
    if let (Overlay::Dialog(dialog), Some(subject)) = (&mut state.overlay, &event.subject) {
        dialog.note_change(&subject.key);
    }
    let rate = match (event.kind, event.outcome) {
        (EventKind::Posted, _) => Some(Rate::Posted),
        (EventKind::Consumed, Some(Outcome::Failed)) => Some(Rate::Failed),
        (EventKind::Consumed, Some(Outcome::Moved)) => None,
        (EventKind::Consumed, _) => Some(Rate::Finished),
        _ => None,
    };
    if let Some(rate) = rate {
        state.rates.count(rate, 1, state.now);
    }
    state.keep(PrintedEvent::of(event));
    let mut effects = Vec::new();
    if let (Some(opened), Some(subject)) = (&state.opened, &event.subject)
        && opened.is_on_board()
        && opened.entry().is_some_and(|it| it.key() == &subject.key)
    {
        effects.extend(read(opened));
    }
    match state.picture.apply(event) {
        // The history is read again only while it is visible.
        Some(DashEffect::ReadHistory) => state.has_history_changed = true,
        stale => effects.extend(stale),
    }
    effects
}

fn tick(state: &mut DashState) -> Vec<DashEffect> {
    let now = state.now;
    state.rates.advance(now);
    if state.picture.unswept() > CHANGES_PER_SWEEP {
        state.picture.sweep();
    }
    let mut effects = Vec::new();
    let is_lost = matches!(state.link, Link::Away(_) | Link::Connecting) && !state.is_silent;
    if !is_lost && now - state.heard >= state.patience {
        // Once per silence; the answer starts another.
        state.heard = now;
        effects.push(DashEffect::Ping);
    }
    if !state.has_read || matches!(state.link, Link::Away(_)) {
        return effects;
    }
    let asked = now - state.snapshot_read;
    match state.view {
        View::Conductors if asked >= CONDUCTORS[0] => effects.push(DashEffect::ReadSnapshot),
        View::Problems | View::Claims if asked >= CONDUCTORS[1] => {
            effects.push(DashEffect::ReadSnapshot);
        }
        View::History if std::mem::take(&mut state.has_history_changed) => {
            effects.push(DashEffect::ReadHistory)
        }
        _ => {}
    }
    // The wall clock may step back.
    if (now - state.claims_read).abs() >= RENEWALS {
        state.claims_read = now;
        let from = state.cursor().top;
        let (seen, are_claims) = (from..from + state.lines, state.view == View::Claims);
        let doubts = state.summary.doubts.keys();
        state.picture.look_up_due(seen, doubts, are_claims, now);
    }
    if (now - state.filtered).abs() >= AGES && state.picture.filters.change_with_time() {
        state.filtered = now;
        effects.push(DashEffect::Read);
    }
    effects
}
