//! The possible steps and their results.
//!
//! Requests may arrive late and answers never. Any process may be stopped or killed between two steps.

use super::world::{ModelConfig, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Tick,
    SessionEnds,
    Asks(usize),
    Serves(usize),
    ServesRenewal(usize),
    ServesLate(usize),
    Hears(usize),
    HearsOfRenewal(usize),
    TellsGuard(usize),
    Starts(usize),
    CommandEnds(usize),
    Renews(usize),
    Settles(usize),
    GivesBack(usize),
    NoticesClaim(usize),
    GivesUp(usize),
    GuardKills(usize),
    ReplacesGuard(usize),
    OperatorForces,
    OperatorResumes,
    Continues(usize),
    GuardContinues(usize),
    IsRestarted(usize),
    // Faults from here on.
    OperatorLooks,
    OperatorPauses,
    CallIsLost(usize),
    RenewalIsLost(usize),
    IsStopped(usize),
    GuardIsStopped(usize),
    BothAreStopped(usize),
    IsKilled(usize),
    GuardIsKilled(usize),
    BothAreKilled(usize),
}

impl Step {
    pub(super) fn is_fault(self) -> bool {
        matches!(
            self,
            Self::OperatorLooks
                | Self::OperatorPauses
                | Self::CallIsLost(_)
                | Self::RenewalIsLost(_)
                | Self::IsStopped(_)
                | Self::GuardIsStopped(_)
                | Self::BothAreStopped(_)
                | Self::IsKilled(_)
                | Self::GuardIsKilled(_)
                | Self::BothAreKilled(_)
        )
    }
}

/// The steps of each conductor, by its number.
const OF_EACH: [fn(usize) -> Step; 23] = [
    Step::Asks,
    Step::Serves,
    Step::ServesRenewal,
    Step::ServesLate,
    Step::Hears,
    Step::HearsOfRenewal,
    Step::TellsGuard,
    Step::Starts,
    Step::CommandEnds,
    Step::Renews,
    Step::Settles,
    Step::GivesBack,
    Step::NoticesClaim,
    Step::GivesUp,
    Step::GuardKills,
    Step::ReplacesGuard,
    Step::Continues,
    Step::GuardContinues,
    Step::IsRestarted,
    Step::CallIsLost,
    Step::RenewalIsLost,
    Step::IsStopped,
    Step::IsKilled,
];

impl World {
    pub(super) fn steps(&self, config: &ModelConfig) -> Vec<(Step, Self)> {
        let alone = [
            Step::Tick,
            Step::SessionEnds,
            Step::OperatorForces,
            Step::OperatorResumes,
            Step::OperatorLooks,
            Step::OperatorPauses,
        ];
        let of_each = (0..2).flat_map(|i| OF_EACH.map(|step| step(i)));
        let with_guards = (0..2).flat_map(|i| {
            [
                Step::GuardIsStopped(i),
                Step::GuardIsKilled(i),
                Step::BothAreStopped(i),
                Step::BothAreKilled(i),
            ]
        });
        let with_guards = with_guards.filter(|_| config.is_one_machine);
        let steps = alone.into_iter().chain(of_each).chain(with_guards);
        steps
            .filter_map(|step| Some((step, self.after(step, config)?)))
            .collect()
    }

    pub(super) fn after(&self, step: Step, config: &ModelConfig) -> Option<Self> {
        let mut next = *self;
        (!self.is_ended).then_some(())?;
        if step.is_fault() {
            (!self.comes_too_soon(step, config)).then_some(())?;
            next.faults = next.faults.checked_sub(1)?;
        }
        next.take(step, config)?;
        next.spare_the_vain(config);
        next.renumber_fences();
        Some(next)
    }

    /// Whether a step needs no fault and fixes none.
    pub(super) fn is_ordinary(&self, step: Step) -> bool {
        match step {
            Step::Continues(_) | Step::GuardContinues(_) | Step::IsRestarted(_) => false,
            // A conductor that can keep its session does so, even for an unknown claim.
            Step::SessionEnds => self.hold.is_none_or(|it| !self.is_up(it.owner)),
            _ => !step.is_fault(),
        }
    }

    /// Whether a second fault follows before any process could react.
    ///
    /// A conductor may be stopped between its last check of the claim and the start of the command, for longer than
    /// the claim lasts. It starts the command anyway. If it is hit again before it notices, with its guard out of
    /// action, the command continues. The successor's scan came too early, and nothing can rule that out.
    pub(super) fn comes_too_soon(&self, step: Step, config: &ModelConfig) -> bool {
        let is_overdue = |i: usize| {
            let it = &self.conductors[i];
            it.command.is_some() && (it.is_command_due(config) == Some(true) || it.is_over(config))
        };
        match step {
            Step::IsStopped(i)
            | Step::GuardIsStopped(i)
            | Step::BothAreStopped(i)
            | Step::IsKilled(i)
            | Step::GuardIsKilled(i)
            | Step::BothAreKilled(i) => config.is_one_machine && is_overdue(i),
            _ => false,
        }
    }
}
