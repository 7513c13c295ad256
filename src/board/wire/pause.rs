//! Pauses: the same JSON on every board, stored under the names of the jobs.

use super::as_json;
use crate::{
    glob::translate,
    job::{MAX_TEXT_BYTES, Pause, from_json, shortened},
};

impl Pause {
    pub(crate) fn write(&self) -> String {
        as_json(self)
    }

    /// Reads a pause as stored. Only by the name that it is stored under can it be ended.
    pub(crate) fn read(stored: &[u8], pause: &[u8]) -> Self {
        let names = std::str::from_utf8(stored).ok();
        let names = names.filter(|it| it.len() <= MAX_TEXT_BYTES && translate(it).is_ok());
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
    use chrono::Utc;

    use super::*;
    use crate::job::Pauses;

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
