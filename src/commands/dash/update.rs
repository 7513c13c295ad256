//! What becomes of the dashboard by whatever happens: a key, an event of the board, an answer of it.
//!
//! Nothing is done here; what has to be done is returned.

use chrono::{DateTime, TimeDelta, Utc};
use crossterm::event::KeyEvent;

use super::{
    act::{Deed, Dialog, Stage, Task},
    draw,
    picture::{Heeded, Place},
    press::press,
    rates::Rate,
    state::{Link, Overlay, PATIENCE, State, View},
};
use crate::{
    board::{Event, EventKind, JobRef},
    commands::{explain::Explanation, watch::Happening},
    job::{Conductor, Departure, Entry, Pauses, Shelf},
    output::Tone,
};

/// Something that happened.
#[derive(Debug)]
pub(super) enum Input {
    Key(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    /// A second has passed.
    Tick,
    /// The board is listened to; what of it is told late.
    Listening(Option<String>),
    Lost(String),
    Event(Event),
    /// The board is being read from now on.
    Reading,
    Entries(Shelf, Vec<Entry>),
    Read,
    /// It cannot be read now.
    Unread(String),
    /// We may not see this part of it.
    Hidden(Shelf, String),
    Found(Result<Vec<(Place, Option<Entry>)>, String>),
    /// Whether it answers.
    Pinged(Result<(), String>),
    Past(Result<Vec<Entry>, String>),
    Conductors(Result<Vec<Conductor>, String>),
    Pauses(Pauses),
    Opened(JobRef, Result<Entry, String>),
    Explained(JobRef, Result<Explanation, String>),
    Prepared(Deed, Vec<Place>, Result<Dialog, String>),
    Performed(Stage),
}

/// Something that has to be done.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Quit,
    Suspend,
    Redraw,
    /// Read the board, when it has been left alone for long enough.
    Read,
    /// Read it at once: what is shown is not what was asked for.
    ReadNow,
    ReadPast,
    ReadConductors,
    ReadPauses,
    Ping,
    Open(JobRef),
    Explain(JobRef),
    Copy(String),
    Prepare(Deed, Vec<Place>),
    Perform(Task),
}

/// How often the conductors are asked for while they are seen, and while only their claims are.
const CONDUCTORS: [TimeDelta; 2] = [TimeDelta::seconds(2), TimeDelta::seconds(10)];

/// How often claims are looked at again that may have been renewed, while they are seen.
const RENEWALS: i64 = 3;

/// After how many changes it is looked what of the rows nothing uses any more.
const MESS: u64 = 50_000;

/// How often filters are asked again that change with time.
const AGES: i64 = 5;

/// Takes in what happened, and returns what has to be done.
pub(super) fn update(state: &mut State, input: Input, now: DateTime<Utc>) -> Vec<Effect> {
    state.now = now;
    match input {
        Input::Key(key) => return press(state, key),
        Input::Paste(text) => {
            if let Overlay::Filter(field) = &mut state.overlay {
                field.add(text.chars().filter(|char| !char.is_control()));
            }
        }
        Input::Resize(columns, rows) => state.size = (columns, rows),
        Input::Tick => return tick(state),
        Input::Listening(lack) => {
            state.link = match &lack {
                Some(_) => Link::Polling,
                None => Link::Live,
            };
            (state.heard, state.is_silent) = (now, false);
            if let Some(lack) = lack {
                state.say(Tone::Busy, lack);
            }
            return vec![Effect::Read];
        }
        Input::Lost(why) => {
            (state.link, state.is_reading) = (Link::Away(now), false);
            state.say(Tone::Bad, why);
        }
        Input::Pinged(answer) => return pinged(state, answer),
        Input::Event(event) => {
            (state.heard, state.patience) = (now, PATIENCE.0);
            return heed(state, &event);
        }
        answer => return take(state, answer),
    }
    Vec::new()
}

/// Takes in what the board answered.
fn take(state: &mut State, answer: Input) -> Vec<Effect> {
    let now = state.now;
    match answer {
        Input::Reading => {
            state.is_reading = true;
            state.hidden.clear();
            state.picture.begin();
            return vec![Effect::ReadConductors, Effect::ReadPauses];
        }
        Input::Entries(shelf, entries) => state.picture.read(shelf, &entries, now),
        Input::Read => {
            (state.is_reading, state.has_read) = (false, true);
            state.picture.end();
            if state.view == View::Past {
                return vec![Effect::ReadPast];
            }
        }
        Input::Unread(why) => {
            state.is_reading = false;
            state.say(Tone::Bad, why);
        }
        Input::Hidden(shelf, why) => {
            state.hidden.push(shelf);
            state.say(Tone::Bad, why);
        }
        Input::Found(Err(why)) => {
            state.picture.ask_again();
            state.say(Tone::Bad, why);
        }
        Input::Found(Ok(found)) => {
            let failed = state.picture.found(found, now);
            state.rates.count(Rate::Failed, failed, now);
        }
        Input::Past(Ok(entries)) => state.past = Some(entries),
        Input::Conductors(Ok(conductors)) => {
            (state.conductors, state.conductors_read) = (conductors, now);
            state.recount();
        }
        Input::Past(Err(why)) => state.say(Tone::Bad, why),
        Input::Conductors(Err(why)) => {
            state.conductors_read = now;
            state.say(Tone::Bad, why);
        }
        Input::Pauses(pauses) => state.pauses = pauses,
        Input::Opened(reference, found) => {
            if let Some(opened) = state.opened(&reference) {
                opened.found = Some(found);
            }
        }
        Input::Explained(reference, explained) => {
            if let Some(opened) = state.opened(&reference) {
                opened.explained = Some(explained);
            }
        }
        Input::Prepared(deed, places, prepared) => ask(state, (deed, &places), prepared),
        Input::Performed(stage) => {
            if let Overlay::Dialog(dialog) = &mut state.overlay
                && dialog.stage == Stage::Acting
            {
                dialog.end(stage);
                state.marks.clear();
            }
        }
        _ => {}
    }
    Vec::new()
}

/// Takes in whether a board answers of which nothing was heard for a while.
fn pinged(state: &mut State, answer: Result<(), String>) -> Vec<Effect> {
    let (now, was_silent) = (state.now, state.is_silent);
    state.heard = now;
    state.is_silent = answer.is_err();
    match answer {
        Err(why) => {
            if !was_silent {
                state.link = Link::Away(now);
            }
            state.patience = PATIENCE.0;
            state.say(Tone::Bad, why);
        }
        Ok(()) if was_silent => {
            state.link = Link::Live;
            return vec![Effect::ReadNow];
        }
        Ok(()) => state.patience = (state.patience * 2).min(PATIENCE.1),
    }
    Vec::new()
}

/// Asks what was prepared, if somebody still waits for that.
fn ask(state: &mut State, (deed, places): (Deed, &[Place]), prepared: Result<Dialog, String>) {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return;
    };
    if dialog.stage != Stage::Looking || dialog.deed != deed || dialog.places != places {
        return;
    }
    match prepared {
        Ok(prepared) if !prepared.jobs.is_empty() => **dialog = prepared,
        prepared => {
            let why = prepared.err();
            state.overlay = Overlay::None;
            let gone = || "they are not there any more".to_owned();
            state.say(Tone::Bad, why.unwrap_or_else(gone));
        }
    }
}

/// Takes in what happened on the board.
fn heed(state: &mut State, event: &Event) -> Vec<Effect> {
    if let (Overlay::Dialog(dialog), Some(subject)) = (&mut state.overlay, &event.subject) {
        dialog.heed(&subject.key);
    }
    if state.is_paused {
        state.has_missed = true;
        return Vec::new();
    }
    let is_failed = event.departure == Some(Departure::Failed);
    let rate = match event.kind {
        EventKind::Posted => Some(Rate::Posted),
        EventKind::Consumed if is_failed => Some(Rate::Failed),
        EventKind::Consumed => Some(Rate::Finished),
        _ => None,
    };
    if let Some(rate) = rate {
        state.rates.count(rate, 1, state.now);
    }
    state.keep(Happening::of(event));
    let mut effects = Vec::new();
    if let (Overlay::Job(opened), Some(subject)) = (&mut state.overlay, &event.subject)
        && opened.is_of(&subject.key)
    {
        effects.extend(opened.read());
    }
    match state.picture.heed(event) {
        Heeded::Known => {}
        Heeded::Ended => state.has_past_changed = true,
        Heeded::Conductors => effects.push(Effect::ReadConductors),
        Heeded::Pauses => effects.push(Effect::ReadPauses),
        Heeded::Read => effects.push(Effect::Read),
    }
    effects
}

/// Does what has to be done from time to time.
fn tick(state: &mut State) -> Vec<Effect> {
    let now = state.now;
    state.rates.advance(now);
    if state.picture.unswept() > MESS {
        state.picture.sweep();
    }
    let mut effects = Vec::new();
    let is_lost = matches!(state.link, Link::Away(_) | Link::Connecting) && !state.is_silent;
    if !is_lost && now - state.heard >= state.patience {
        // Once for each silence; the answer begins another.
        state.heard = now;
        effects.push(Effect::Ping);
    }
    if state.is_paused || !state.has_read || matches!(state.link, Link::Away(_)) {
        return effects;
    }
    let asked = now - state.conductors_read;
    match state.view {
        View::Conductors if asked >= CONDUCTORS[0] => effects.push(Effect::ReadConductors),
        View::Claims if asked >= CONDUCTORS[1] => effects.push(Effect::ReadConductors),
        View::Past if state.has_past_changed => effects.push(state.read_past()),
        _ => {}
    }
    if now.timestamp() % RENEWALS == 0 {
        let from = state.cursor().top;
        let seen = from..from + draw::lines(state);
        state
            .picture
            .look_again(seen, state.view == View::Claims, now);
    }
    if now.timestamp() % AGES == 0 && state.picture.filters.change_with_time() {
        effects.push(Effect::Read);
    }
    effects
}
