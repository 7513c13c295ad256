//! Settles a job under its claim although replies may be lost.

use tokio::time;

use crate::{
    board::{self, Board, BoardError, Settled, ext::the_answer},
    job::{Decision, Settlement},
    lease::KeptLease,
    worker::repeat::{PAUSE, until_answered},
};

/// The result of earlier requests for a settlement, inferred from a refusal after their replies were lost.
///
/// A settlement names its claim, so the board makes it at most once. No other change may be repeated like this.
pub(crate) enum Earlier {
    /// An earlier request has settled the job: the claim was ours until then.
    Settled,
    /// The claim may have expired before the board received a request.
    Unknown,
    /// The refusal stands: no earlier request settled the job.
    Refused,
}

impl Earlier {
    pub(crate) fn of(
        refusal: &BoardError,
        decision: &Decision,
        lease: Option<&mut KeptLease>,
    ) -> Self {
        // Consuming or trashing removes the job from the board. If the board still has the job, the claim most likely
        // expired and another client claimed the job. A job that was settled, then posted again or restored, gives the
        // same refusal.
        let may_be_settled = match decision {
            Decision::Abandon(_) => refusal.is_about_the_claim(),
            _ => matches!(refusal, BoardError::NoSuchJob),
        };
        if !may_be_settled {
            return Self::Refused;
        }
        match lease.is_some_and(KeptLease::has_expired) {
            true => Self::Unknown,
            false => Self::Settled,
        }
    }
}

/// Settles a job, and repeats the request if its reply is lost, for a few seconds. `lease` is the lease that renews
/// the claim, if any; then an unreachable board is asked again, too.
pub(crate) async fn settle_claim(
    board: &dyn Board,
    settlement: &Settlement,
    mut lease: Option<&mut KeptLease>,
) -> board::Result<Settled> {
    let request = async || {
        let answers = board.settle(std::slice::from_ref(settlement)).await?;
        the_answer(board, answers)
    };
    let may_be_done = |error: &BoardError| matches!(error, BoardError::Unknown { .. });
    let mut lost = match request().await {
        Err(error) if may_be_done(&error) || lease.is_some() && error.is_away() => error,
        answer => return answer,
    };
    time::sleep(PAUSE).await;
    let answer = until_answered(async || match request().await {
        Ok(settled) => Some(Some(Ok(settled))),
        Err(error) if error.is_away() => {
            if !may_be_done(&lost) {
                lost = error;
            }
            None
        }
        Err(error) if !may_be_done(&lost) => Some(Some(Err(error))),
        // Such an answer says nothing about the first request.
        Err(error) if error.is_about_the_board() => Some(None),
        Err(error) => Some(
            match Earlier::of(&error, &settlement.decision, lease.as_deref_mut()) {
                Earlier::Settled => Some(Ok(Settled::default())),
                Earlier::Unknown => None,
                Earlier::Refused => Some(Err(error)),
            },
        ),
    });
    answer.await.flatten().unwrap_or(Err(lost))
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{
        board::testing::scripted::Scripted,
        job::{Authority, Claim, JobKey, Owner},
        lease::Keeper,
        process::{clock::Boottime, simulation::Machine},
    };

    fn lost() -> board::Result<Settled> {
        let (board, source) = ("scripted".to_owned(), "no reply".into());
        Err(BoardError::Unknown { board, source })
    }

    fn denied() -> board::Result<Settled> {
        let (board, source) = ("scripted".to_owned(), "a password is required".into());
        Err(BoardError::Denied { board, source })
    }

    async fn settle(answers: Vec<board::Result<Settled>>) -> board::Result<Settled> {
        settle_under(None, answers).await
    }

    async fn settle_under(
        lease: Option<&mut KeptLease>,
        answers: Vec<board::Result<Settled>>,
    ) -> board::Result<Settled> {
        let board = Scripted::settling(answers);
        let authority = Authority::Owner(Owner::new("ada").unwrap());
        let settlement = Settlement::of(JobKey::new("one"), Decision::Consume, authority);
        settle_claim(&board, &settlement, lease).await
    }

    #[tokio::test]
    async fn a_lost_reply_stays_unknown_until_the_board_answers_about_the_job() {
        let unknown = |end| matches!(end, Err(BoardError::Unknown { .. }));
        assert!(unknown(settle(vec![lost(), denied()]).await));
        assert!(!unknown(settle(vec![denied()]).await));
        let gone = || Err(BoardError::NoSuchJob);
        assert!(settle(vec![lost(), lost(), gone()]).await.is_ok());
        assert!(settle(vec![gone()]).await.is_err());
        let claimed_by_other = settle(vec![lost(), Err(BoardError::Changed)]).await;
        assert!(matches!(claimed_by_other, Err(BoardError::Changed)));
    }

    #[tokio::test(start_paused = true)]
    async fn under_a_lease_an_unreachable_board_is_asked_again() {
        let (_, _scope) = Machine::start(0, None, false);
        let keeper = Keeper::start(Arc::new(Scripted::renewing(true, |_| None)));
        let claim = Claim {
            key: JobKey::new("one"),
            owner: Owner::new("ada").unwrap(),
            fence: None,
            term: Duration::from_secs(30),
        };
        let mut lease = keeper.hold(claim, Boottime::now());
        let away = || Err(BoardError::unreachable("scripted", "it is away"));
        let settled = settle_under(Some(&mut lease), vec![away(), Ok(Settled::default())]).await;
        assert!(settled.is_ok());
        // No request was sent, so another client has ended the job.
        let gone = vec![away(), Err(BoardError::NoSuchJob)];
        let ended = settle_under(Some(&mut lease), gone).await;
        assert!(matches!(ended, Err(BoardError::NoSuchJob)));
        assert!(settle(vec![away(), Ok(Settled::default())]).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_gone_job_shows_an_earlier_settlement_only_under_a_living_lease() {
        let (_, _scope) = Machine::start(0, None, false);
        let term = Duration::from_secs(30);
        time::sleep(2 * term).await;
        let keeper = Keeper::start(Arc::new(Scripted::renewing(true, |_| None)));
        let earlier = |asked, refusal: &BoardError| {
            let claim = Claim {
                key: JobKey::new("one"),
                owner: Owner::new("ada").unwrap(),
                fence: None,
                term,
            };
            let mut lease = keeper.hold(claim, asked);
            Earlier::of(refusal, &Decision::Consume, Some(&mut lease))
        };
        let (gone, now) = (BoardError::NoSuchJob, Boottime::now());
        assert!(matches!(earlier(now, &gone), Earlier::Settled));
        assert!(matches!(earlier(now - term, &gone), Earlier::Unknown));
        let claimed_by_other = earlier(now, &BoardError::Changed);
        assert!(matches!(claimed_by_other, Earlier::Refused));
    }
}
