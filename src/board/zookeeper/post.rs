//! Posting jobs.

use futures_util::future::join_all;
use zookeeper_client::{CreateMode, Error, MultiWriteResult};

use super::{
    Target,
    claim::mode,
    find::find,
    nodes::READING,
    paths::number_of,
    transaction::{Step, WRITING},
};
use crate::{
    board::{
        BoardError, JobRef, Posted, Result,
        failure::{Failure, not_done, perhaps_posted},
        wire::json,
    },
    job::{Claimant, Draft, Entry, JobKey, Shelf},
};

/// A transaction has no more jobs than this, and hardly more bytes: the server takes 1 MiB.
const BATCH: (usize, usize) = (1000, 900_000);

/// Jobs that the server numbers go in transactions of so many, several of which are on their way.
///
/// While it applies one it prepares the next. Together they are a batch, and wait no longer than it.
const SHARE: usize = 250;

/// What a job takes in a transaction beyond its posting, its paths and its owner.
const OVERHEAD: usize = 400;

/// A draft and what its node is going to hold.
pub(super) type Encoded<'a> = (&'a Draft, Vec<u8>);

/// Jobs that went in one transaction, and what became of them.
type Outcome<'a> = (&'a [Encoded<'a>], Result<Vec<Result<Posted>>, Undone>);

impl Target<'_> {
    pub(super) async fn post(
        self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        if let Some(by) = claimant {
            mode(by.term)?;
        }
        let encoded: Vec<Encoded<'_>> = drafts.iter().map(|one| (one, json::encode(one))).collect();
        let owner = claimant.map_or(0, |by| json::lock(&by.owner).len());
        let overhead = OVERHEAD + self.paths.length() + 4 * self.session.depth() + owner;
        let mut answers: Vec<Result<Posted>> = Vec::with_capacity(drafts.len());
        while answers.len() < drafts.len() {
            let rest = &encoded[answers.len()..];
            if rest[0].1.len() + overhead > BATCH.1 {
                answers.push(Err(self.too_large(rest[0].1.len())));
                continue;
            }
            // A number that the server gives is not known in advance. Who has to say where the
            // job is, in the same step in which it is posted, takes a number instead.
            let takes_number = |draft: &Draft| draft.chosen || claimant.is_some();
            let is_numbered = takes_number(rest[0].0);
            let batch = &rest[..batch(rest, overhead, |draft| takes_number(draft) == is_numbered)];
            let outcomes = match is_numbered {
                true => vec![(batch, self.post_numbered(batch, claimant).await)],
                false => self.post_in_sequence(batch).await,
            };
            let is_nothing_done = answers.is_empty() && outcomes.iter().all(is_refused);
            let (some, refusal) = self.answers(outcomes, claimant).await;
            answers.extend(some);
            match refusal {
                Some(error) if is_nothing_done => return Err(error),
                Some(error) => {
                    let missing = drafts.len() - answers.len();
                    answers.extend((0..missing).map(|_| Err(not_done(self.link.name(), &error))));
                }
                None => {}
            }
        }
        Ok(answers)
    }

    /// Posts jobs under the next numbers, as the server hands them out.
    async fn post_in_sequence<'b>(self, batch: &'b [Encoded<'b>]) -> Vec<Outcome<'b>> {
        if batch.len() > SHARE
            && let Err(error) = self.find_board().await
        {
            return vec![(batch, Err(error.into()))];
        }
        let shares = batch.chunks(SHARE);
        join_all(shares.map(async |share| (share, self.post_share(share).await))).await
    }

    /// Makes sure that there is a board.
    ///
    /// Where somebody else makes it meanwhile, the first of several transactions would come to
    /// nothing and the next would not: the jobs were not in their order.
    async fn find_board(self) -> Result<()> {
        match self.next_number().await? {
            Some(_) => Ok(()),
            None => self.make_board().await,
        }
    }

    async fn post_share(self, share: &[Encoded<'_>]) -> Result<Vec<Result<Posted>>, Undone> {
        for _ in 0..super::TRIES {
            let mut transaction = self.transaction();
            for (_, posting) in share {
                let path = self.paths.new_job();
                transaction.create(Step::Job, path, posting, CreateMode::PersistentSequential);
            }
            match transaction.commit().await? {
                Ok(created) => return Ok(created.iter().map(|one| Ok(self.posted(one))).collect()),
                Err(refused) if refused.error == Error::NoNode => self.make_board().await?,
                Err(refused) => return Err(self.refusal(refused).into()),
            }
        }
        Err(BoardError::Changed.into())
    }

    /// Says of each job what became of it, and why some were refused; the lost are looked up at once.
    async fn answers(
        self,
        outcomes: Vec<Outcome<'_>>,
        claimant: Option<&Claimant>,
    ) -> (Vec<Result<Posted>>, Option<BoardError>) {
        let (mut lost, mut why) = (Vec::new(), None);
        for (share, outcome) in &outcomes {
            if let Err(Undone::Unknown(error)) = outcome {
                lost.extend(share.iter().map(|(draft, _)| *draft));
                why.get_or_insert(error);
            }
        }
        let mut found = match why {
            Some(error) => self.look_up(&lost, claimant, error).await.into_iter(),
            None => Vec::new().into_iter(),
        };
        let (mut answers, mut refusal) = (Vec::new(), None);
        for (share, outcome) in outcomes {
            match outcome {
                Ok(posted) => answers.extend(posted),
                Err(Undone::Unknown(_)) => answers.extend(found.by_ref().take(share.len())),
                Err(Undone::Not(error)) => {
                    answers.extend(
                        share
                            .iter()
                            .map(|_| Err(not_done(self.link.name(), &error))),
                    );
                    refusal.get_or_insert(error);
                }
            }
        }
        (answers, refusal)
    }

    fn posted(self, created: &MultiWriteResult) -> Posted {
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

    /// Looks once for jobs whose post was not answered.
    ///
    /// One that was to be posted already claimed is only found if the claim is.
    async fn look_up(
        self,
        drafts: &[&Draft],
        claimant: Option<&Claimant>,
        error: &BoardError,
    ) -> Vec<Result<Posted>> {
        let wanted: Vec<_> = drafts
            .iter()
            .map(|draft| JobRef::Uuid(draft.uuid.to_string()))
            .collect();
        let found = async {
            let session = self.link.session(READING).await?;
            find(&session, self.paths, Shelf::Board, &wanted).await
        };
        let found = found
            .await
            .unwrap_or_else(|_| vec![Vec::new(); drafts.len()]);
        let answers = drafts.iter().zip(found).map(|(draft, found)| {
            let job = found.first().and_then(Entry::job);
            let fence = job.and_then(|job| {
                let holding = job.holding.as_ref()?;
                let is_ours = claimant.is_some_and(|by| holding.owner.as_ref() == Some(&by.owner));
                holding.fence.clone().filter(|_| is_ours)
            });
            let is_whole = claimant.is_none() || fence.is_some();
            match job {
                // One that others may have chosen as well may have been there before.
                Some(job) if !draft.chosen && is_whole => Ok(Posted {
                    key: job.key.clone(),
                    sequence: job.sequence.unwrap_or_default(),
                    fence,
                }),
                _ => Err(perhaps_posted(self.link.name(), draft, error)),
            }
        });
        answers.collect()
    }

    fn too_large(self, size: usize) -> BoardError {
        let source = format!("the posting takes {size} bytes, and a node of ZooKeeper hardly 1 MB");
        BoardError::Failed {
            doing: WRITING,
            board: self.link.name().to_owned(),
            source: source.into(),
        }
    }
}

/// Says why there are no answers, by what that means for the jobs.
pub(super) enum Undone {
    /// Nothing has happened.
    Not(BoardError),
    /// It may have happened.
    Unknown(BoardError),
}

impl From<BoardError> for Undone {
    fn from(error: BoardError) -> Self {
        Self::Not(error)
    }
}

impl From<Failure> for Undone {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NotSent(error) => Self::Not(error),
            Failure::Lost(error) => Self::Unknown(error),
        }
    }
}

fn is_refused((_, outcome): &Outcome<'_>) -> bool {
    matches!(outcome, Err(Undone::Not(_)))
}

/// Returns how many jobs the next transaction may have, all of a kind.
fn batch(rest: &[Encoded<'_>], overhead: usize, is_of_kind: impl Fn(&Draft) -> bool) -> usize {
    let mut bytes = 0;
    rest.iter()
        .take(BATCH.0)
        .take_while(|(draft, posting)| {
            bytes += posting.len() + overhead;
            bytes <= BATCH.1 && is_of_kind(draft)
        })
        .count()
}
