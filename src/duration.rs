//! Durations for people: `90s`, `1h30m`, `2d`.

use std::time::Duration;

use chrono::{DateTime, Utc};
use thiserror::Error;

const UNITS: [(&str, u64); 5] = [
    ("d", 24 * 60 * 60 * 1000),
    ("h", 60 * 60 * 1000),
    ("m", 60 * 1000),
    ("s", 1000),
    ("ms", 1),
];

const ZERO: &str = "0s";

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum InvalidDuration {
    #[error("`{0}` has no unit; write `{0}s` or `{0}m`, for example (units: d, h, m, s, ms)")]
    NoUnit(String),
    #[error(
        "`{0}` is not a duration; use whole numbers with the units d, h, m, s and ms in this order, \
         for example `500ms`, `90s`, `15m`, `1h30m` or `2d`"
    )]
    Malformed(String),
}

/// Reads a duration: whole numbers with units, longest unit first.
///
/// Zero is valid (`0s`); a number without a unit is not.
pub(crate) fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let malformed = || InvalidDuration::Malformed(text.to_owned());
    let mut units = UNITS.iter();
    let mut millis = 0_u64;
    let mut rest = text;
    loop {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, behind) = rest.split_at(digits);
        let end = behind.find(|char: char| char.is_ascii_digit());
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        if unit.is_empty() && !number.is_empty() {
            return Err(InvalidDuration::NoUnit(number.to_owned()));
        }
        // The search continues after the previous unit, so that no unit is late or repeated.
        let found = units.find(|(name, _)| *name == unit);
        let part = found.and_then(|(_, length)| number.parse::<u64>().ok()?.checked_mul(*length));
        millis = part
            .and_then(|part| part.checked_add(millis))
            .ok_or_else(malformed)?;
        if behind.is_empty() {
            return Ok(Duration::from_millis(millis));
        }
        rest = behind;
    }
}

/// Reads an option's duration within these bounds; `refusal` states them.
pub(crate) fn within(
    text: &str,
    (shortest, longest): (Duration, Duration),
    refusal: &str,
) -> Result<Duration, String> {
    match parse(text).map_err(|error| error.to_string())? {
        it if (shortest..=longest).contains(&it) => Ok(it),
        _ => Err(refusal.to_owned()),
    }
}

/// Writes the time between two times in brief, or zero if `to` is earlier.
pub(crate) fn between(from: DateTime<Utc>, to: DateTime<Utc>) -> String {
    brief((to - from).to_std().unwrap_or_default())
}

/// Writes the distance from now: `3m ago`, or `in 3m` for a time in the future.
pub(crate) fn from_now(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - time).to_std() {
        Ok(ago) => format!("{} ago", brief(ago)),
        Err(_) => format!("in {}", between(now, time)),
    }
}

/// Writes a duration for a table: its longest unit, and the next one while it matters.
///
/// Rounds down: `59s`, `1m30s`, `12m`, `2d4h`. Only durations under a second show milliseconds.
pub(crate) fn brief(duration: Duration) -> String {
    let parts = parts(duration);
    let Some(first) = parts.iter().position(|(number, _)| *number > 0) else {
        return ZERO.to_owned();
    };
    let (number, unit) = parts[first];
    match parts.get(first + 1) {
        Some((next, small)) if number < 10 && *next > 0 && *small != "ms" => {
            format!("{number}{unit}{next}{small}")
        }
        _ => format!("{number}{unit}"),
    }
}

/// Writes a duration so that [`parse`] reads the same one back, to the millisecond.
pub(crate) fn exact(duration: Duration) -> String {
    let text: String = parts(duration)
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect();
    match text.is_empty() {
        true => ZERO.to_owned(),
        false => text,
    }
}

fn parts(duration: Duration) -> [(u128, &'static str); UNITS.len()] {
    let mut rest = duration.as_millis();
    UNITS.map(|(unit, length)| {
        let number = rest / u128::from(length);
        rest %= u128::from(length);
        (number, unit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    const SECOND: u64 = 1000;
    const MINUTE: u64 = 60 * SECOND;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;

    const EXACT: [(&str, u64); 9] = [
        ("0s", 0),
        ("1ms", 1),
        ("500ms", 500),
        ("1s500ms", 1500),
        ("15m", 15 * MINUTE),
        ("1h30m", HOUR + 30 * MINUTE),
        ("2d", 2 * DAY),
        ("1d2h3m4s5ms", DAY + 2 * HOUR + 3 * MINUTE + 4 * SECOND + 5),
        ("213503982334d14h25m51s615ms", u64::MAX),
    ];

    fn refusal(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn exact_forms_round_trip() {
        for (text, millis) in EXACT {
            let duration = Duration::from_millis(millis);
            assert_eq!(parse(text), Ok(duration), "{text}");
            assert_eq!(exact(duration), text);
        }
    }

    #[test]
    fn part_may_exceed_the_next_unit() {
        for (text, millis) in [
            ("90s", 90 * SECOND),
            ("1h90m", HOUR + 90 * MINUTE),
            ("86400s", DAY),
            ("0d", 0),
            ("0h0ms", 0),
            ("007s", 7 * SECOND),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn microseconds_are_dropped() {
        assert_eq!(exact(Duration::from_micros(1999)), "1ms");
        assert_eq!(exact(Duration::from_micros(999)), "0s");
        assert_eq!(brief(Duration::from_micros(999)), "0s");
    }

    #[test]
    fn bare_number_suggests_units() {
        assert_eq!(
            refusal("10"),
            "`10` has no unit; write `10s` or `10m`, for example (units: d, h, m, s, ms)"
        );
        assert_eq!(parse("0"), Err(InvalidDuration::NoUnit("0".to_owned())));
        assert_eq!(parse("1h30"), Err(InvalidDuration::NoUnit("30".to_owned())));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            // Unknown units.
            "2w",
            "5M",
            "1h3min",
            "7µs",
            // Out of order, or twice.
            "30m1h",
            "1m1m",
            "5ms1s",
            // Signs, fractions and words.
            "-5m",
            "+5m",
            "1.5s",
            "1h 30m",
            " 5m",
            "5m ",
            "m",
            "soon",
            "1,5s",
            // Too long.
            "213503982335d",
            "18446744073709551616ms",
            "213503982334d14h25m51s616ms",
            "99999999999999999999999d",
        ] {
            let malformed = InvalidDuration::Malformed(text.to_owned());
            assert_eq!(parse(text), Err(malformed), "{text}");
        }
    }

    #[test]
    fn brief_form_has_one_or_two_units() {
        for (millis, text) in [
            (0, "0s"),
            (500, "500ms"),
            (1500, "1s"),
            (12 * SECOND, "12s"),
            (4 * MINUTE, "4m"),
            (90 * SECOND, "1m30s"),
            (12 * MINUTE + 30 * SECOND, "12m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 5 * MINUTE, "3h5m"),
            (3 * HOUR + 5 * SECOND, "3h"),
            (23 * HOUR + 59 * MINUTE, "23h"),
            (2 * DAY + 4 * HOUR, "2d4h"),
            (400 * DAY + 4 * HOUR, "400d"),
        ] {
            assert_eq!(brief(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn untrusted_durations_round_trip() {
        let texts = EXACT.map(|(text, _)| text);
        Corpus::of(Bounds::TYPED, texts).hold_for_text(|text| match parse(text) {
            Ok(duration) => {
                let _ = brief(duration);
                same("printed again", &Ok(duration), &parse(&exact(duration))).and(Ok(Answer::Read))
            }
            Err(invalid) => refused(&invalid),
        });
    }
}
