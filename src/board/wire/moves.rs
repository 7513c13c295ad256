//! The records of moves: the same key and text on every board.

use chrono::DateTime;

use crate::{
    job::{MOVER, MoveRecord, Owner, Stage},
    secret::covered_text,
};

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

#[cfg(test)]
mod tests {
    use chrono::Utc;

    use super::*;

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
}
