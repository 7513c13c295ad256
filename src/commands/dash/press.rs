//! What becomes of the dashboard by a key.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    act::{Deed, Dialog, Stage},
    draw,
    keys::{Action, action},
    lens::{Sort, Which},
    picture::Place,
    state::{Anchor, Cursor, Field, Opened, Overlay, State, View},
    update::Effect,
};
use crate::{
    board::{
        JobRef,
        filter::{Filter, Filters},
    },
    job::{Entry, Shelf},
    output::{Text, Tone},
};

/// How many characters a filter may have.
const LONGEST: usize = 2000;

/// Takes in a key.
pub(super) fn press(state: &mut State, mut key: KeyEvent) -> Vec<Effect> {
    state.message = None;
    // Whoever types fast after Esc has typed both.
    if key.modifiers.contains(KeyModifiers::ALT) {
        key.modifiers.remove(KeyModifiers::ALT);
        let effects = press(state, KeyCode::Esc.into());
        return [effects, press(state, key)].concat();
    }
    let wanted = action(key, state.may_act);
    let is_acting = matches!(&state.overlay, Overlay::Dialog(it) if it.stage == Stage::Acting);
    let is_signal = key.modifiers.contains(KeyModifiers::CONTROL);
    if let (Some(action @ (Action::Quit | Action::Suspend | Action::Redraw)), true) =
        (wanted, is_signal)
        // What has been begun is seen to its end.
        && !(is_acting && action == Action::Quit)
    {
        return perform(state, action);
    }
    match &mut state.overlay {
        Overlay::Help => state.overlay = Overlay::None,
        Overlay::Filter(_) => return edit(state, key),
        Overlay::Dialog(_) => return answer(state, key),
        Overlay::None | Overlay::Job(_) | Overlay::Conductor(..) => {
            return wanted.map_or_else(Vec::new, |action| perform(state, action));
        }
    }
    Vec::new()
}

/// Does what a key is for.
fn perform(state: &mut State, action: Action) -> Vec<Effect> {
    let at = state.cursor().at;
    let page = draw::lines(state).saturating_sub(1).max(1) as isize;
    match action {
        Action::Quit => return vec![Effect::Quit],
        Action::Suspend => return vec![Effect::Suspend],
        Action::Redraw => return vec![Effect::Redraw],
        Action::Show(view) => return show(state, view),
        Action::Turn(by) => {
            let views = View::ALL.len() as isize;
            let next = (state.view as isize + by).rem_euclid(views);
            return show(state, View::ALL[next as usize]);
        }
        Action::Move(by) => state.step(by),
        Action::Page(by) => state.step(by * page),
        Action::First => state.step(isize::MIN),
        Action::Last => state.step(isize::MAX),
        Action::Open => return open(state),
        Action::Back => back(state),
        Action::Filter => {
            let text = state.picture.filters.to_string();
            state.overlay = Overlay::Filter(Field { text, error: None });
        }
        Action::Sort | Action::Reverse => sort(state, action == Action::Reverse),
        Action::Pause => {
            state.is_paused = !state.is_paused;
            if !state.is_paused && std::mem::take(&mut state.has_missed) {
                return vec![Effect::Read];
            }
        }
        Action::Copy => return copy(state),
        Action::Mark => {
            if let Some(Anchor::Job(shelf, key)) = state.anchor(at) {
                let place = (shelf, key);
                if !state.marks.remove(&place) {
                    state.marks.insert(place);
                }
                state.step(1);
            }
        }
        Action::Do(deed) => return prepare(state, deed),
        Action::Help => state.overlay = Overlay::Help,
    }
    Vec::new()
}

fn show(state: &mut State, view: View) -> Vec<Effect> {
    (state.view, state.within, state.overlay) = (view, None, Overlay::None);
    state.aim();
    match view {
        View::Past => vec![state.read_past()],
        View::Conductors | View::Claims => vec![Effect::ReadConductors],
        _ => Vec::new(),
    }
}

/// Opens what the cursor is on.
fn open(state: &mut State) -> Vec<Effect> {
    let at = state.cursor().at;
    if !matches!(state.overlay, Overlay::None) {
        return Vec::new();
    }
    let opened = match state.view {
        _ if state.has_rows() => match state.anchor(at) {
            Some(Anchor::Job(_, key)) => Opened::new(JobRef::Key(key), None),
            _ => return Vec::new(),
        },
        View::Claims => {
            let Some(of) = state.summary.owners.get(at) else {
                return Vec::new();
            };
            let owner = of.owner.as_ref().map(ToString::to_string);
            return enter(state, Which::Of(owner));
        }
        View::Failures => {
            let Some(alike) = state.summary.failures.get(at) else {
                return Vec::new();
            };
            let signature = alike.signature.clone();
            return enter(state, Which::Failed(signature));
        }
        View::Past => {
            let Some(entry) = state.past.as_ref().and_then(|past| past.get(at)) else {
                return Vec::new();
            };
            // Another one may have its key by now.
            let Ok(reference) = entry.reference().parse() else {
                return Vec::new();
            };
            Opened::new(reference, Some(entry.clone()))
        }
        View::Conductors => {
            if let Some(conductor) = state.conductors.get(at) {
                state.overlay = Overlay::Conductor(conductor.name.clone(), 0);
            }
            return Vec::new();
        }
        _ => match state.events.get(at).and_then(|(_, it)| it.job()) {
            Some(reference) => Opened::new(reference, None),
            None => return Vec::new(),
        },
    };
    let effects = opened.read();
    state.overlay = Overlay::Job(Box::new(opened));
    effects
}

/// Shows the jobs of a group.
fn enter(state: &mut State, which: Which) -> Vec<Effect> {
    (state.within, state.inner) = (Some(which), Cursor::default());
    state.aim();
    Vec::new()
}

fn back(state: &mut State) {
    if !matches!(state.overlay, Overlay::None) {
        state.overlay = Overlay::None;
    } else if state.within.take().is_some() {
        state.aim();
    } else {
        state.marks.clear();
    }
}

fn sort(state: &mut State, is_reverse: bool) {
    let mut lens = state.picture.lens().clone();
    match is_reverse {
        true => lens.is_reversed = !lens.is_reversed,
        false => lens.sort = Sort::ALL[(lens.sort as usize + 1) % Sort::ALL.len()],
    }
    state.picture.look_through(lens);
}

fn copy(state: &mut State) -> Vec<Effect> {
    let at = state.cursor().at;
    let reference = |entry: &Entry| entry.reference().into_owned();
    let uuid = match (&state.overlay, state.view) {
        (Overlay::Job(opened), _) => match &opened.found {
            Some(Ok(entry)) => Some(reference(entry)),
            _ => None,
        },
        _ if state.has_rows() => state
            .picture
            .at(at)
            .map(|row| reference(&row.entry(state.now))),
        (_, View::Past) => state
            .past
            .as_ref()
            .and_then(|past| past.get(at))
            .map(reference),
        (_, View::Events) => {
            let happening = state.events.get(at).map(|(_, it)| it);
            happening.and_then(|it| it.job()).map(|it| it.to_string())
        }
        _ => None,
    };
    let Some(uuid) = uuid else {
        return Vec::new();
    };
    // Pasted, what a stranger wrote must not be a command.
    let uuid = Text::from(uuid).to_string();
    state.say(Tone::Plain, format!("copied {uuid}"));
    vec![Effect::Copy(uuid)]
}

/// Asks for what is marked, or else for what the cursor is on, as it is now.
fn prepare(state: &mut State, deed: Deed) -> Vec<Effect> {
    let places: Vec<_> = match &state.overlay {
        Overlay::Job(opened) => match &opened.found {
            Some(Ok(entry)) if opened.is_on_board() => vec![place(entry)],
            _ => Vec::new(),
        },
        Overlay::None if !state.marks.is_empty() => state.marked(),
        Overlay::None => match state.anchor(state.cursor().at) {
            Some(Anchor::Job(shelf, key)) => vec![(shelf, key)],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let fits = |place: &Place| deed.shelves().contains(&place.0);
    let problem = match places.iter().any(fits) {
        true => {
            let places: Vec<_> = places.into_iter().filter(fits).collect();
            let dialog = Dialog::of(deed, places.clone());
            state.overlay = Overlay::Dialog(Box::new(dialog));
            return vec![Effect::Prepare(deed, places)];
        }
        false if !places.is_empty() => "that is in the trash: R has it tried again",
        false if !state.marks.is_empty() => "what is marked is not shown here: Esc unmarks it",
        false => "choose a job in 1 Jobs or 4 Trash, or open one",
    };
    state.say(Tone::Busy, problem);
    Vec::new()
}

fn place(entry: &Entry) -> Place {
    let shelf = entry.job().map_or(Shelf::Board, |job| job.shelf);
    (shelf, entry.key().clone())
}

/// Takes in a key while a filter is typed.
fn edit(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Overlay::Filter(field) = &mut state.overlay else {
        return Vec::new();
    };
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('u') if is_control => field.text.clear(),
        KeyCode::Char('w') if is_control => {
            let kept = field.text.trim_end().rfind(' ').map_or(0, |at| at + 1);
            field.text.truncate(kept);
        }
        KeyCode::Char(char) if !is_control => field.add([char].into_iter()),
        KeyCode::Backspace => _ = field.text.pop(),
        KeyCode::Esc => {
            state.overlay = Overlay::None;
            return Vec::new();
        }
        KeyCode::Enter => {
            let Ok(filters) = field.filters() else {
                field.check();
                return Vec::new();
            };
            state.overlay = Overlay::None;
            state.picture.filter(filters);
            (state.past, state.has_read) = (None, false);
            let past = (state.view == View::Past).then(|| state.read_past());
            return [Effect::ReadNow].into_iter().chain(past).collect();
        }
        _ => {}
    }
    field.check();
    Vec::new()
}

impl Field {
    /// Returns what is typed; nothing is no filter.
    fn filters(&self) -> Result<Filters, String> {
        match self.text.trim() {
            "" => Ok(Filters::default()),
            text => match text.parse::<Filter>() {
                Ok(filter) => Ok(Filters::new(vec![filter])),
                Err(error) => Err(error.to_string()),
            },
        }
    }

    /// Adds what is typed, as long as there is room.
    pub(super) fn add(&mut self, typed: impl Iterator<Item = char>) {
        let room = LONGEST.saturating_sub(self.text.chars().count());
        self.text.extend(typed.take(room));
        self.check();
    }

    /// Says what is wrong with it.
    pub(super) fn check(&mut self) {
        self.error = self.filters().err();
    }
}

/// Takes in a key while somebody is asked.
fn answer(state: &mut State, key: KeyEvent) -> Vec<Effect> {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return Vec::new();
    };
    let is_escape = key.code == KeyCode::Esc;
    match (&dialog.stage, &state.protected) {
        (Stage::Acting, _) => return Vec::new(),
        (Stage::Done(..), _) => state.overlay = Overlay::None,
        (Stage::Looking | Stage::Asking, _) if is_escape => state.overlay = Overlay::None,
        (Stage::Looking, _) => return Vec::new(),
        (Stage::Asking, Some(name)) => match key.code {
            KeyCode::Char(char) => dialog.typed.push(char),
            KeyCode::Backspace => _ = dialog.typed.pop(),
            KeyCode::Enter if dialog.typed == *name => return agree(state),
            KeyCode::Enter => {
                state.overlay = Overlay::None;
                state.say(
                    Tone::Busy,
                    "that is not the name of the board: nothing was done",
                );
            }
            _ => {}
        },
        (Stage::Asking, None) => match key.code {
            KeyCode::Char('y' | 'Y') => return agree(state),
            _ => state.overlay = Overlay::None,
        },
    }
    Vec::new()
}

fn agree(state: &mut State) -> Vec<Effect> {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return Vec::new();
    };
    if let Some(task) = dialog.task() {
        dialog.stage = Stage::Acting;
        return vec![Effect::Perform(task)];
    }
    state.overlay = Overlay::None;
    state.say(Tone::Busy, "all of it has changed since, and is left alone");
    Vec::new()
}
