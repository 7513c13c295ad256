//! Shared test support: certificates, proxies and fake servers.

#[macro_use]
#[path = "../../../tests/cli/support/macros.rs"]
mod macros;

#[path = "../../../tests/cli/support/servers/authority.rs"]
mod authority;
mod impostor;
mod misread;
pub(crate) mod moves;
#[path = "../../../tests/cli/support/needs.rs"]
pub(crate) mod needs;
#[path = "../../../tests/cli/support/proxy.rs"]
mod proxy;
pub(crate) mod scripted;
pub(crate) mod simulated;

use std::{
    thread,
    time::{Duration, Instant},
};

pub(crate) use self::misread::misread;
pub(super) use self::{
    authority::{Authority, Identity},
    impostor::impostor,
    needs::has,
    proxy::{Mood, Proxy},
};

const PATIENCE: Duration = Duration::from_secs(90);

/// Requires that a value matches a pattern, and prints any other value.
macro_rules! assert_matches {
    ($value:expr, $pattern:pat $(if $guard:expr)?) => {
        assert!(matches!(&$value, $pattern $(if $guard)?), "{:?}", $value)
    };
}

pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}
