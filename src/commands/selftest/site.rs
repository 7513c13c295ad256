//! Where a board is tested: one of its own beside the board in use, how it is known to be in use, and how it goes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use chrono::{SubsecRound as _, TimeDelta, Utc};
use tokio::time;

use crate::{
    board::{
        BoardError,
        ground::{Ground, made_on, new_name},
        url::BoardUrl,
    },
    commands::parts::{liveness::has_died, under_claim::this_process},
    context::Opener,
    exit::chain,
    job::{Conductor, Owner, Told},
    process::living,
};

/// How long cleaning up may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether others are done with it.
const PAUSE: Duration = Duration::from_millis(5);

/// How old a board is that has nobody, before it counts as left behind: somebody may just have made it.
const YOUNG: TimeDelta = TimeDelta::seconds(60);

/// A board beside the one in use, which exists once somebody has written to it.
pub(super) struct Site {
    pub(super) url: BoardUrl,
    base: BoardUrl,
    opener: Opener,
    /// What was opened of it, to be closed.
    opened: Mutex<Vec<Arc<dyn Ground>>>,
    /// Has a clone for each thread or process that may still be at it.
    others: Arc<()>,
}

impl Site {
    pub(super) fn new(base: &BoardUrl, opener: Opener) -> Self {
        Self {
            url: base.beside(&new_name(Utc::now())),
            base: base.clone(),
            opener,
            opened: Mutex::default(),
            others: Arc::default(),
        }
    }

    /// Opens it once more, by a connection of its own.
    pub(super) fn open(&self) -> Result<Arc<dyn Ground>, BoardError> {
        let board = self.opener.open(&self.url)?;
        self.opened().push(Arc::clone(&board));
        Ok(board)
    }

    /// Returns what opens it elsewhere, for who does not close it; it is waited for until that is dropped.
    pub(super) fn opener(
        &self,
    ) -> impl Fn() -> Result<Arc<dyn Ground>, BoardError> + Send + 'static {
        let (opener, url, other) = (self.opener.clone(), self.url.clone(), self.other());
        move || {
            let _at_it = &other;
            opener.open(&url)
        }
    }

    /// Returns what another one holds for as long as it may be at it.
    pub(super) fn other(&self) -> Arc<()> {
        Arc::clone(&self.others)
    }

    fn opened(&self) -> std::sync::MutexGuard<'_, Vec<Arc<dyn Ground>>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns who is entered in its registry as long as it is in use.
    pub(super) fn user(&self) -> Result<Conductor, BoardError> {
        let name = this_process();
        Ok(Conductor {
            owner: Owner::from_stored(name.as_str()),
            name,
            host: rustix::system::uname().nodename().to_string_lossy().into(),
            pid: std::process::id(),
            since: Utc::now().trunc_subsecs(6),
            silence: None,
            told: Told {
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                process: living::this_process(),
                ..Told::default()
            },
        })
    }

    /// Returns the names of those beside the board that nobody uses any more.
    pub(super) async fn left(&self, board: &dyn Ground) -> Result<Vec<String>, BoardError> {
        let mut left = Vec::new();
        for name in board.throwaways().await? {
            let other = self.opener.open(&self.base.beside(&name))?;
            let users = other.conductors().await;
            other.close().await;
            let is_old = made_on(&name).is_none_or(|time| Utc::now() - time > YOUNG);
            let is_left = match users {
                Ok(users) if users.is_empty() => is_old,
                Ok(users) => users.iter().all(has_died),
                // Who was killed before there was a board has left a file without one.
                Err(BoardError::Denied { .. }) => false,
                Err(error) => is_old && !error.is_retryable(),
            };
            if is_left {
                left.push(name);
            }
        }
        Ok(left)
    }

    /// Removes those, and returns their names, and why some are still there.
    pub(super) async fn remove_left(
        &self,
        board: &dyn Ground,
    ) -> Result<(Vec<String>, Vec<String>), BoardError> {
        let (mut removed, mut failed) = (Vec::new(), Vec::new());
        for name in self.left(board).await? {
            let other = self.opener.open(&self.base.beside(&name))?;
            match other.erase().await {
                Ok(()) => removed.push(name),
                Err(error) => failed.push(format!("{name} is still there: {}", chain(&error))),
            }
            other.close().await;
        }
        Ok((removed, failed))
    }

    /// Removes it with all that is on it; says why it is still there.
    pub(super) async fn clean_up(&self) -> Result<(), String> {
        let opened = std::mem::take(&mut *self.opened());
        if opened.is_empty() {
            return Ok(());
        }
        let erased = async {
            for board in opened {
                board.close().await;
            }
            // Whoever is still at it could write to it once more.
            while Arc::strong_count(&self.others) > 1 {
                time::sleep(PAUSE).await;
            }
            let board = self.opener.open(&self.url).map_err(|error| chain(&error))?;
            // What was cut off on its way to a server may come in meanwhile.
            let mut erased = board.erase().await;
            if erased.is_err() {
                erased = board.erase().await;
            }
            board.close().await;
            erased.map_err(|error| chain(&error))
        };
        match time::timeout(PATIENCE, erased).await {
            Ok(erased) => erased,
            Err(_) => Err(format!("it took longer than {}s", PATIENCE.as_secs())),
        }
    }
}
