//! Updates the dashboard's state for a key.

use clap::ValueEnum as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{
    act::{DashEffect, Dialog, Operation, TaskStage},
    cursor::{Anchor, Cursor, Lines},
    draw::Target,
    field::Field,
    keys::{KeyAction, View, action, named},
    listing::{ListingGroup, RowOrder},
    row::RowPlace,
    state::{DashState, Opened, Overlay},
};
use crate::{
    board::filter::{FieldPath, Filters},
    diagnosis::ProblemSelector,
    job::{Entry, Location},
    output::Tone,
    problem::Problem,
};

const MAX_FIXED: usize = 1000;

const NO_JOB: &str = "select a job in 2 Jobs or 4 Trash, or open one";

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
    if let (Some(action @ (KeyAction::Quit | KeyAction::Suspend | KeyAction::Redraw)), true) =
        (wanted, key.modifiers.contains(KeyModifiers::CONTROL))
        // While an action runs, Ctrl-C does not quit.
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
        Overlay::Input(_) => return edit_input(state, key),
        Overlay::Dialog(_) => return answer_dialog(state, key),
        Overlay::None | Overlay::Job | Overlay::Line => {}
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
            state.overlay = Overlay::Input(Field {
                text: state.picture.filters.to_string(),
                is_filter: true,
                names: FieldPath::names().into_iter().map(Into::into).collect(),
                before: state.picture.filters.clone(),
                ..Field::default()
            });
        }
        KeyAction::Command => {
            let names = named(state.may_act).into_iter().map(|(name, _)| name);
            state.overlay = Overlay::Input(Field {
                names: names.collect(),
                ..Field::default()
            });
        }
        KeyAction::Sort | KeyAction::Reverse => sort(state, action == KeyAction::Reverse),
        KeyAction::Fold => return fold(state),
        KeyAction::Mark => {
            let Some(Anchor::Job(place)) = state.anchor(at).filter(|_| !state.is_page()) else {
                return warn(state, NO_JOB);
            };
            if !state.marks.remove(&place) {
                state.marks.insert(place);
            }
            state.step(1);
        }
        KeyAction::Do(operation) => return prepare(state, operation),
        KeyAction::Fix => return fix(state),
        KeyAction::Help => state.open(Overlay::Help),
    }
    Vec::new()
}

/// Takes a key of the input line. A filter narrows the view as it is typed, unless that would take too long.
fn edit_input(state: &mut DashState, key: KeyEvent) -> Vec<DashEffect> {
    let Overlay::Input(field) = &mut state.overlay else {
        return Vec::new();
    };
    if key.code == KeyCode::Esc {
        let before = std::mem::take(&mut field.before);
        let has_narrowed = field.is_filter && state.picture.filters.texts() != before.texts();
        state.overlay = Overlay::None;
        return match has_narrowed {
            true => filter(state, before),
            false => Vec::new(),
        };
    }
    field.press(key);
    match (field.is_filter, field.filters().ok()) {
        (true, Some(filters)) if key.code == KeyCode::Enter => filter(state, filters),
        (true, Some(filters)) if state.picture.can_narrow(&filters) => {
            state.picture.filter(filters, state.now);
            Vec::new()
        }
        (false, _) if key.code == KeyCode::Enter => {
            let name = field.completions().into_iter().next();
            let mut known = named(state.may_act).into_iter();
            let Some((_, action)) = known.find(|(it, _)| Some(it) == name.as_ref()) else {
                return Vec::new();
            };
            state.overlay = Overlay::None;
            perform(state, action)
        }
        _ => Vec::new(),
    }
}

fn fold(state: &mut DashState) -> Vec<DashEffect> {
    if !matches!(state.view, View::Trash | View::History) {
        return warn(state, "only Trash and History are folded by reason");
    }
    state.is_folded = state.within.take().is_some() || !state.is_folded;
    *state.cursor_mut() = Cursor::default();
    state.list();
    Vec::new()
}

fn warn(state: &mut DashState, why: &'static str) -> Vec<DashEffect> {
    state.notify(Tone::Warning, why);
    Vec::new()
}

fn show(state: &mut DashState, view: View) -> Vec<DashEffect> {
    (state.view, state.within, state.overlay) = (view, None, Overlay::None);
    state.is_view_chosen = true;
    state.list();
    match view {
        View::History => vec![DashEffect::ReadHistory],
        View::Conductors | View::Claims => vec![DashEffect::ReadSnapshot],
        _ => Vec::new(),
    }
}

fn open(state: &mut DashState) -> Vec<DashEffect> {
    let at = state.cursor().at;
    if !matches!(state.overlay, Overlay::None) {
        return Vec::new();
    }
    if let Some(selected) = state.selected() {
        state.open(Overlay::Job);
        return follow(state, selected);
    }
    let group = match state.shown() {
        Lines::Owners => state.summary.owners.get(at).map(|of| {
            let owner = of.owner.as_ref().map(ToString::to_string);
            ListingGroup::Of(owner)
        }),
        Lines::Problems => state.summary.problems.get(at).and_then(|it| {
            let title = format!("{}: {}", it.code, it.summary);
            Some(ListingGroup::Problem(Box::new(selector(it)?), title))
        }),
        Lines::Groups(groups) => (groups.get(at)).map(|it| ListingGroup::Reason(it.reason.clone())),
        Lines::Conductors => None,
        Lines::Rows | Lines::History | Lines::Events => return Vec::new(),
    };
    match group {
        Some(group) => {
            (state.within, state.inner) = (Some(group), Cursor::default());
            state.list();
        }
        None => {
            // Keeps the cursor on this line when the lines change.
            state.step(0);
            state.open(Overlay::Line);
        }
    }
    Vec::new()
}

/// Reads the selected job, unless it is read already.
pub(super) fn follow(state: &mut DashState, selected: Opened) -> Vec<DashEffect> {
    let known = state.opened.as_deref();
    if known.is_some_and(|it| it.reference == selected.reference && it.is_on_board()) {
        return Vec::new();
    }
    let effects = read(&selected);
    state.opened = Some(Box::new(selected));
    effects
}

fn selector(problem: &Problem) -> Option<ProblemSelector> {
    problem.selector.as_deref()?.parse().ok()
}

pub(super) fn read(opened: &Opened) -> Vec<DashEffect> {
    let has_ended = opened.found.is_some() && !opened.is_on_board();
    let open = (!has_ended).then(|| DashEffect::Open(opened.reference.clone()));
    let explain = DashEffect::Explain(opened.reference.clone());
    open.into_iter().chain([explain]).collect()
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
    state.has_read &= state.picture.can_narrow(&filters);
    state.picture.filter(filters, state.now);
    state.history = None;
    let history = (state.view == View::History).then_some(DashEffect::ReadHistory);
    [DashEffect::ReadNow].into_iter().chain(history).collect()
}

/// A click selects a line, a view or the column to sort by; on the selected line, it opens the line.
pub(super) fn click(state: &mut DashState, target: Option<Target>) -> Vec<DashEffect> {
    match target {
        Some(Target::Tab(view)) => return show(state, view),
        Some(Target::Line(at)) if at == state.cursor().at => return open(state),
        Some(Target::Line(at)) => state.step(at as isize - state.cursor().at as isize),
        Some(Target::Title(order)) if order == state.picture.listing.sort => sort(state, true),
        Some(Target::Title(order)) => state.picture.list(|it| it.sort = order),
        None => {}
    }
    Vec::new()
}

fn sort(state: &mut DashState, is_reverse: bool) {
    state.picture.list(|it| match is_reverse {
        true => it.is_reversed = !it.is_reversed,
        false => it.sort = RowOrder::ALL[(it.sort as usize + 1) % RowOrder::ALL.len()],
    });
}

fn prepare(state: &mut DashState, operation: Operation) -> Vec<DashEffect> {
    let places: Vec<_> = match &state.overlay {
        Overlay::Job => {
            let opened = state.page_job().filter(|it| it.is_on_board());
            let entry = opened.and_then(Opened::entry);
            let place = |entry: &Entry| {
                let location = entry.job().map_or(Location::Board, |job| job.location);
                (location, entry.key().clone())
            };
            entry.map(place).into_iter().collect()
        }
        Overlay::None if !state.marks.is_empty() => state.marked(),
        Overlay::None => match state.anchor(state.cursor().at) {
            Some(Anchor::Job(place)) => vec![place],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    begin(state, operation, places)
}

fn fix(state: &mut DashState) -> Vec<DashEffect> {
    let mut problems = state.summary.problems.iter();
    let problem = match &state.within {
        Some(ListingGroup::Problem(selector, _)) => {
            problems.find(|it| it.selector.as_ref() == Some(&selector.text))
        }
        _ if state.view == View::Problems => problems.nth(state.cursor().at),
        _ => None,
    };
    let Some(problem) = problem else {
        return warn(state, "select a problem in 1 Problems");
    };
    let repair = problem.fix.as_ref().and_then(|fix| fix.repair);
    let (Some(repair), Some(selector)) = (repair, selector(problem)) else {
        return warn(state, "no command repairs all these jobs; Enter shows them");
    };
    let rows = state.picture.rows();
    let rows = rows.filter(|(_, row)| row.causes.iter().any(|it| selector.fits(it)));
    let places = rows
        .map(|(place, _)| place.clone())
        .take(MAX_FIXED)
        .collect();
    begin(state, Operation::of(repair), places)
}

fn begin(state: &mut DashState, operation: Operation, places: Vec<RowPlace>) -> Vec<DashEffect> {
    let pauses = &state.picture.snapshot.pauses;
    let is_paused = |place: &RowPlace| {
        (state.picture.row(place)).is_some_and(|row| pauses.of(&row.name, state.now).is_some())
    };
    let operation = match operation {
        Operation::Pause if places.iter().any(is_paused) => Operation::Resume,
        operation => operation,
    };
    let problem = |place: &RowPlace| {
        let row = state.picture.row(place);
        operation.problem(place.0, row.is_none_or(|row| row.claim.is_some()))
    };
    let is_fit = |place: &RowPlace| problem(place).is_none();
    let (fit, unfit): (Vec<_>, Vec<_>) = places.into_iter().partition(is_fit);
    if !fit.is_empty() {
        let mut dialog = Dialog::new(operation, fit.clone());
        let left_out = |problem| format!("{} skipped: {problem}", unfit.len());
        dialog.left_out = unfit.first().and_then(problem).map(left_out);
        state.overlay = Overlay::Dialog(Box::new(dialog));
        return vec![DashEffect::Prepare(operation, fit)];
    }
    let none = match state.marks.is_empty() {
        true => NO_JOB,
        false => "the marked jobs are not in this view; Esc clears the marks",
    };
    let problem = unfit.first().and_then(problem).unwrap_or(none);
    warn(state, problem)
}

fn answer_dialog(state: &mut DashState, key: KeyEvent) -> Vec<DashEffect> {
    let Overlay::Dialog(dialog) = &mut state.overlay else {
        return Vec::new();
    };
    let problem = match (&dialog.stage, &state.protected, key.code) {
        (TaskStage::Acting, ..) => return Vec::new(),
        (TaskStage::Looking, ..) if key.code != KeyCode::Esc => return Vec::new(),
        (TaskStage::Asking, Some(_), code) if !matches!(code, KeyCode::Enter | KeyCode::Esc) => {
            match code {
                KeyCode::Char(char) => dialog.typed.push(char),
                KeyCode::Backspace => _ = dialog.typed.pop(),
                _ => {}
            }
            return Vec::new();
        }
        (TaskStage::Asking, Some(name), KeyCode::Enter) if dialog.typed != *name => {
            Some("wrong board name; nothing changed")
        }
        // Not a letter, which may be meant for another question.
        (TaskStage::Asking, _, KeyCode::Enter) => {
            if let Some(task) = dialog.task() {
                dialog.stage = TaskStage::Acting;
                return vec![DashEffect::Perform(task)];
            }
            Some("all selected jobs changed meanwhile; nothing changed")
        }
        _ => None,
    };
    state.overlay = Overlay::None;
    problem.map_or_else(Vec::new, |problem| warn(state, problem))
}
