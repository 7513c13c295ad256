//! An exhaustive model of two conductors with one job, in every possible order of steps.
//!
//! It covers the decisions on both sides of a connection: claims, renewals, settlements, the guard, operators who
//! force or pause, lost and late messages, and processes that stop or die. It is valid while its steps match the
//! program; [`source`] lists the functions.

mod board;
mod effect;
mod explore;
mod source;
mod step;

mod world;

use self::{
    explore::explore,
    world::{Broken, Kind, ModelConfig, Planted},
};
use crate::board::testing::needs::is_full;

const CONFIG: ModelConfig = ModelConfig {
    kind: Kind::Expiry,
    is_one_machine: false,
    faults: 1,
    planted: None,
};

fn keeps_its_promises(config: ModelConfig) {
    match explore(&config) {
        Ok(worlds) => eprintln!("faults: {worlds} worlds keep the guarantees in {config:?}"),
        Err(counterexample) => panic!("{config:?}: {counterexample}"),
    }
}

#[test]
fn expiring_claims_satisfy_the_properties() {
    let faults = if is_full() { 2 } else { 1 };
    keeps_its_promises(ModelConfig { faults, ..CONFIG });
}

#[test]
fn session_claims_satisfy_the_properties() {
    let faults = if is_full() { 2 } else { 1 };
    keeps_its_promises(ModelConfig {
        kind: Kind::Session,
        faults,
        ..CONFIG
    });
}

#[test]
fn next_guard_on_the_machine_ends_leftovers() {
    // Sessions double the worlds, and each fault multiplies them by fifteen.
    let (kinds, faults) = match is_full() {
        true => (&[Kind::Expiry, Kind::Session][..], 2),
        false => (&[Kind::Expiry][..], 1),
    };
    for &kind in kinds {
        keeps_its_promises(ModelConfig {
            kind,
            is_one_machine: true,
            faults,
            ..CONFIG
        });
    }
}

#[test]
fn each_planted_mistake_violates_a_property() {
    let one_machine = ModelConfig {
        is_one_machine: true,
        ..CONFIG
    };
    let session = ModelConfig {
        kind: Kind::Session,
        ..CONFIG
    };
    for (planted, config, faults, broken) in [
        (Planted::SettlesWithoutFence, CONFIG, 0, Broken::SettledLate),
        (Planted::RenewsAnyClaim, CONFIG, 0, Broken::RanTwice),
        (Planted::ForcesUnseen, CONFIG, 1, Broken::ForcedAnother),
        (Planted::GuardForgets, CONFIG, 1, Broken::RanTwice),
        (
            Planted::StartsBesideLeftovers,
            one_machine,
            1,
            Broken::RanTwice,
        ),
        (
            Planted::CountsFromTheLastConfirmation,
            session,
            0,
            Broken::RanTwice,
        ),
        (
            Planted::CountsFromTheClaimItself,
            session,
            0,
            Broken::RanTwice,
        ),
        (Planted::NoticesNoLateClaim, session, 0, Broken::Stuck),
    ] {
        let config = ModelConfig {
            planted: Some(planted),
            faults,
            ..config
        };
        let counterexample = explore(&config).expect_err(&format!("{planted:?} breaks something"));
        assert_eq!(
            counterexample.broken, broken,
            "{planted:?}: {counterexample}"
        );
    }
}
