//! Sizes in bytes, as people write them.

/// The binary units first, the largest first.
const UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("kB", 1000),
    ("", 1),
];

const BINARY: usize = 3;

/// Reads a size: `4096`, `4KiB`, `1 MB`, the unit in any case.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let mut units = UNITS.iter();
    let (_, bytes) = units.find(|(name, _)| unit.trim_start().eq_ignore_ascii_case(name))?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// Writes a size in the largest binary unit that fits it exactly.
pub(crate) fn text(bytes: u64) -> String {
    let mut units = UNITS[..BINARY].iter();
    match units.find(|(_, unit)| bytes > 0 && bytes.is_multiple_of(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}
