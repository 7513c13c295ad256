//! Renews claims, all in one exchange, and notifies the holder of a lost claim. `process/lease_times.rs` has the times.

mod ledger;
#[cfg(test)]
mod tests;

use std::{io, pin::pin, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    sync::oneshot::{self, error::TryRecvError},
    task::JoinSet,
};

use self::ledger::Ledger;
use crate::{
    backoff::Backoff,
    board::{Board, BoardError},
    job::Claim,
    optional::or_never,
    process::{
        clock::{self, Boottime},
        group::ProcessGroup,
        guard::Guard,
        label::Label,
        lease_times::retry_after,
        part,
    },
};

pub(crate) const USUAL_LEASE: Duration = Duration::from_secs(30);

/// The shortest and the longest pause between failed renewals.
const RENEWAL_PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// Why a claim is no longer ours, or may be another client's at any moment.
#[derive(Debug, Error)]
pub(crate) enum Lost {
    #[error("the claim on the job was lost")]
    Refused {
        kill_at: Boottime,
        source: BoardError,
    },
    #[error("the claim on the job could not be renewed in time")]
    Expired {
        kill_at: Boottime,
        #[source]
        last: Option<Arc<BoardError>>,
    },
}

impl Lost {
    /// The board refuses the claim; a command under it is killed after this grace.
    pub(crate) fn refused(source: BoardError, grace: Duration) -> Self {
        let kill_at = Boottime::now() + grace;
        Self::Refused { kill_at, source }
    }

    pub(crate) fn kill_at(&self) -> Boottime {
        match self {
            Self::Refused { kill_at, .. } | Self::Expired { kill_at, .. } => *kill_at,
        }
    }
}

/// Renews the claims of one board. If dropped, it lets them all expire.
#[derive(Debug)]
pub(crate) struct Keeper {
    ledger: Arc<Ledger>,
    task: JoinSet<()>,
}

/// Why the board neither granted nor refused a claim, if it gave a reason.
type Unanswered = Option<Arc<BoardError>>;

impl Keeper {
    pub(crate) fn start(board: Arc<dyn Board>) -> Self {
        Self::start_reporting(board, |_| {})
    }

    /// Reports each request: the delay from when the first renewal was due to the answer, or `None` if the board did
    /// not grant or refuse each claim.
    pub(crate) fn start_reporting(
        board: Arc<dyn Board>,
        renewed: impl Fn(Option<Duration>) + Send + 'static,
    ) -> Self {
        let ledger = Arc::new(Ledger::of(&*board));
        let task = JoinSet::from_iter([part(keep(board, Closing(Arc::clone(&ledger)), renewed))]);
        Self { ledger, task }
    }

    /// Returns once nothing renews claims any more, which only a defect can cause.
    pub(crate) async fn broken(&mut self) {
        let _ = self.task.join_next().await;
    }

    /// Renews a claim that was requested at or after `asked`.
    pub(crate) fn hold(&self, claim: Claim, asked: Boottime) -> KeptLease {
        let (id, notice) = self.ledger.add(claim, asked);
        KeptLease {
            id,
            ledger: Arc::clone(&self.ledger),
            notice: Some(notice),
            loss: None,
        }
    }
}

/// A renewed claim. If dropped, it is renewed no more and expires unless settled.
#[derive(Debug)]
pub(crate) struct KeptLease {
    id: u64,
    ledger: Arc<Ledger>,
    /// `None` after the notice.
    notice: Option<oneshot::Receiver<Lost>>,
    /// A loss that was noticed, and not reported yet.
    loss: Option<Lost>,
}

impl KeptLease {
    pub(crate) fn announce(&self, guard: &Guard, label: Label) -> io::Result<()> {
        guard.expect(self.ledger.guarded_command(self.id, label))
    }

    /// Makes the guard end this group and its label if the claim is not renewed in time.
    pub(crate) fn protect(
        &self,
        guard: &Arc<Guard>,
        group: ProcessGroup,
        label: Label,
    ) -> io::Result<()> {
        guard.watch(group, self.ledger.guarded_command(self.id, label))?;
        self.ledger.protect(self.id, guard, group);
        Ok(())
    }

    /// Takes the loss while the command can still be ended before the deadline. Never returns after the loss was taken.
    ///
    /// It can be cancelled and awaited again.
    pub(crate) async fn lost(&mut self) -> Lost {
        if let Some(notice) = &mut self.notice {
            let lost = notice.await.ok();
            self.note_loss(lost);
        }
        or_never(self.loss.take().map(std::future::ready)).await
    }

    /// Takes the loss, once.
    pub(crate) fn lost_by_now(&mut self) -> Option<Lost> {
        self.look();
        self.loss.take()
    }

    /// Whether the claim may have expired: no renewal reached the board in time, or nothing renews it.
    ///
    /// The loss remains to be taken.
    pub(crate) fn has_expired(&mut self) -> bool {
        self.look();
        matches!(self.loss, Some(Lost::Expired { .. }))
    }

    /// Checks the clock itself: the keeper may have slept through the expiry, as we have.
    fn look(&mut self) {
        self.ledger.expire(None);
        match self.notice.as_mut().map(oneshot::Receiver::try_recv) {
            None | Some(Err(TryRecvError::Empty)) => {}
            Some(lost) => self.note_loss(lost.ok()),
        }
    }

    /// Without a keeper, nothing renews the claim, but the guard's limits still hold.
    fn note_loss(&mut self, lost: Option<Lost>) {
        let kill_at = Boottime::now();
        let unrenewed = Lost::Expired {
            kill_at,
            last: None,
        };
        (self.notice, self.loss) = (None, Some(lost.unwrap_or(unrenewed)));
    }
}

impl Drop for KeptLease {
    fn drop(&mut self) {
        self.ledger.remove(self.id);
    }
}

/// Notifies the holders when the keeper ends for any reason.
struct Closing(Arc<Ledger>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Renews all claims whenever one is due, so that they stay due together.
async fn keep(board: Arc<dyn Board>, closing: Closing, renewed: impl Fn(Option<Duration>)) {
    let ledger = &*closing.0;
    let mut last = None;
    let (mut backoff, mut not_before) =
        (Backoff::after_one(RENEWAL_PAUSES), Boottime::from_nanos(0));
    loop {
        ledger.expire(last.as_ref());
        let Some(due) = ledger.first_renewal() else {
            ledger.changed.notified().await;
            continue;
        };
        let moment = due.max(not_before);
        if !moment.is_past() {
            tokio::select! {
                biased;
                () = clock::sleep_until(moment) => {}
                () = ledger.some_loss() => {}
                () = ledger.changed.notified() => {}
            }
            continue;
        }
        let round = renew(&*board, ledger, last.as_ref()).await;
        renewed(round.is_ok().then(|| Boottime::now().since(due)));
        match round {
            Ok(()) => (last, backoff) = (None, Backoff::after_one(RENEWAL_PAUSES)),
            Err(error) => {
                last = error.or(last);
                not_before = Boottime::now() + backoff.pause();
            }
        }
    }
}

/// Asks the board once, and gives up claims that expire meanwhile. Fails unless the board grants or refuses each claim,
/// with the board's reason if it gave one.
async fn renew(
    board: &dyn Board,
    ledger: &Ledger,
    last: Option<&Arc<BoardError>>,
) -> Result<(), Unanswered> {
    let (ids, claims) = ledger.claims();
    let asked = Boottime::now();
    let shortest = claims.iter().map(|claim| claim.term).min();
    let patience = asked + retry_after(shortest.unwrap_or_default());
    let mut call = pin!(board.renew(&claims));
    let answer = loop {
        tokio::select! {
            biased;
            () = ledger.some_loss() => ledger.expire(last),
            () = ledger.changed.notified() => {}
            answer = &mut call => break answer,
            () = clock::sleep_until(patience) => return Err(None),
        }
    };
    match answer {
        Ok(answers) => {
            let asked = match planted!(CountsFromTheAnswer) {
                true => Boottime::now(),
                false => asked,
            };
            ledger.enter(&ids, answers, asked)
        }
        Err(error) => Err(Some(Arc::new(error))),
    }
}
