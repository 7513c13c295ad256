//! Small records: the entries and the status of conductors, markers, moves and pauses.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::as_json;
use crate::{
    glob::translate,
    job::{
        ConductorReport, JobKey, LONGEST_TEXT, MOVER, MoveRecord, Owner, Pause, Stage, from_json,
        shortened,
    },
    secret::covered_text,
};

const LONGEST_REPORT: usize = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EntryRecord {
    pub(crate) name: String,
    pub(crate) host: String,
    pub(crate) pid: u32,
    pub(crate) since: DateTime<Utc>,
    pub(crate) owner: String,
    /// Distinguishes two processes of the same name.
    pub(crate) token: String,
}

impl ConductorReport {
    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    /// Reads a stored report. An unreadable one counts as empty.
    pub(crate) fn read(text: &[u8]) -> Self {
        if text.len() > LONGEST_REPORT {
            return Self::default();
        }
        // Earlier versions stored only their unsettled jobs.
        let earlier = |_| {
            from_json(text).map(|unsettled| Self {
                unsettled,
                ..Self::default()
            })
        };
        from_json(text).or_else(earlier).unwrap_or_default()
    }
}

/// The version of markers.
const VERSION: u32 = 1;

/// Where the job of a uuid is; empty for a location that lost it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MarkerRecord {
    v: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trashed: Option<String>,
}

impl MarkerRecord {
    pub(crate) fn of(job: Option<&JobKey>, trashed: Option<&JobKey>) -> Self {
        Self {
            v: VERSION,
            job: job.map(JobKey::to_string),
            trashed: trashed.map(JobKey::to_string),
        }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        as_json(self).into_bytes()
    }

    pub(crate) fn read(stored: &[u8]) -> Self {
        // An unreadable marker protects no uuid; the next post replaces it.
        serde_json::from_slice(stored).unwrap_or_default()
    }

    /// Whether it has no members of a newer version.
    pub(crate) fn is_of_known_version(&self) -> bool {
        self.v <= VERSION
    }
}

impl MoveRecord {
    /// The longest record in bytes: an owner's name and the address of a board.
    pub(crate) const MAX_BYTES: usize = Owner::MAX_BYTES + 1024;

    pub(crate) fn key(&self) -> String {
        match &self.stage {
            Stage::Begun { .. } => self.owner.to_string(),
            Stage::Committed { uuid } => format!("{uuid} {}", self.owner),
        }
    }

    pub(crate) fn value(&self) -> String {
        match &self.stage {
            Stage::Begun { to, on } => format!("{} {to}", on.to_rfc3339()),
            Stage::Committed { .. } => String::new(),
        }
    }

    /// Ignores a record that is longer than the address of a board.
    pub(crate) fn read(key: &str, value: &str) -> Option<Self> {
        if key.len() + value.len() > Self::MAX_BYTES {
            return None;
        }
        if key.starts_with(MOVER) {
            let (on, to) = value.split_once(' ')?;
            let on = DateTime::parse_from_rfc3339(on).ok()?.to_utc();
            // A peer may write an address with a password.
            let to = covered_text(to);
            let (owner, stage) = (Owner::from_stored(key), Stage::Begun { to, on });
            return Some(Self { owner, stage });
        }
        let (uuid, owner) = key.split_once(' ')?;
        owner.starts_with(MOVER).then_some(())?;
        Some(Self::commit(&Owner::from_stored(owner), uuid))
    }
}

impl Pause {
    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    /// Reads a pause as stored. Only by the name that it is stored under can it be ended.
    pub(crate) fn read(stored: &[u8], pause: &[u8]) -> Self {
        let names = std::str::from_utf8(stored).ok();
        let names = names.filter(|it| it.len() <= LONGEST_TEXT && translate(it).is_ok());
        match names.and_then(|names| Some((names, from_json::<Self>(pause).ok()?))) {
            Some((names, pause)) => Self {
                names: names.to_owned(),
                ..pause
            },
            None => Self {
                is_unreadable: true,
                names: Self::shown(stored),
                ..Self::of_all("the pause cannot be read")
            },
        }
    }

    /// Returns the name of a pause that is stored under any bytes.
    pub(crate) fn shown(stored: &[u8]) -> String {
        shortened(&String::from_utf8_lossy(stored))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        job::Pauses,
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    #[test]
    fn untrusted_conductor_status_is_rejected_or_round_trips() {
        let report = [
            r#"{"version":"0.2.0","slots":4,"lease":30.5,"course":"draining","running":1,"runs":[{"uuid":
                "u","name":"a","since":"2026-01-01T00:00:00Z","attempt":1}],"done":7,"failed":1}"#,
            r#"{"takes":{"filters":["name=a*"],"programs":null,"search":["/bin"],"variables":[],"handlers":
                {"a":null,"b":"it is no program"},"more_handlers":2,"command":{"program":"/bin/a"},"max_attempts":3},"later":[[1]]}"#,
            r#"{"passed_over":[{"reason":"r","jobs":2,"such_as":"a","job":"@1"}],"unsettled":[]}"#,
            r#"[{"uuid":"u","name":"a","reason":"it is away"}]"#,
        ];
        Corpus::of(Bounds::STORED, report).hold(|input| {
            let report = ConductorReport::read(input);
            if report == ConductorReport::default() {
                return refused("it tells nothing");
            }
            let again = report.write();
            same(
                "told again",
                &report,
                &ConductorReport::read(again.as_bytes()),
            )
            .and(Ok(Answer::Read))
        });
    }

    #[test]
    fn password_in_a_target_is_covered() {
        let value = "2026-11-28T08:00:00Z redis://u:S3cr3tPW@h/0?namespace=q";
        let record = MoveRecord::read("move:ada:h7:1:c0ffee01", value).unwrap();
        assert!(!format!("{record:?}").contains("S3cr3tPW"), "{record:?}");
    }

    #[test]
    fn move_records_round_trip() {
        let owner = Owner::new("move:ada@h 7:h 7:1:c0ffee01").unwrap();
        let to = "sqlite:/tmp/a b.db".to_owned();
        let begun = MoveRecord {
            owner: owner.clone(),
            stage: Stage::Begun { to, on: Utc::now() },
        };
        for record in [begun, MoveRecord::commit(&owner, "3f9a")] {
            assert_eq!(
                MoveRecord::read(&record.key(), &record.value()),
                Some(record)
            );
        }
        let endless = format!("2026-01-01T00:00:00Z sqlite:{}", "x".repeat(9000));
        assert_eq!(MoveRecord::read("move:x", &endless), None);
        assert_eq!(MoveRecord::read("other", ""), None);
        assert_eq!(MoveRecord::read("3f9a alice@office", ""), None);
        assert_eq!(MoveRecord::read("move:x", "yesterday sqlite:b"), None);
    }

    #[test]
    fn unreadable_pause_has_a_name_and_pauses_no_job() {
        let text = br#"{"names":"x","until":null,"by":"olga"}"#;
        let names = [&b"back*"[..], b"[", b"\xff", &[b'a'; 2000]];
        let shown = ["back*", "[", "\u{fffd}", &format!("{}…", "a".repeat(1024))];
        for (names, shown) in names.into_iter().zip(shown) {
            for text in [&text[..], b"nonsense"] {
                let pause = Pause::read(names, text);
                let is_readable = shown == "back*" && text != b"nonsense";
                assert_eq!(pause.names, shown);
                assert_eq!(pause.is_unreadable, !is_readable, "{pause}");
                let pauses = Pauses::new(vec![pause], Utc::now());
                assert_eq!(pauses.all().count(), usize::from(is_readable));
            }
        }
    }
}
