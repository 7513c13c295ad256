//! Updates the dashboard's state for a key.

use clap::ValueEnum as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    act::{Dialog, Operation, TaskStage},
    effect::DashEffect,
    field::Field,
    keys::{KeyAction, action},
    listing::{ListingGroup, RowOrder},
    row::RowPlace,
    state::{Anchor, Cursor, DashState, Opened, Overlay},
    view::View,
};
use crate::{
    board::{JobRef, filter::Filters},
    job::{Entry, Shelf},
    output::{Text, Tone},
};

const NO_JOB: &str = "select a job in 1 Jobs or 4 Trash, or open one";

pub(super) fn press(state: &mut DashState, mut key: KeyEvent) -> Vec<DashEffect> {
    state.message = None;
    // Alt plus a key is Esc followed quickly by the key.
    if key.modifiers.contains(KeyModifiers::ALT) {
        key.modifiers.remove(KeyModifiers::ALT);
        let effects = press(state, KeyCode::Esc.into());
        return [effects, press(state, key)].concat();
    }
    let wanted = action(key, state.may_act);
    let is_acting = matches!(&state.overlay, Overlay::Dialog(it) if it.stage == TaskStage::Acting);
    let is_signal = key.modifiers.contains(KeyModifiers::CONTROL);
    if let (Some(action @ (KeyAction::Quit | KeyAction::Suspend | KeyAction::Redraw)), true) =
        (wanted, is_signal)
        // A running action is completed.
        && !(is_acting && action == KeyAction::Quit)
    {
        return perform(state, action);
    }
    match &mut state.overlay {
        Overlay::Help => match wanted {
            Some(KeyAction::Move(_) | KeyAction::Page(_) | KeyAction::First | KeyAction::Last) => {}
            _ => {
                state.overlay = Overlay::None;
                return Vec::new();
            }
        },
        Overlay::Filter(_) if key.code == KeyCode::Esc => {
            state.overlay = Overlay::None;
            return Vec::new();
        }
        Overlay::Filter(field) => {
            let filters = field.press(key);
            return filters.map_or_else(Vec::new, |filters| filter(state, filters));
        }
        Overlay::Dialog(_) => return answer(state, key),
        Overlay::None | Overlay::Job(_) | Overlay::Conductor(_) => {}
    }
    wanted.map_or_else(Vec::new, |action| perform(state, action))
}

fn perform(state: &mut DashState, action: KeyAction) -> Vec<DashEffect> {
    let at = state.cursor().at;
    let page = state.lines.saturating_sub(1).max(1) as isize;
    match action {
        KeyAction::Quit => return vec![DashEffect::Quit],
        KeyAction::Suspend => return vec![DashEffect::Suspend],
        KeyAction::Redraw => return vec![DashEffect::Redraw],
        KeyAction::Show(view) => return show(state, view),
        KeyAction::Turn(by) => {
            let views = View::value_variants();
            let next = (state.view as isize + by).rem_euclid(views.len() as isize);
            return show(state, views[next as usize]);
        }
        KeyAction::Move(by) => state.step(by),
        KeyAction::Page(by) => state.step(by * page),
        KeyAction::First => state.step(isize::MIN),
        KeyAction::Last => state.step(isize::MAX),
        KeyAction::Open => return open(state),
        KeyAction::Back => return back(state),
        KeyAction::Filter => {
            let text = state.picture.filters.to_string();
            state.overlay = Overlay::Filter(Field { text, error: None });
        }
        KeyAction::Sort | KeyAction::Reverse => sort(state, action == KeyAction::Reverse),
        KeyAction::Pause => return pause(state),
        KeyAction::Copy => return copy(state),
        KeyAction::Mark => {
            let Some(Anchor::Job(place)) = state.anchor(at).filter(|_| !state.is_page()) else {
                state.say(Tone::Warning, NO_JOB);
                return Vec::new();
            };
            if !state.marks.remove(&place) {
                state.marks.insert(place);
            }
            state.step(1);
        }
        KeyAction::Do(operation) => return prepare(state, operation),
        KeyAction::Help => state.open(Overlay::Help),
    }
    Vec::new()
}

fn show(state: &mut DashState, view: View) -> Vec<DashEffect> {
    (state.view, state.within, state.overlay) = (view, None, Overlay::None);
    state.list();
    match view {
        View::History => read_past(state),
        View::Conductors | View::Claims => vec![DashEffect::ReadConductors],
        _ => Vec::new(),
    }
}

fn open(state: &mut DashState) -> Vec<DashEffect> {
    let at = state.cursor().at;
    if !matches!(state.overlay, Overlay::None) {
        return Vec::new();
    }
    let opened = match state.view {
        _ if state.has_rows() => match state.anchor(at) {
            Some(Anchor::Job((_, key))) => Opened::new(JobRef::Key(key), None),
            _ => return Vec::new(),
        },
        View::Claims => {
            let Some(of) = state.summary.owners.get(at) else {
                return Vec::new();
            };
            let owner = of.owner.as_ref().map(ToString::to_string);
            return enter(state, ListingGroup::Of(owner));
        }
        View::Failures => {
            let Some(alike) = state.summary.failures.get(at) else {
                return Vec::new();
            };
            let signature = alike.signature.clone();
            return enter(state, ListingGroup::Failed(signature));
        }
        View::History => {
            let Some(entry) = state.past.as_ref().and_then(|past| past.get(at)) else {
                return Vec::new();
            };
            // Another record may have its key by now.
            let Ok(reference) = entry.reference().parse() else {
                return Vec::new();
            };
            Opened::new(reference, Some(entry.clone()))
        }
        View::Conductors => {
            if let Some(conductor) = state.conductors.get(at) {
                state.open(Overlay::Conductor(conductor.name.clone()));
            }
            return Vec::new();
        }
        _ => match state.events.get(at).and_then(|(_, it)| it.job()) {
            Some(reference) => Opened::new(reference, None),
            None => return Vec::new(),
        },
    };
    let effects = read(&opened);
    state.open(Overlay::Job(Box::new(opened)));
    effects
}

pub(super) fn read(opened: &Opened) -> Vec<DashEffect> {
    let is_past = opened.found.is_some() && !opened.is_on_board();
    let open = (!is_past).then(|| DashEffect::Open(opened.reference.clone()));
    let explain = DashEffect::Explain(opened.reference.clone());
    open.into_iter().chain([explain]).collect()
}

fn read_past(state: &mut DashState) -> Vec<DashEffect> {
    state.has_past_changed = false;
    vec![DashEffect::ReadPast]
}

fn pause(state: &mut DashState) -> Vec<DashEffect> {
    state.is_paused = !state.is_paused;
    let missed = std::mem::take(&mut state.missed);
    if missed.is_empty() {
        return Vec::new();
    }
    missed.into_iter().rev().for_each(|it| state.keep(it));
    let opened = match &state.overlay {
        Overlay::Job(opened) => read(opened),
        _ => Vec::new(),
    };
    [vec![DashEffect::Read], opened].concat()
}

fn enter(state: &mut DashState, which: ListingGroup) -> Vec<DashEffect> {
    (state.within, state.inner) = (Some(which), Cursor::default());
    state.list();
    Vec::new()
}

fn back(state: &mut DashState) -> Vec<DashEffect> {
    if !matches!(state.overlay, Overlay::None) {
        state.overlay = Overlay::None;
    } else if state.within.take().is_some() {
        state.list();
    } else if !state.marks.is_empty() {
        state.marks.clear();
    } else if !state.picture.filters.is_empty() {
        return filter(state, Filters::default());
    }
    Vec::new()
}

fn filter(state: &mut DashState, filters: Filters) -> Vec<DashEffect> {
    state.overlay = Overlay::None;
    state.picture.filter(filters);
    (state.past, state.has_read) = (None, false);
    let past = match state.view {
        View::History => read_past(state),
        _ => Vec::new(),
    };
    [vec![DashEffect::ReadNow], past].concat()
}

fn sort(state: &mut DashState, is_reverse: bool) {
    let mut listing = state.picture.listing().clone();
    match is_reverse {
        true => listing.is_reversed = !listing.is_reversed,
        false => listing.sort = RowOrder::ALL[(listing.sort as usize + 1) % RowOrder::ALL.len()],
    }
    state.picture.list(listing);
}

fn copy(state: &mut DashState) -> Vec<DashEffect> {
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
            .map(|(place, row)| reference(&row.entry(place, state.now))),
        (_, View::History) => state
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
        state.say(Tone::Warning, NO_JOB);
        return Vec::new();
    };
    // Untrusted text must not become a command when pasted.
    let uuid = Text::from(uuid).to_string();
    state.say(Tone::Plain, format!("copied {uuid}"));
    vec![DashEffect::Copy(uuid)]
}

fn prepare(state: &mut DashState, operation: Operation) -> Vec<DashEffect> {
    let places: Vec<_> = match &state.overlay {
        Overlay::Job(opened) => match &opened.found {
            Some(Ok(entry)) if opened.is_on_board() => {
                let shelf = entry.job().map_or(Shelf::Board, |job| job.shelf);
                vec![(shelf, entry.key().clone())]
            }
            _ => Vec::new(),
        },
        Overlay::None if !state.marks.is_empty() => state.marked(),
        Overlay::None => match state.anchor(state.cursor().at) {
            Some(Anchor::Job(place)) => vec![place],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let is_paused = |place: &RowPlace| {
        let row = state.picture.row(place);
        row.is_some_and(|row| state.pauses.of(&row.name, state.now).is_some())
    };
    let operation = match operation {
        Operation::Pause if places.iter().any(is_paused) => Operation::Resume,
        operation => operation,
    };
    let problem = |place: &RowPlace| {
        let row = state.picture.row(place);
        operation.problem(place.0, row.is_none_or(|row| row.claim.is_some()))
    };
    let (fit, unfit): (Vec<_>, Vec<_>) =
        (places.into_iter()).partition(|place| problem(place).is_none());
    if !fit.is_empty() {
        let mut dialog = Dialog::new(operation, fit.clone());
        let left_out = |problem| format!("{} skipped: {problem}", unfit.len());
        dialog.left_out = unfit.first().and_then(problem).map(left_out);
        state.overlay = Overlay::Dialog(Box::new(dialog));
        return vec![DashEffect::Prepare(operation, fit)];
    }
    let hidden = "the marked jobs are not in this view; Esc clears the marks";
    let problem = match unfit.first().and_then(problem) {
        Some(problem) => problem,
        None if !state.marks.is_empty() => hidden,
        None => NO_JOB,
    };
    state.say(Tone::Warning, problem);
    Vec::new()
}

fn answer(state: &mut DashState, key: KeyEvent) -> Vec<DashEffect> {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return Vec::new();
    };
    let is_escape = key.code == KeyCode::Esc;
    match (&dialog.stage, &state.protected) {
        (TaskStage::Acting, _) => return Vec::new(),
        (TaskStage::Done(..), _) => state.overlay = Overlay::None,
        (TaskStage::Looking | TaskStage::Asking, _) if is_escape => state.overlay = Overlay::None,
        (TaskStage::Looking, _) => return Vec::new(),
        (TaskStage::Asking, Some(name)) => match key.code {
            KeyCode::Char(char) => dialog.typed.push(char),
            KeyCode::Backspace => _ = dialog.typed.pop(),
            KeyCode::Enter if dialog.typed == *name => return agree(state),
            KeyCode::Enter => {
                state.overlay = Overlay::None;
                state.say(Tone::Warning, "wrong board name; nothing changed");
            }
            _ => {}
        },
        // Not `y`, which copies: typed too early or too late, it must do no harm.
        (TaskStage::Asking, None) if key.code == KeyCode::Enter => return agree(state),
        (TaskStage::Asking, None) => state.overlay = Overlay::None,
    }
    Vec::new()
}

fn agree(state: &mut DashState) -> Vec<DashEffect> {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return Vec::new();
    };
    if let Some(task) = dialog.task() {
        dialog.stage = TaskStage::Acting;
        return vec![DashEffect::Perform(task)];
    }
    state.overlay = Overlay::None;
    state.say(
        Tone::Warning,
        "all selected jobs changed meanwhile; nothing changed",
    );
    Vec::new()
}
