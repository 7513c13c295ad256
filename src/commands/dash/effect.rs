//! What happens to the dashboard, and what has to be done about it.

use crossterm::event::KeyEvent;

use super::{
    act::{Operation, Stage, Task},
    row::Place,
};
use crate::{
    board::{Event, JobRef},
    commands::explain::Explanation,
    job::{Conductor, Entry, Pauses, Shelf},
};

#[derive(Debug)]
pub(super) enum Input {
    Key(KeyEvent),
    Paste(String),
    Resize(u16, u16),
    Tick,
    /// The board is listened to; what of it is told late.
    Listening(Option<String>),
    Lost(String),
    Event(Event),
    Reading,
    Entries(Shelf, Vec<Entry>),
    Read,
    Unread(String),
    /// We may not see this part of it.
    Hidden(Shelf, String),
    Found(Result<Vec<(Place, Option<Entry>)>, String>),
    Pinged(Result<(), String>),
    Past(Result<Vec<Entry>, String>),
    Conductors(Result<Vec<Conductor>, String>),
    Pauses(Pauses),
    Opened(JobRef, Result<Entry, String>),
    Explained(JobRef, Result<Explanation, String>),
    /// The jobs of these places as they are, to be shown to whoever decides what becomes of them.
    Prepared(Operation, Vec<Place>, Result<Vec<Entry>, String>),
    Performed(Stage),
}

#[derive(Debug, Clone)]
pub(super) enum Effect {
    Quit,
    Suspend,
    Redraw,
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
    Prepare(Operation, Vec<Place>),
    Perform(Task),
}
