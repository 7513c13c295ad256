//! Choosing the most informative of several servers' problems.

use crate::board::net::cause::{BoardErrorKind, ServerCause, ServerProblem};

/// A server's refusal outweighs another server's absence.
pub(crate) fn most_informative(mut problems: Vec<ServerProblem>) -> Option<ServerProblem> {
    let heaviest = problems.iter().map(weight).max()?;
    let place = problems.iter().position(|one| weight(one) == heaviest)?;
    if problems.len() == 1 || heaviest > 0 {
        return Some(problems.swap_remove(place));
    }
    let each: Vec<_> = problems.iter().map(ServerProblem::to_string).collect();
    let cause = ServerCause::Unreachable(each.join(", "));
    Some(ServerProblem::new("the ensemble", cause))
}

/// How much a cause reveals about servers that should all be alike.
fn weight(problem: &ServerProblem) -> u8 {
    match (problem.cause(), problem.cause().kind()) {
        (_, BoardErrorKind::Denied | BoardErrorKind::Failed) => 2,
        (ServerCause::NoSession, _) => 1,
        _ => 0,
    }
}
