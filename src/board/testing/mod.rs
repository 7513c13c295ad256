//! Shared test support: certificates, proxies and fake servers.

#[macro_use]
#[path = "../../../tests/cli/support/macros.rs"]
mod macros;
#[macro_use]
mod unasked;

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
    error::Error as _,
    thread,
    time::{Duration, Instant},
};

pub(crate) use self::misread::misread;
pub(super) use self::{
    authority::{Authority, Identity},
    impostor::impostor,
    needs::has,
    proxy::{Proxy, ProxyMode},
};

use super::BoardError;

const WAIT_TIMEOUT: Duration = Duration::from_secs(90);

/// Requires that a value matches a pattern, and prints any other value, after its context.
macro_rules! assert_matches {
    ($value:expr, $pattern:pat $(if $guard:expr)?) => {
        assert_matches!($value, $pattern $(if $guard)?, "no match")
    };
    ($value:expr, $pattern:pat $(if $guard:expr)?, $($context:tt)+) => {
        assert!(matches!(&$value, $pattern $(if $guard)?), "{}: {:?}", format_args!($($context)+), $value)
    };
}
pub(crate) use assert_matches;

pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + WAIT_TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < end, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the kind and the reason of an error, which reveals no password.
pub(super) fn summary(error: BoardError) -> String {
    let kind = match &error {
        BoardError::Unreachable { .. } => "unreachable",
        BoardError::Misdirected { .. } => "misdirected",
        BoardError::Denied { .. } => "denied",
        BoardError::Failed { .. } => "failed",
        BoardError::Unsupported(_) => return format!("unsupported: {error}"),
        other => panic!("{other:?}"),
    };
    let reason = error.source().unwrap().to_string();
    let whole = format!("{error}: {reason} {error:?}");
    assert!(!whole.contains("hunter"), "it tells a password: {whole}");
    assert!(!reason.contains('\n'), "it has several lines: {reason}");
    format!("{kind}: {reason}")
}
