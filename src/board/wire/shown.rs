//! Shows stored values that JSON has no form for, however they are encoded.

use serde_json::{Number, Value, json};

/// Shows a number that may be infinite, or none.
pub(super) fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(finite) => finite.into(),
        None if number.is_nan() => json!({ "$float": "nan" }),
        None if number > 0.0 => json!({ "$float": "inf" }),
        None => json!({ "$float": "-inf" }),
    }
}
