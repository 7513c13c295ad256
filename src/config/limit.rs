//! Configurable limits.

use std::time::Duration;

pub(super) const OP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const MAX_DETAILS: u64 = 1 << 20;

/// The largest configuration file: parsing takes hundreds of times its size.
pub(super) const MAX_FILE_BYTES: u64 = 256 * 1024;

/// Ten years: a sum with the present time must not overflow the clocks.
const MAX_TIMEOUT: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

pub(super) fn check_op_timeout(timeout: Duration) -> Result<Duration, &'static str> {
    if timeout.is_zero() {
        Err("the timeout must be longer than 0s, for example 5s")
    } else if timeout > MAX_TIMEOUT {
        Err("the timeout must be at most ten years, for example 5s")
    } else {
        Ok(timeout)
    }
}
