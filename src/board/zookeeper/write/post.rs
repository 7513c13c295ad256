//! Posting jobs.

use zookeeper_client::{CreateMode, Error, MultiWriteResult};

use super::{
    claim::mode,
    numbered::{Encoded, side_of},
};
use crate::{
    board::{
        BoardError, JobRef, Posted, Result,
        net::failure::{RequestFailure, perhaps_posted, refuse_rest},
        wire::json,
        zookeeper::{
            TRIES,
            board_session::BoardSession,
            link::transaction::WRITING,
            paths::{JOB, NodeKind, number_of},
            read::find::find,
        },
    },
    job::{Claimant, Draft, Entry, JobKey, Location},
};

/// Maximum jobs and bytes of a transaction: the server takes 1 MiB.
const BATCH: (usize, usize) = (1000, 900_000);

/// The largest posting that surely fits a transaction.
pub(crate) const MAX_POSTING_BYTES: usize = BATCH.1 - 10 * OVERHEAD;

/// Bytes of a job in a transaction beyond its posting, paths and owner.
const OVERHEAD: usize = 400;

impl BoardSession<'_> {
    pub(crate) async fn post(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        if let Some(by) = claimant {
            mode(by.term)?;
        }
        let encode = |draft: &Draft| match draft.with_former() {
            Some((_, former)) if !former.raw.is_empty() => former.raw.clone(),
            _ => json::encode(draft),
        };
        let encoded: Vec<Encoded<'_>> = drafts.iter().map(|one| (one, encode(one))).collect();
        let owner = claimant.map_or(0, |by| json::lock(&by.owner).len());
        let overhead = OVERHEAD + self.paths.length() + 4 * self.session.depth() + owner;
        let mut answers: Vec<Result<Posted>> = Vec::with_capacity(drafts.len());
        while answers.len() < drafts.len() {
            let rest = &encoded[answers.len()..];
            if self.size(&rest[0], overhead) > BATCH.1 {
                answers.push(Err(self.too_large(rest[0].1.len())));
                continue;
            }
            // A number from the server is not known in advance. A post that writes the job's location in the same
            // step takes its own number.
            let takes_number = |draft: &Draft| {
                draft.chosen || claimant.is_some() || draft.location() == Location::Trash
            };
            let is_numbered = takes_number(rest[0].0);
            let mut bytes = 0;
            let batch = rest.iter().take(BATCH.0).take_while(|one| {
                bytes += self.size(one, overhead);
                bytes <= BATCH.1 && takes_number(one.0) == is_numbered
            });
            let batch = &rest[..batch.count()];
            let posted = match is_numbered {
                true => self.post_numbered(batch, claimant).await,
                false => self.post_in_sequence(batch).await,
            };
            match posted {
                Ok(posted) => answers.extend(posted),
                Err(RequestFailure::NotSent(error)) => {
                    refuse_rest(&mut answers, drafts.len(), self.client.name(), error)?;
                }
                Err(RequestFailure::Lost(error)) => {
                    answers.extend(self.look_up(batch, claimant, &error).await);
                }
            }
        }
        Ok(answers)
    }

    async fn post_in_sequence(
        &self,
        batch: &[Encoded<'_>],
    ) -> Result<Vec<Result<Posted>>, RequestFailure> {
        for _ in 0..TRIES {
            let mut transaction = self.transaction();
            for (_, posting) in batch {
                let mode = CreateMode::PersistentSequential;
                transaction.create_as(NodeKind::Job, JOB, posting, mode);
            }
            match transaction.commit().await? {
                Ok(created) => return Ok(created.iter().map(|one| Ok(self.posted(one))).collect()),
                Err(refused) if refused.error == Error::NoNode => self.make_board().await?,
                Err(refused) => return Err(self.refusal(&refused).into()),
            }
        }
        Err(BoardError::Changed.into())
    }

    fn posted(&self, created: &MultiWriteResult) -> Posted {
        let path = match created {
            MultiWriteResult::Create { path, .. } => path.as_str(),
            _ => "",
        };
        let name = path.rsplit('/').next().unwrap_or_default();
        let key = JobKey::new(name);
        Posted {
            sequence: number_of(&key).unwrap_or_default(),
            fence: None,
            key,
        }
    }

    /// A job posted with a claim is found only if the claim is.
    async fn look_up(
        &self,
        batch: &[Encoded<'_>],
        claimant: Option<&Claimant>,
        error: &BoardError,
    ) -> Vec<Result<Posted>> {
        let wanted = (batch.iter()).map(|(draft, _)| JobRef::Uuid(draft.uuid.to_string()));
        let wanted: Vec<_> = wanted.collect();
        let found = async {
            // The session may have ended.
            let board = self.root.reading().await?;
            find(&board, Location::Board, &wanted).await
        };
        let none = |_| vec![Vec::new(); batch.len()];
        let found = found.await.unwrap_or_else(none);
        let answers = batch.iter().zip(found).map(|((draft, _), found)| {
            let job = found.first().and_then(Entry::job);
            let fence = job.and_then(|job| {
                let holding = job.holding.as_ref()?;
                let is_ours = claimant.is_some_and(|by| holding.owner.as_ref() == Some(&by.owner));
                holding.fence.clone().filter(|_| is_ours)
            });
            let is_whole = claimant.is_none() || fence.is_some();
            match job {
                // A job with a chosen uuid may have been there before.
                Some(job) if !draft.chosen && is_whole => Ok(Posted {
                    key: job.key.clone(),
                    sequence: job.sequence.unwrap_or_default(),
                    fence,
                }),
                _ => Err(perhaps_posted(self.client.name(), draft, error)),
            }
        });
        answers.collect()
    }

    fn size(&self, (draft, posting): &Encoded<'_>, overhead: usize) -> usize {
        let side = draft.former.as_deref().map(|it| side_of(it).write().len());
        posting.len() + overhead + side.map_or(0, |side| side + self.paths.length())
    }

    pub(crate) fn too_large(&self, size: usize) -> BoardError {
        let source =
            format!("the posting has {size} bytes, but a ZooKeeper board accepts less than 900 kB");
        BoardError::failed(WRITING, self.client.name(), source)
    }
}
