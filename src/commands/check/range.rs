//! Ranges of monitoring plugins: `[@]START:END`.

use crate::duration;

/// A value outside of the range raises an alert; with `@`, a value inside.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Range {
    pub(super) text: String,
    start: f64,
    end: f64,
    is_inverted: bool,
}

impl Range {
    pub(super) fn zero() -> Self {
        Self {
            text: "0".to_owned(),
            start: 0.0,
            end: 0.0,
            is_inverted: false,
        }
    }

    /// Parses a range; the ends of a time span may be durations, and a plain number means seconds.
    pub(super) fn read(text: &str, is_span: bool) -> Result<Self, String> {
        let inner = text.strip_prefix('@').unwrap_or(text);
        let number = |part: &str| number(part, is_span).ok_or_else(|| refusal(text, is_span));
        let (start, end) = match inner.split_once(':') {
            None => (0.0, number(inner)?),
            Some((start, end)) => (
                match start {
                    "~" => f64::NEG_INFINITY,
                    start => number(start)?,
                },
                match end {
                    "" => f64::INFINITY,
                    end => number(end)?,
                },
            ),
        };
        if start > end {
            return Err(format!("`{text}` ends before it starts"));
        }
        Ok(Self {
            text: text.to_owned(),
            start,
            end,
            is_inverted: inner.len() < text.len(),
        })
    }

    pub(super) fn admits(&self, value: f64) -> bool {
        (self.start <= value && value <= self.end) != self.is_inverted
    }

    pub(super) fn most(&self) -> Option<f64> {
        (self.end.is_finite() && !self.is_inverted).then_some(self.end)
    }

    pub(super) fn numbers(&self) -> String {
        let mark = if self.is_inverted { "@" } else { "" };
        let end = match self.end.is_finite() {
            true => self.end.to_string(),
            false => String::new(),
        };
        match self.start {
            0.0 if !end.is_empty() => format!("{mark}{end}"),
            start if start.is_finite() => format!("{mark}{start}:{end}"),
            _ => format!("{mark}~:{end}"),
        }
    }
}

fn number(text: &str, is_span: bool) -> Option<f64> {
    let is_number = text
        .bytes()
        .all(|it| it.is_ascii_digit() || b".-".contains(&it));
    match is_number {
        true => text.parse().ok().filter(|it: &f64| it.is_finite()),
        false if is_span => Some(duration::parse(text).ok()?.as_secs_f64()),
        false => None,
    }
}

fn refusal(text: &str, is_span: bool) -> String {
    let forms = match is_span {
        true => "`15m` (0 to 15m is good), `5m:`, `~:15m`, `5m:15m` or `@5m:15m`",
        false => "`10` (0 to 10 is good), `10:`, `~:10`, `10:20` or `@10:20`",
    };
    format!("`{text}` is not a range: use, for example, {forms}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    /// The table in the guidelines for monitoring plugins.
    #[test]
    fn ranges_alert_as_the_guidelines_define() {
        let nothing: &[f64] = &[];
        for (text, alerts, silent) in [
            // Below 0 or above 10.
            ("10", &[-1.0, -0.1, 10.1, 11.0][..], &[0.0, 5.0, 10.0][..]),
            // Below 10.
            ("10:", &[-10.0, 0.0, 9.9], &[10.0, 11.0, 1e9]),
            // Above 10.
            ("~:10", &[10.1, 11.0], &[-1e9, 0.0, 10.0]),
            // Outside of 10 to 20.
            ("10:20", &[9.9, 20.1, 0.0], &[10.0, 15.0, 20.0]),
            // Inside of 10 to 20.
            ("@10:20", &[10.0, 15.0, 20.0], &[9.9, 20.1, 0.0]),
            // Further examples: above 20; below 1; not 5 or 6; above 0.
            ("~:20", &[21.0], &[20.0, -5.0]),
            ("1:", &[0.0, -1.0], &[1.0, 2.0]),
            ("5:6", &[4.0, 7.0], &[5.0, 6.0]),
            ("~:0", &[1.0], &[0.0, -1.0]),
            ("0", &[1.0, -1.0], &[0.0]),
            ("@10", &[0.0, 10.0], &[-1.0, 11.0]),
            ("-10:-5", &[-11.0, -4.0, 0.0], &[-10.0, -5.0]),
            ("~:", nothing, &[-1e9, 0.0, 1e9]),
            ("0.5", &[0.6], &[0.5, 0.0]),
        ] {
            let range = Range::read(text, false).unwrap();
            for value in alerts {
                assert!(!range.admits(*value), "{text} of {value}");
            }
            for value in silent {
                assert!(range.admits(*value), "{text} of {value}");
            }
            assert_eq!(range.numbers(), text);
        }
    }

    #[test]
    fn duration_ranges_accept_units() {
        for (text, numbers) in [
            ("15m", "900"),
            ("~:1h30m", "~:5400"),
            ("5m:15m", "300:900"),
            ("@50ms:2d", "@0.05:172800"),
            ("0s:10", "10"),
            ("1:", "1:"),
        ] {
            assert_eq!(Range::read(text, true).unwrap().numbers(), numbers);
        }
    }

    #[test]
    fn invalid_ranges_are_refused() {
        for text in [
            "", "@", ":", ":10", "x", "10:5", "10:x", "~", "1e3", "inf", "nan", "~10", "5m",
            "1:2:3", "@@1", "--1", " 1", "+1", "10:~",
        ] {
            assert!(Range::read(text, false).is_err(), "{text}");
        }
        assert!(Range::read("10m:5m", true).is_err());
        assert!(Range::read("5 m", true).is_err());
    }

    #[test]
    fn untrusted_ranges_round_trip() {
        let ranges = [
            "10",
            "10:",
            "~:10",
            "@-10:20.5",
            "~:",
            "5m:1h30m",
            "@50ms:2d",
        ];
        Corpus::of(Bounds::TYPED, ranges).hold_for_text(|text| {
            let range = match (Range::read(text, false), Range::read(text, true)) {
                (Ok(range), Ok(span)) => {
                    same("numbers are spans", &range, &span)?;
                    range
                }
                (Err(_), Ok(span)) => span,
                (_, Err(words)) => return refused(&words),
            };
            let again = Range::read(&range.numbers(), false)?;
            let admitted = |range: &Range| {
                let ends = [range.start, range.end, 0.0, 1e9, -1e9, 17.5];
                ends.map(|value| range.admits(value))
            };
            same(
                "printed again",
                &(range.start, range.end),
                &(again.start, again.end),
            )?;
            same("it admits", &admitted(&range), &admitted(&again)).and(Ok(Answer::Read))
        });
    }
}
