//! What tests need of the machine: without it they are skipped, and say so even though they pass.
//!
//! The tests of the boards themselves borrow it.

use std::{
    collections::BTreeSet,
    env,
    io::{self, Write as _},
    sync::{Mutex, PoisonError},
};

/// What has been said to be missing.
static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Whether a test can do with what is there; in CI nothing may be missing.
pub(crate) fn is_there(what: &str, is_there: bool) -> bool {
    let is_set = |name: &str, value: &str| env::var(name).is_ok_and(|text| text == value);
    let is_needed = is_set("CI", "true") || is_set("JOBBOARD_REQUIRE_SERVERS", "1");
    assert!(is_there || !is_needed, "{what} is missing");
    let mut missing = MISSING.lock().unwrap_or_else(PoisonError::into_inner);
    if !is_there && missing.insert(what.to_owned()) {
        // What is printed by macros is seen only of tests that fail.
        let _ = writeln!(
            io::stderr(),
            "skipped: tests that need {what}, which is missing; `scripts/test` installs it"
        );
    }
    is_there
}

/// Whether a program is there.
pub(crate) fn has(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).any(|folder| folder.join(program).exists());
    is_there(program, found)
}

/// Whether servers may be started at all; `scripts/test --fast` does without them.
pub(crate) fn may_start_servers() -> bool {
    env::var_os("JOBBOARD_TEST_FAST").is_none()
}

/// Whether all is to be tried, however long it takes; `scripts/faults` asks for that.
pub(crate) fn is_full() -> bool {
    env::var_os("JOBBOARD_FAULTS").is_some_and(|asked| asked == "full")
}

/// Returns the size for a full run, or that for every day.
pub(crate) fn size(full: usize, everyday: usize) -> usize {
    if is_full() { full } else { everyday }
}
