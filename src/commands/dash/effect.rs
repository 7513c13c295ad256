//! Inputs and effects of the dashboard.

use crossterm::event::KeyEvent;

use super::{
    act::{DashTask, Operation, TaskStage},
    row::RowPlace,
};
use crate::{
    board::{Event, JobRef},
    diagnosis::{Explanation, Snapshot},
    job::{Entry, Shelf},
};

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
    Entries(Shelf, Vec<Entry>),
    Read,
    Unread(String),
    Hidden(Shelf, String),
    Found(Result<Vec<(RowPlace, Option<Entry>)>, String>),
    Pinged(Result<(), String>),
    Past(Result<Vec<Entry>, String>),
    Surroundings(Result<Snapshot, String>),
    Opened(JobRef, Result<Entry, String>),
    Explained(JobRef, Result<Explanation, String>),
    Prepared(Operation, Vec<RowPlace>, Result<Vec<Entry>, String>),
    Performed(TaskStage),
}

#[derive(Debug, Clone)]
pub(super) enum DashEffect {
    Quit,
    Suspend,
    Redraw,
    Read,
    /// Read without the usual delay: the view does not match the request.
    ReadNow,
    ReadPast,
    ReadSurroundings,
    Ping,
    Find(Vec<RowPlace>),
    Open(JobRef),
    Explain(JobRef),
    Copy(String),
    Prepare(Operation, Vec<RowPlace>),
    Perform(DashTask),
}
