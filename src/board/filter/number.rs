//! Numbers, and sizes in bytes.

use std::cmp::Ordering;

use super::error::Fault;

/// The units of a size, and the bytes they take.
const UNITS: [(&str, i128); 7] = [
    ("", 1),
    ("kB", 1000),
    ("MB", 1000 * 1000),
    ("GB", 1000 * 1000 * 1000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

pub(super) fn whole(text: &str) -> Result<i128, Fault> {
    text.parse().map_err(|_| Fault::Number(text.to_owned()))
}

/// Reads a size in bytes: `4096`, `4KiB`, `1 MB`, the unit in any case.
pub(super) fn size(text: &str) -> Result<i128, Fault> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let bytes = || {
        let (_, bytes) = UNITS
            .iter()
            .find(|(name, _)| unit.trim_start().eq_ignore_ascii_case(name))?;
        number.parse::<i128>().ok()?.checked_mul(*bytes)
    };
    bytes().ok_or_else(|| Fault::Size(text.to_owned()))
}

/// A JSON number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Whole(i128),
    Float(f64),
}

impl Number {
    pub(super) fn read(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return Some(Self::Whole(number));
        }
        let number: f64 = text.parse().ok()?;
        number.is_finite().then_some(Self::Float(number))
    }

    /// Returns a sort key for whole and fractional numbers.
    pub(super) fn place(self) -> (i64, i128) {
        let bits = self.as_f64().to_bits().cast_signed();
        // Negative ones grow the other way, see `f64::total_cmp`.
        let place = bits ^ ((bits >> 63).cast_unsigned() >> 1).cast_signed();
        match self {
            Self::Whole(number) => (place, number),
            Self::Float(_) => (place, i128::MAX),
        }
    }

    fn as_f64(self) -> f64 {
        match self {
            Self::Whole(number) => number as f64,
            Self::Float(number) => number,
        }
    }
}

impl From<&serde_json::Number> for Number {
    fn from(number: &serde_json::Number) -> Self {
        match number.as_i128() {
            Some(number) => Self::Whole(number),
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            // As floats, neighbouring large numbers would be equal.
            (Self::Whole(number), Self::Whole(other)) => Some(number.cmp(other)),
            _ => self.as_f64().partial_cmp(&other.as_f64()),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}
