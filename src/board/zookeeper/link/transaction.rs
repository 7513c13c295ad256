//! Atomic changes of several nodes.

use std::future::Future;

use zookeeper_client::{Acls, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter};

use super::{nodes::Node, session::Session};
use crate::board::{net::failure::Failure, wire::sidecar::Sidecar};

/// For error messages.
pub(crate) const WRITING: &str = "write to";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepKind {
    Job,
    Lock,
    Sidecar,
    Past,
    Marker,
    Move,
    Trashed,
    /// A namesake that leaves the trash, with its sidecar.
    Namesake,
    Entity,
    Name,
}

#[derive(Debug)]
pub(crate) struct RefusedStep {
    pub(crate) step: StepKind,
    pub(crate) path: String,
    pub(crate) error: Error,
}

pub(crate) struct Transaction<'a> {
    session: &'a Session,
    acls: Acls<'a>,
    writer: MultiWriter<'a>,
    steps: Vec<(StepKind, String)>,
    /// A step that could not be encoded.
    broken: Option<Error>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(session: &'a Session, acls: Acls<'a>) -> Self {
        Self {
            session,
            acls,
            writer: session.client().new_multi_writer(),
            steps: Vec::new(),
            broken: None,
        }
    }

    pub(crate) fn create(&mut self, step: StepKind, path: String, data: &[u8], mode: CreateMode) {
        let options = mode.with_acls(self.acls);
        let added = self.writer.add_create(&path, data, &options);
        self.added(step, path, added);
    }

    pub(crate) fn set(&mut self, step: StepKind, path: String, data: &[u8], version: i32) {
        let added = self.writer.add_set_data(&path, data, Some(version));
        self.added(step, path, added);
    }

    pub(crate) fn delete(&mut self, step: StepKind, path: String, version: i32) {
        let added = self.writer.add_delete(&path, Some(version));
        self.added(step, path, added);
    }

    pub(crate) fn check(&mut self, step: StepKind, path: String, version: i32) {
        let added = self.writer.add_check_version(&path, version);
        self.added(step, path, added);
    }

    /// Writes a node if it is unchanged since the read; an unreadable one stays.
    pub(crate) fn put(
        &mut self,
        step: StepKind,
        path: String,
        seen: &Option<Node>,
        wanted: Option<&Sidecar>,
    ) {
        match (seen, wanted) {
            (None, Some(side)) => self.create(step, path, &side.write(), CreateMode::Persistent),
            (Some(node), Some(side)) => {
                self.set(step, path, &side.write_over(&node.data), node.stat.version);
            }
            // The same data with a new version: earlier readers notice the change.
            (Some(node), None) => self.set(step, path, &node.data, node.stat.version),
            (None, None) => self.assert_absent(step, path),
        }
    }

    pub(crate) fn assert_absent(&mut self, step: StepKind, path: String) {
        self.create(step, path.clone(), b"", CreateMode::Persistent);
        self.delete(step, path, 0);
    }

    fn added(&mut self, step: StepKind, path: String, added: Result<(), Error>) {
        if let Err(error) = added {
            self.broken.get_or_insert(error);
        }
        self.steps.push((step, path));
    }

    pub(crate) fn commit(
        mut self,
    ) -> impl Future<Output = Result<Result<Vec<MultiWriteResult>, RefusedStep>, Failure>> + Send + 'a
    {
        let (session, steps, broken) = (self.session, self.steps, self.broken);
        let commit = broken.is_none().then(|| self.writer.commit());
        async move {
            let refused = |at: usize, error| {
                let (step, path) = steps
                    .get(at)
                    .cloned()
                    .unwrap_or((StepKind::Job, String::new()));
                RefusedStep { step, path, error }
            };
            let Some(commit) = commit else {
                return Ok(Err(refused(0, broken.unwrap_or(Error::ClientClosed))));
            };
            // The caller also decides about a denied history write.
            let is_past = |at: usize| matches!(steps.get(at), Some((StepKind::Past, _)));
            let commit = async {
                match commit.await {
                    Ok(results) => Ok(Ok(results)),
                    Err(MultiWriteError::OperationFailed { index, source }) if is_past(index) => {
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
