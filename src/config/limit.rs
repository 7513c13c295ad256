//! Configurable limits, and the notation of sizes.

use std::time::Duration;

pub(super) const OP_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) const MAX_DETAILS: u64 = MIB;

/// The largest configuration file: parsing takes hundreds of times its size.
pub(super) const LARGEST_FILE: u64 = 256 * 1024;

/// Ten years: a sum with the present time must not overflow the clocks.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 60 * 60);

const MIB: u64 = 1024 * 1024;

/// Largest first.
const UNITS: [(&str, u64); 3] = [("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)];

pub(super) fn check_op_timeout(timeout: Duration) -> Result<Duration, &'static str> {
    if timeout.is_zero() {
        Err("the timeout must be longer than 0s, for example 5s")
    } else if timeout > LONGEST {
        Err("the timeout must be at most ten years, for example 5s")
    } else {
        Ok(timeout)
    }
}

pub(super) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))?;
    // Rust reads a plus sign as part of a number.
    let has_digits_only = number.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = number.parse().ok().filter(|_| has_digits_only)?;
    number.checked_mul(*unit)
}

/// Writes a size in the largest unit that fits it exactly.
pub(super) fn size_text(bytes: u64) -> String {
    UNITS
        .iter()
        .find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit))
        .map_or_else(
            || bytes.to_string(),
            |(name, unit)| format!("{}{name}", bytes / unit),
        )
}
