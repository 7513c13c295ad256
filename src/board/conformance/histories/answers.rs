//! Performs model acts on a board, and words its answers like the model's.

use super::*;

pub(super) fn decision(ending: Ending) -> Decision {
    let not_before = Utc::now() + LONG;
    match ending {
        Ending::Abandon => release(),
        Ending::Failed { is_delayed } => Decision::Abandon(Aftermath::Failed {
            failure: failure("it failed"),
            not_before: is_delayed.then_some(not_before),
        }),
        Ending::Postponed => Decision::Abandon(Aftermath::Postponed { not_before }),
        Ending::Interrupted => Decision::Abandon(Aftermath::Interrupted),
        Ending::Consume => Decision::Consume,
        Ending::ConsumeFailed => Decision::ConsumeFailed(failure("no use")),
        Ending::Trash { has_failed } => Decision::Trash(match has_failed {
            true => Aftermath::failed(failure("broken")),
            false => Aftermath::None,
        }),
        Ending::Spent => Decision::Spent(failure("too often")),
    }
}

pub(super) fn words<T>(answers: &[Result<T, BoardError>]) -> Vec<Answer> {
    answers.iter().map(word).collect()
}

pub(super) fn word<T>(answer: &Result<T, BoardError>) -> Answer {
    let whose = |owner: &Option<Owner>| owner.as_ref().map(ToString::to_string).unwrap_or_default();
    match answer {
        Ok(_) => "ok".to_owned(),
        Err(BoardError::NoSuchJob) => "no such job".to_owned(),
        Err(BoardError::AlreadyClaimed { owner }) => format!("claimed by {}", whose(owner)),
        Err(BoardError::NotClaimed) => "not claimed".to_owned(),
        Err(BoardError::NotOwner { owner, .. }) => format!("belongs to {}", whose(owner)),
        Err(BoardError::Delayed { .. }) => "delayed".to_owned(),
        Err(BoardError::NotDelayed) => "not delayed".to_owned(),
        Err(BoardError::Changed) => "changed".to_owned(),
        Err(BoardError::Exists { .. }) => "exists".to_owned(),
        Err(error) => format!("{error:?}"),
    }
}
