//! The scratch board of a test: its location, its signs of use, and its removal.

use std::{cell::RefCell, path::Path, process::Command, sync::Arc, time::Duration};

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use tokio::time;

use crate::{
    board::{
        BoardError,
        scratch::{Testable, made_on, new_name},
        url::BoardUrl,
    },
    commands::parts::under_claim::unique_process_name,
    context::Opener,
    diagnosis::has_died,
    exit::{CommandError, chain},
    job::{Conductor, ConductorReport, Owner},
    process::{group::process_start, host_name},
};

const CLEANING: Duration = Duration::from_secs(10);
const FAREWELL: Duration = Duration::from_secs(3);

/// How often the clean-up checks whether other threads are done.
const CLEANUP_PAUSE: Duration = Duration::from_millis(5);

/// The age at which an unused board counts as a leftover: a younger one may just have been created.
const YOUNG: TimeDelta = TimeDelta::seconds(60);

/// The longest file name to which SQLite can add its suffix.
const MAX_FILE_NAME_BYTES: usize = 255 - "-journal".len();

pub(in crate::commands) struct Scratch {
    pub(in crate::commands) url: BoardUrl,
    base: BoardUrl,
    opener: Opener,
    opened: RefCell<Vec<Arc<dyn Testable>>>,
    /// Each thread or process that may still use the board holds a clone.
    others: Arc<()>,
}

impl Scratch {
    pub(in crate::commands) fn new(base: BoardUrl, opener: Opener) -> Self {
        Self {
            url: base.sibling(&new_name(Utc::now())),
            base,
            opener,
            opened: RefCell::default(),
            others: Arc::default(),
        }
    }

    pub(super) fn require_short_name(&self) -> Result<(), CommandError> {
        let name = self
            .url
            .file()
            .and_then(Path::file_name)
            .unwrap_or_default();
        match name.len().saturating_sub(MAX_FILE_NAME_BYTES) {
            0 => Ok(()),
            over => Err(CommandError::usage(format!(
                "cannot test the board {}: the file name is {over} characters too long for a test \
                    board in the same directory",
                self.base
            ))
            .hint("test a board with a shorter name in the same directory: --board sqlite:PATH")),
        }
    }

    pub(in crate::commands) fn open(&self) -> Result<Arc<dyn Testable>, BoardError> {
        let board = self.opener.open(&self.url)?;
        self.opened.borrow_mut().push(Arc::clone(&board));
        Ok(board)
    }

    /// Opens the board for a user that closes the connection itself.
    pub(super) fn open_apart(&self) -> Result<Arc<dyn Testable>, BoardError> {
        self.opener.open(&self.url)
    }

    /// Returns a command of this program that uses the scratch board, and none of the user's settings.
    pub(in crate::commands) fn command(&self) -> Command {
        let mut command = Command::new("/proc/self/exe");
        let settings = std::env::vars_os().map(|(name, _)| name);
        for name in settings.filter(|it| it.to_string_lossy().starts_with("JOBBOARD_")) {
            command.env_remove(name);
        }
        if let Some(password) = self.opener.password() {
            command.env("JOBBOARD_PASSWORD", password.expose());
        }
        let url = self.url.to_string();
        command.args(["--config", "/dev/null", "--board", &url]);
        command
    }

    pub(super) fn other(&self) -> Arc<()> {
        Arc::clone(&self.others)
    }

    pub(super) fn user(&self) -> Conductor {
        let name = unique_process_name();
        let owner = Owner::from_stored(name.as_str());
        let report = ConductorReport {
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            process: process_start(),
            ..ConductorReport::default()
        };
        Conductor::of_this_process(name, host_name(), owner, report)
    }

    pub(super) async fn leftovers(
        &self,
        board: &dyn Testable,
    ) -> Result<(Vec<String>, Vec<String>), BoardError> {
        let (mut left, mut doubtful) = (Vec::new(), Vec::new());
        for name in board.scratches().await? {
            let other = self.opener.open(&self.base.sibling(&name))?;
            let users = other.conductors().await;
            other.close().await;
            let is_old = made_on(&name).is_none_or(|time| Utc::now() - time > YOUNG);
            match users {
                Ok(users) if users.is_empty() && !is_old => {}
                Ok(users) if users.iter().all(has_died) => left.push(name),
                Ok(_) => {}
                Err(error) => {
                    let why = chain(&error);
                    doubtful.push(format!("cannot check whether {name} is in use: {why}"));
                }
            }
        }
        Ok((left, doubtful))
    }

    /// Removes the unused scratch boards; returns their names, and the reason for each that remains.
    pub(super) async fn sweep(
        &self,
        board: &dyn Testable,
    ) -> Result<(Vec<String>, Vec<String>), BoardError> {
        let (left, mut failed) = self.leftovers(board).await?;
        let mut removed = Vec::new();
        for name in left {
            let other = self.opener.open(&self.base.sibling(&name))?;
            match other.erase().await {
                Ok(()) => removed.push(name),
                Err(error) => failed.push(format!("cannot remove {name}: {}", chain(&error))),
            }
            other.close().await;
        }
        Ok((removed, failed))
    }

    pub(in crate::commands) async fn clean_up(&self) -> Result<(), String> {
        let opened = self.opened.take();
        if opened.is_empty() {
            return Ok(());
        }
        let erased = async {
            let closed = join_all(opened.iter().map(|board| board.close()));
            // A server that does not answer gets no goodbye either.
            let _ = time::timeout(FAREWELL, closed).await;
            // A remaining user could write to the board again.
            while Arc::strong_count(&self.others) > 1 {
                time::sleep(CLEANUP_PAUSE).await;
            }
            let board = self.opener.open(&self.url)?;
            // Requests that were cut off may still arrive.
            let mut erased = board.erase().await;
            if erased.is_err() {
                erased = board.erase().await;
            }
            board.close().await;
            erased
        };
        match time::timeout(CLEANING, erased).await {
            Ok(erased) => erased.map_err(|error| chain(&error)),
            Err(_) => Err(format!("no answer within {}s", CLEANING.as_secs())),
        }
    }
}
