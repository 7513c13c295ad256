//! Atomic changes of several nodes.

use std::{fmt::Display, future::Future};

use zookeeper_client::{Acls, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use super::{nodes::Node, session::Session};
use crate::{
    board::{
        net::failure::RequestFailure,
        wire::sidecar::Sidecar,
        zookeeper::paths::{NodeKind, Paths},
    },
    job::JobKey,
};

pub(crate) const WRITING: &str = "write to";

#[derive(Debug)]
pub(crate) struct RefusedStep {
    pub(crate) kind: NodeKind,
    pub(crate) path: String,
    pub(crate) error: Error,
}

pub(crate) struct Transaction<'a> {
    session: &'a Session,
    acls: Acls<'a>,
    paths: &'a Paths,
    writer: MultiWriter<'a>,
    steps: Vec<(NodeKind, String)>,
    broken: Option<Error>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(session: &'a Session, acls: Acls<'a>, paths: &'a Paths) -> Self {
        Self {
            session,
            acls,
            paths,
            writer: session.client.new_multi_writer(),
            steps: Vec::new(),
            broken: None,
        }
    }

    pub(crate) fn create(&mut self, kind: NodeKind, name: impl Display, data: &[u8]) {
        self.create_as(kind, name, data, CreateMode::Persistent);
    }

    pub(crate) fn create_as(
        &mut self,
        kind: NodeKind,
        name: impl Display,
        data: &[u8],
        mode: CreateMode,
    ) {
        let (path, options) = (self.paths.node(kind, name), mode.with_acls(self.acls));
        let added = self.writer.add_create(&path, data, &options);
        self.added(kind, path, added);
    }

    pub(crate) fn set(&mut self, kind: NodeKind, name: impl Display, data: &[u8], version: i32) {
        let path = self.paths.node(kind, name);
        let added = self.writer.add_set_data(&path, data, Some(version));
        self.added(kind, path, added);
    }

    pub(crate) fn delete(&mut self, kind: NodeKind, name: impl Display, version: i32) {
        let path = self.paths.node(kind, name);
        let added = self.writer.add_delete(&path, Some(version));
        self.added(kind, path, added);
    }

    pub(crate) fn check(&mut self, kind: NodeKind, name: impl Display, version: i32) {
        let path = self.paths.node(kind, name);
        let added = self.writer.add_check_version(&path, version);
        self.added(kind, path, added);
    }

    /// Writes a sidecar if it is unchanged since the read; an unreadable one stays.
    pub(crate) fn put_side(&mut self, key: &JobKey, seen: &Option<Node>, wanted: Option<&Sidecar>) {
        let kind = NodeKind::Sidecar;
        match (seen, wanted) {
            (None, Some(side)) => self.create(kind, key, &side.write()),
            (Some(node), Some(side)) => {
                self.set(kind, key, &side.write_over(&node.data), node.stat.version);
            }
            // The same data with a new version: earlier readers notice the change.
            (Some(node), None) => self.set(kind, key, &node.data, node.stat.version),
            (None, None) => self.assert_absent(kind, key),
        }
    }

    pub(crate) fn assert_absent(&mut self, kind: NodeKind, name: impl Display) {
        self.create(kind, &name, b"");
        self.delete(kind, &name, 0);
    }

    fn added(&mut self, kind: NodeKind, path: String, added: Result<(), Error>) {
        if let Err(error) = added {
            self.broken.get_or_insert(error);
        }
        self.steps.push((kind, path));
    }

    pub(crate) fn commit(
        mut self,
    ) -> impl Future<Output = Result<Result<Vec<MultiWriteResult>, RefusedStep>, RequestFailure>>
    + Send
    + 'a {
        let (session, steps, broken) = (self.session, self.steps, self.broken);
        let commit = broken.is_none().then(|| self.writer.commit());
        async move {
            let refused = |at: usize, error| {
                let step = steps.get(at).cloned();
                let (kind, path) = step.unwrap_or((NodeKind::Job, String::new()));
                RefusedStep { kind, path, error }
            };
            let Some(commit) = commit else {
                return Ok(Err(refused(0, broken.unwrap_or(Error::ClientClosed))));
            };
            // The caller also decides about a denied history write.
            let is_history = |at: usize| matches!(steps.get(at), Some((NodeKind::History, _)));
            let commit = async {
                match commit.await {
                    Ok(results) => Ok(Ok(results)),
                    Err(MultiWriteError::OperationFailed { index, source })
                        if is_history(index) =>
                    {
                        Ok(Err(refused(index, source)))
                    }
                    Err(error) => Err(error),
                }
            };
            Ok(match session.ask(WRITING, commit).await? {
                Ok(answered) => answered,
                Err(MultiWriteError::OperationFailed { index, source }) => {
                    Err(refused(index, source))
                }
                Err(MultiWriteError::RequestFailed { source }) => Err(refused(0, source)),
            })
        }
    }
}
