//! Reads times and dates, which TaskFlow stores as maps of their parts.

use std::fmt;

use chrono::{DateTime, NaiveDate, NaiveDateTime, Utc};
use serde::Serialize;

use super::token::{PackReader, PackToken};
use crate::{board::wire::posting::RecordProblem, job::shortened};

pub(super) const UUID: i8 = 0;
pub(super) const DATETIME: i8 = 1;

pub(super) const LAST_MICROSECOND: u32 = 999_999;

const UTC_ZONES: [&str; 3] = ["UTC", "Etc/UTC", "GMT"];

const PARTS: [&str; 7] = [
    "day",
    "month",
    "year",
    "hour",
    "minute",
    "second",
    "microsecond",
];

pub(crate) fn read_time(bytes: &[u8]) -> Result<DateTime<Utc>, RecordProblem> {
    if bytes.is_empty() {
        return Err(RecordProblem::Empty);
    }
    let mut reader = PackReader::new(bytes);
    let token = reader.token()?;
    let PackToken::Extension(DATETIME, payload) = token else {
        return Err(RecordProblem::NotTime(token.kind()));
    };
    reader.end()?;
    StoredTime::read(payload)?.in_utc()
}

pub(super) struct StoredTime<'a> {
    clock: NaiveDateTime,
    zone: Option<&'a str>,
}

impl<'a> StoredTime<'a> {
    pub(super) fn read(payload: &'a [u8]) -> Result<Self, RecordProblem> {
        let (numbers, zone) = parts(payload)?;
        let [day, month, year, hour, minute, second, microsecond] = numbers;
        let clock = date(year, month, day)
            .filter(|_| microsecond <= LAST_MICROSECOND.into())
            .and_then(|date| {
                date.and_hms_micro_opt(
                    hour.try_into().ok()?,
                    minute.try_into().ok()?,
                    second.try_into().ok()?,
                    microsecond.try_into().ok()?,
                )
            })
            .ok_or_else(|| {
                RecordProblem::NoSuchTime(format!(
                    "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{microsecond:06}"
                ))
            })?;
        Ok(Self { clock, zone })
    }

    pub(super) fn in_utc(&self) -> Result<DateTime<Utc>, RecordProblem> {
        match self.zone {
            None => Ok(self.clock.and_utc()),
            Some(zone) if UTC_ZONES.contains(&zone) => Ok(self.clock.and_utc()),
            Some(zone) => Err(RecordProblem::OtherZone(shortened(zone))),
        }
    }
}

impl fmt::Display for StoredTime<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.clock.format("%Y-%m-%dT%H:%M:%S%.6f"))?;
        match self.zone {
            None => Ok(()),
            Some(zone) if UTC_ZONES.contains(&zone) => f.write_str("+00:00"),
            Some(zone) => write!(f, "[{zone}]"),
        }
    }
}

#[derive(Serialize)]
pub(super) struct TimeMembers<'a> {
    pub(super) day: u32,
    pub(super) month: u32,
    pub(super) year: i32,
    pub(super) hour: u32,
    pub(super) minute: u32,
    pub(super) second: u32,
    pub(super) microsecond: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tz: Option<&'a str>,
}

fn date(year: i128, month: i128, day: i128) -> Option<NaiveDate> {
    // Python knows no other years.
    let year = i32::try_from(year)
        .ok()
        .filter(|year| (1..=9999).contains(year))?;
    NaiveDate::from_ymd_opt(year, month.try_into().ok()?, day.try_into().ok()?)
}

/// Reads a map of named numbers, all required, and an optional zone.
fn parts(payload: &[u8]) -> Result<([i128; PARTS.len()], Option<&str>), RecordProblem> {
    let mut reader = PackReader::new(payload);
    let PackToken::Map(count) = reader.token()? else {
        return Err(RecordProblem::TimeLacks(PARTS[0]));
    };
    let mut numbers = [None; PARTS.len()];
    let mut zone = None;
    for turn in 0..count as usize {
        // TaskFlow nearly always writes this order.
        if let Some(number) = PARTS.get(turn).and_then(|name| reader.number_of(name)) {
            numbers[turn] = Some(number.into());
            continue;
        }
        let key = reader.key()?.as_bytes();
        let value = reader.item()?.head;
        if key == b"tz" {
            zone = zone_name(value)?;
        } else if let Some(at) = PARTS.iter().position(|name| name.as_bytes() == key) {
            numbers[at] = Some(number(PARTS[at], value)?);
        }
    }
    reader.end()?;
    let mut found = [0; PARTS.len()];
    for (at, name) in PARTS.into_iter().enumerate() {
        let Some(number) = numbers[at] else {
            return Err(RecordProblem::TimeLacks(name));
        };
        found[at] = number;
    }
    Ok((found, zone))
}

fn number(name: &'static str, value: PackToken<'_>) -> Result<i128, RecordProblem> {
    match value {
        PackToken::Unsigned(number) => Ok(number.into()),
        PackToken::Signed(number) => Ok(number.into()),
        // Python accepts booleans as numbers.
        PackToken::Bool(number) => Ok(number.into()),
        _ => Err(RecordProblem::TimeType(name)),
    }
}

fn zone_name(value: PackToken<'_>) -> Result<Option<&str>, RecordProblem> {
    match (value, value.text()) {
        // Python reads these as missing.
        (PackToken::Null | PackToken::Bool(false) | PackToken::Unsigned(0), _) | (_, Some("")) => {
            Ok(None)
        }
        (_, Some(name)) => Ok(Some(name)),
        _ => Err(RecordProblem::ZoneType),
    }
}
