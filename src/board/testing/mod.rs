//! What the tests of several kinds of boards need: certificates, and what stands in the way.

#[path = "../../../tests/cli/support/servers/authority.rs"]
mod authority;
mod impostor;
#[path = "../../../tests/cli/support/proxy.rs"]
mod proxy;
pub(crate) mod scripted;

use std::{
    env, thread,
    time::{Duration, Instant},
};

pub(super) use self::{
    authority::{Authority, Identity},
    impostor::impostor,
    proxy::{Mood, Proxy},
};

/// How long anything may take that a test waits for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whether a program is there; in CI it has to be.
pub(super) fn has(program: &str) -> bool {
    let is_set = |name: &str, value: &str| env::var(name).is_ok_and(|text| text == value);
    let path = env::var_os("PATH").unwrap_or_default();
    let is_there = env::split_paths(&path).any(|folder| folder.join(program).exists());
    let is_needed = is_set("CI", "true") || is_set("JOBBOARD_REQUIRE_SERVERS", "1");
    assert!(is_there || !is_needed, "{program} is missing");
    if !is_there {
        eprintln!("skipped: {program} is missing");
    }
    is_there
}

/// Waits until something is so.
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
