//! What all parts of one conductor share.

use std::sync::{Arc, atomic::AtomicBool};

use super::{
    TimeLimit, account::Account, attempt::capture::Destination, in_flight::InFlight,
    passed_over::PassedOver, policy::Policy, progress::Reporter,
};
use crate::{
    job::Owner,
    process::{
        guard::{Guard, LeftOver},
        spawn::Spawner,
    },
    retry::Patience,
};

/// What all parts of one conductor share.
#[derive(Debug)]
pub(super) struct Shared {
    /// As whom it claims.
    pub(super) owner: Owner,
    pub(super) guard: Arc<Guard>,
    pub(super) left_over: LeftOver,
    pub(super) policy: Policy,
    pub(super) patience: Patience,
    pub(super) output: Destination,
    pub(super) time_limit: TimeLimit,
    /// What all commands inherit: no secrets, and by what they and the guard know us.
    pub(super) spawner: Spawner,
    pub(super) reporter: Reporter,
    pub(super) in_flight: InFlight,
    pub(super) passed_over: PassedOver,
    pub(super) account: Account,
    /// Whether it was said that the board cannot be reached.
    pub(super) is_cut_off: Arc<AtomicBool>,
}
