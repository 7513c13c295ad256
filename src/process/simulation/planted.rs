//! Faults in the real code that a test plants: the simulation must find each.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    SettlesWithoutFence,
    ReleasesWithoutFence,
    AnyOwnerMayAct,
    GuardForgets,
    TellsTheGuardTooLate,
    StartsBesideLeftovers,
    CountsFromTheLastConfirmation,
    CountsFromTheAnswer,
    NoticesNoLateClaim,
    CountsFromTheRequests,
    SubscribesAfterListing,
    OperatorDoesNotCompare,
    ReadsTheClockOnce,
}

impl Planted {
    pub(crate) const ALL: [Self; 13] = [
        Self::SettlesWithoutFence,
        Self::ReleasesWithoutFence,
        Self::AnyOwnerMayAct,
        Self::GuardForgets,
        Self::TellsTheGuardTooLate,
        Self::StartsBesideLeftovers,
        Self::CountsFromTheLastConfirmation,
        Self::CountsFromTheAnswer,
        Self::NoticesNoLateClaim,
        Self::CountsFromTheRequests,
        Self::SubscribesAfterListing,
        Self::OperatorDoesNotCompare,
        Self::ReadsTheClockOnce,
    ];
}
