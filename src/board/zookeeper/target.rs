//! Requests about a board, and the session that sends them.

use std::{slice::from_ref, sync::Arc};

use zookeeper_client::{CreateMode, Error};

use super::{
    link::{
        Client,
        nodes::READING,
        session::Session,
        transaction::{Refused, Transaction, WRITING},
    },
    paths::Paths,
    read::{look, record::Record},
};
use crate::{
    board::{
        BoardError, Result,
        net::failure::{self, Failure},
    },
    job::{JobKey, Shelf},
};

#[derive(Clone)]
pub(super) struct Root {
    pub(super) client: Arc<Client>,
    pub(super) paths: Paths,
    /// How many jobs the history keeps.
    pub(super) history: u32,
}

impl Root {
    pub(super) fn target<'a>(&'a self, session: &'a Session) -> Target<'a> {
        Target {
            client: &self.client,
            session,
            paths: &self.paths,
            history: self.history,
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) client: &'a Client,
    pub(super) session: &'a Session,
    pub(super) paths: &'a Paths,
    pub(super) history: u32,
}

impl<'a> Target<'a> {
    pub(super) fn transaction(self) -> Transaction<'a> {
        Transaction::new(self.session, self.client.acls())
    }

    pub(super) async fn record(self, shelf: Shelf, key: &JobKey) -> Result<Option<Record>> {
        let found = look::records(self.session, self.paths, shelf, from_ref(key));
        Ok(found.await?.into_iter().flatten().next())
    }

    /// Returns an existing job if all nodes that matter are readable.
    pub(super) fn require(self, found: Option<&Record>) -> Result<&Record> {
        let record = found.ok_or(BoardError::NoSuchJob)?;
        if !record.is_readable() {
            return Err(self.session.refusal(READING, &Error::NoAuth));
        }
        Ok(record)
    }

    /// Creates the board as TaskFlow does, for its readers.
    pub(super) async fn make_board(self) -> Result<()> {
        self.session.ensure_chroot(WRITING).await?;
        self.make_folder(self.paths.board()).await?;
        self.make_folder(&self.paths.folder(Shelf::Trash)).await
    }

    pub(super) async fn make_folder(self, path: &str) -> Result<()> {
        let options = CreateMode::Persistent.with_acls(self.client.acls());
        let made = self.session.client().mkdir(path, &options);
        match self.session.ask(WRITING, made).await? {
            Ok(()) | Err(Error::NodeExists) => Ok(()),
            Err(error) => Err(self.session.refusal(WRITING, &error)),
        }
    }

    /// Converts a failure into an error that states whether the request may have taken effect.
    pub(super) fn unknown(self, failure: Failure) -> BoardError {
        match failure {
            Failure::NotSent(error) => error,
            Failure::Lost(error) => failure::unknown(self.client.name(), error),
        }
    }

    pub(super) fn refusal(self, refused: Refused) -> BoardError {
        self.session.refusal(WRITING, &refused.error)
    }
}
