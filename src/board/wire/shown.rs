//! Shows stored values without a JSON form, in any encoding.

use serde_json::{Number, Value, json};

/// Shows a number, also infinity and NaN.
pub(super) fn float(number: f64) -> Value {
    match Number::from_f64(number) {
        Some(finite) => finite.into(),
        None if number.is_nan() => json!({ "$float": "nan" }),
        None if number > 0.0 => json!({ "$float": "inf" }),
        None => json!({ "$float": "-inf" }),
    }
}
