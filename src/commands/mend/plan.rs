//! The steps that bring a load balancer back, by verdict: those that change the least come first.

use crate::{
    diagnosis::{JudgedBalancer, Verdict},
    exit::CommandError,
    suggest::{Hint, Suggestion},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Release,
    Restore,
    Repost,
    SetError(String),
    /// A command of the operator for a shell, as shown.
    FailOver(String),
    Delete(String),
    Wait,
}

impl Step {
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Restore => "restore",
            Self::Repost => "repost",
            Self::SetError(_) => "set-error",
            Self::FailOver(_) => "fail-over",
            Self::Delete(_) => "delete",
            Self::Wait => "wait",
        }
    }
}

/// Repeats the user's deletion.
pub(super) const DELETE: &str = "openstack loadbalancer delete --cascade";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RepairPlan {
    pub(super) steps: Vec<Step>,
    /// A step that `mend` leaves to the operator.
    pub(super) advice: Option<&'static str>,
}

impl RepairPlan {
    pub(super) fn of(judged: &JudgedBalancer, failover: &str) -> Self {
        let balancer = &judged.balancer;
        let id = Suggestion::default().with([&balancer.id]);
        let command = |text: &str| format!("{text} {id}");
        let again = || match balancer.is_to_be_deleted() {
            true => Step::Delete(command(DELETE)),
            false => Step::FailOver(command(failover)),
        };
        let start_over = || match balancer.to_error() {
            Some(statement) => vec![Step::SetError(statement), again(), Step::Wait],
            None => Vec::new(),
        };
        let (steps, advice) = match judged.verdict {
            Verdict::Settled => (Vec::new(), None),
            Verdict::InProgress | Verdict::Waiting => (vec![Step::Wait], None),
            Verdict::WorkerDead if judged.is_held_forever() => {
                (vec![Step::Release, Step::Wait], None)
            }
            Verdict::WorkerDead => {
                let advice = "the claim ends soon; then the next worker resumes the flow";
                (vec![Step::Wait], Some(advice))
            }
            Verdict::LostJob if judged.origin.is_some() => (vec![Step::Repost, Step::Wait], None),
            Verdict::Trashed if judged.flow.is_some() => (vec![Step::Restore, Step::Wait], None),
            Verdict::LostJob | Verdict::Trashed | Verdict::NeverPosted | Verdict::Inconsistent => {
                (start_over(), None)
            }
            Verdict::Failed => (vec![again(), Step::Wait], None),
            Verdict::Unclear => {
                let advice = "look first: `jobboard explain --lb ID` explains its jobs, and `jobboard doctor` \
                              lists everything that cannot be read";
                (Vec::new(), Some(advice))
            }
        };
        Self { steps, advice }
    }

    /// Returns why nothing may be changed.
    pub(super) fn refusal(&self, judged: &JudgedBalancer) -> Option<anyhow::Error> {
        let id = &judged.balancer.id;
        let hint = match judged.verdict {
            Verdict::InProgress => {
                let wait = "`jobboard watch --lb {}` shows its events; repeat the command later";
                Hint::new(wait, [&[id]])
            }
            Verdict::Unclear => Hint::new(
                "`jobboard explain --lb {}` explains its jobs; `jobboard doctor` lists everything that cannot be read",
                [&[id]],
            ),
            _ => return None,
        };
        let message = format!("cannot mend load balancer {id}: {}", judged.why);
        Some(CommandError::refused(message).hint(hint).into())
    }
}
