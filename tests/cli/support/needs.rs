//! Requirements of tests: a test without them is skipped with a message, and passes.
//!
//! The tests of the boards use this file too.

use std::{
    collections::BTreeSet,
    env,
    io::{self, Write as _},
    sync::{Mutex, PoisonError},
};

/// The requirements reported as missing.
static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reports a missing requirement; in CI it is an error.
pub(crate) fn is_there(what: &str, is_there: bool) -> bool {
    let is_set = |name: &str, value: &str| env::var(name).is_ok_and(|text| text == value);
    let is_needed = is_set("CI", "true") || is_set("JOBBOARD_REQUIRE_SERVERS", "1");
    assert!(is_there || !is_needed, "{what} is missing");
    let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_there && missing.insert(what.to_owned()) {
        // Print macros are captured unless the test fails.
        let _ = writeln!(
            io::stderr(),
            "skipped: tests that need {what}, which is missing; `scripts/test` installs it"
        );
    }
    is_there
}

/// Whether a program exists.
pub(crate) fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|directory| directory.join(program).exists());
    is_there(program, found)
}

/// Whether tests may start servers; `scripts/test --fast` runs without them.
pub(crate) fn may_start_servers() -> bool {
    env::var_os("JOBBOARD_TEST_FAST").is_none()
}

/// Whether tests run at full size, as in `scripts/faults`.
pub(crate) fn is_full() -> bool {
    env::var_os("JOBBOARD_FAULTS").is_some_and(|asked| asked == "full")
}

/// Returns the size for a full run, or for a normal one.
pub(crate) fn size(full: usize, everyday: usize) -> usize {
    if is_full() { full } else { everyday }
}
