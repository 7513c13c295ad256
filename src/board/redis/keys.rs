//! The names of a board's keys, and the mapping between hash fields and job keys.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use redis::Cmd;

use super::link::bounded::placeholder;
use crate::{
    board::scratch::SCRATCH_PREFIX,
    job::{JobKey, Location, MAX_TEXT_BYTES, standard_uuid},
};

#[derive(Debug, Clone)]
pub(super) struct Keys {
    prefix: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SidecarNames {
    pub(super) owner: Vec<u8>,
    pub(super) last_modified: Vec<u8>,
    /// The sidecar; TaskFlow's readers never look at that name.
    pub(super) side: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPart {
    Postings,
    Trash,
    Sequence,
    Owner(JobKey),
    Modified(JobKey),
    Sidecar(JobKey),
    Conductor(String),
}

impl KeyPart {
    pub(super) fn job(&self) -> Option<&JobKey> {
        match self {
            Self::Owner(key) | Self::Modified(key) | Self::Sidecar(key) => Some(key),
            Self::Postings | Self::Trash | Self::Sequence | Self::Conductor(_) => None,
        }
    }
}

/// Declares the keys that each board has once, by the names that TaskFlow and other clients use.
macro_rules! names {
    ($($name:ident)*) => {
        impl Keys {
            $(pub(super) fn $name(&self) -> String {
                self.named(stringify!($name))
            })*
        }
    };
}

names! { listings trash sequence fence paused moves events }

impl Keys {
    pub(super) fn history(&self) -> String {
        self.named("past")
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the part of the board in a key; `None` if irrelevant or of another board.
    pub(super) fn part(&self, name: &[u8]) -> Option<KeyPart> {
        let name = name.strip_prefix(self.prefix.as_bytes())?;
        // Longer names belong to no usable job or conductor.
        let name = (name.len() <= 2 * MAX_TEXT_BYTES).then_some(name)?;
        let of = |suffix: &str| name.strip_suffix(suffix.as_bytes()).map(key_of);
        match name {
            b"listings" => Some(KeyPart::Postings),
            b"trash" => Some(KeyPart::Trash),
            b"sequence" => Some(KeyPart::Sequence),
            _ => None,
        }
        .or_else(|| of(".owned").map(KeyPart::Owner))
        .or_else(|| of(".last_modified").map(KeyPart::Modified))
        .or_else(|| of(".jobboard").map(KeyPart::Sidecar))
        .or_else(|| {
            let conductor = name.strip_prefix(b"conductor.")?;
            let conductor = String::from_utf8_lossy(conductor).into_owned();
            Some(KeyPart::Conductor(conductor))
        })
    }

    /// Without a namespace the keys have no prefix.
    pub(super) fn of(namespace: Option<&str>) -> Self {
        Self {
            prefix: namespace.map_or_else(String::new, |namespace| format!("{namespace}:")),
        }
    }

    pub(super) fn hash(&self, location: Location) -> String {
        match location {
            Location::Board => self.listings(),
            Location::Trash => self.trash(),
            Location::History => self.history(),
        }
    }

    pub(super) fn conductor(&self, name: &str) -> String {
        self.named(&format!("conductor.{name}"))
    }

    pub(super) fn conductor_status(&self, name: &str) -> String {
        self.named(&format!("told.{name}"))
    }

    /// A copy of the entry that outlives it. Neither 0.2.0 nor [`part`](Self::part) looks at it.
    pub(super) fn conductor_seen(&self, name: &str) -> String {
        self.named(&format!("conductor-seen.{name}"))
    }

    pub(super) fn conductors(&self) -> String {
        self.beginning_with("conductor")
    }

    pub(super) fn scratches(&self) -> String {
        self.named(&format!("{SCRATCH_PREFIX}boards"))
    }

    /// Returns the name of this board, and the keys of the board that it is beside.
    pub(super) fn base(&self) -> (&str, Self) {
        let namespace = self.prefix.strip_suffix(':').unwrap_or_default();
        match namespace.rsplit_once(':') {
            Some((base, name)) => (name, Self::of(Some(base))),
            None => (namespace, Self::of(None)),
        }
    }

    /// Matches all keys of the board, and perhaps some of boards with a longer name.
    pub(super) fn all(&self) -> String {
        self.beginning_with("")
    }

    fn beginning_with(&self, name: &str) -> String {
        let literal: String = self
            .named(name)
            .chars()
            .flat_map(|character| {
                let is_special = matches!(character, '*' | '?' | '[' | ']' | '\\');
                is_special.then_some('\\').into_iter().chain([character])
            })
            .collect();
        format!("{literal}*")
    }

    pub(super) fn sidecar_names(&self, field: &[u8]) -> SidecarNames {
        SidecarNames {
            owner: self.owner(field),
            last_modified: self.of_field(field, ".last_modified"),
            side: self.of_field(field, ".jobboard"),
        }
    }

    pub(super) fn owner(&self, field: &[u8]) -> Vec<u8> {
        self.of_field(field, ".owned")
    }

    fn of_field(&self, field: &[u8], suffix: &str) -> Vec<u8> {
        [self.prefix.as_bytes(), field, suffix.as_bytes()].concat()
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }
}

impl SidecarNames {
    pub(super) fn add_to(&self, command: &mut Cmd) {
        for name in [&self.owner, &self.last_modified, &self.side] {
            command.arg(name.as_slice());
        }
    }
}

/// The key is printed on a line of its own and parsed from there, so unprintable bytes are escaped with `%`.
pub(super) fn key_of(field: &[u8]) -> JobKey {
    if field.len() > MAX_TEXT_BYTES {
        return key_of(&placeholder(field.len()));
    }
    if let Some(uuid) = standard_uuid(field) {
        return uuid.into();
    }
    let mut name = String::with_capacity(field.len());
    for chunk in field.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '%' => name.push_str("%25"),
                character if is_shown(character) => name.push(character),
                character => escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut name),
            }
        }
        escape(chunk.invalid(), &mut name);
    }
    if let Some(rest) = name.strip_prefix(' ') {
        name = format!("%20{rest}");
    }
    if let Some(rest) = name.strip_suffix(' ') {
        name = format!("{rest}%20");
    }
    JobKey::new(name)
}

fn is_shown(character: char) -> bool {
    let is_hidden = matches!(
        character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    );
    let is_break = character.is_whitespace() && character != ' ';
    !is_hidden && !is_break && !character.is_control()
}

fn escape(bytes: &[u8], name: &mut String) {
    for byte in bytes {
        name.push_str(&format!("%{byte:02x}"));
    }
}

/// Reverses [`key_of`].
pub(super) fn field_of(key: &JobKey) -> Vec<u8> {
    Cow::from(percent_decode_str(&key.text())).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    #[test]
    fn keys_have_the_names_of_taskflow() {
        let keys = Keys::of(Some("taskflow"));
        assert_eq!(keys.listings(), "taskflow:listings");
        assert_eq!(keys.sidecar_names(b"a-1").owner, b"taskflow:a-1.owned");
        assert_eq!(
            keys.sidecar_names(b"a-1").last_modified,
            b"taskflow:a-1.last_modified"
        );
        assert_eq!(Keys::of(Some("")).listings(), ":listings");
        assert_eq!(Keys::of(Some("a:b")).trash(), "a:b:trash");
        assert_eq!(Keys::of(None).sequence(), "sequence");
    }

    #[test]
    fn sibling_board_is_found_by_its_prefix() {
        for (namespace, base) in [
            (Some("taskflow"), "taskflow:"),
            (Some("a:b"), "a:b:"),
            (Some(""), ":"),
            (None, ""),
        ] {
            let before = namespace.iter().map(|it| format!("{it}:"));
            let companions = Keys::of(Some(&(before.collect::<String>() + "selftest-1")));
            let (name, found) = companions.base();
            assert_eq!((name, found.prefix()), ("selftest-1", base));
            assert_eq!(found.scratches(), format!("{base}selftest-boards"));
        }
    }

    #[test]
    fn every_key_is_recognised_by_its_name() {
        for keys in [Keys::of(Some("a:b")), Keys::of(Some("")), Keys::of(None)] {
            let companions = keys.sidecar_names(b"x.owned");
            let key = JobKey::new("x.owned");
            assert_eq!(
                keys.part(&companions.owner),
                Some(KeyPart::Owner(key.clone()))
            );
            assert_eq!(
                keys.part(&companions.last_modified),
                Some(KeyPart::Modified(key.clone()))
            );
            assert_eq!(keys.part(&companions.side), Some(KeyPart::Sidecar(key)));
            assert_eq!(
                keys.part(keys.listings().as_bytes()),
                Some(KeyPart::Postings)
            );
            assert_eq!(keys.part(keys.trash().as_bytes()), Some(KeyPart::Trash));
            let night = Some(KeyPart::Conductor("night".to_owned()));
            assert_eq!(keys.part(keys.conductor("night").as_bytes()), night);
            assert_eq!(
                keys.part(keys.sequence().as_bytes()),
                Some(KeyPart::Sequence)
            );
            assert_eq!(keys.part(keys.fence().as_bytes()), None);
        }
        assert_eq!(Keys::of(Some("a")).part(b"b:listings"), None);
    }

    #[test]
    fn registry_scan_escapes_glob_characters() {
        assert_eq!(
            Keys::of(Some("a*[b]")).conductors(),
            "a\\*\\[b\\]:conductor*"
        );
    }

    #[test]
    fn every_field_has_a_reversible_name() {
        for field in [
            &b"a-1"[..],
            b"",
            b"100%",
            b"%41",
            b"\xff\x00%zz\xc3",
            "ü".as_bytes(),
            b" a b ",
            b" ",
            "a\n\u{202e}b\u{2028}".as_bytes(),
        ] {
            let key = key_of(field);
            assert_eq!(field_of(&key), field, "{key}");
            let is_line = key.text().trim() == key.text() && key.text().lines().count() < 2;
            assert!(is_line, "{key:?}");
        }
        assert_eq!(key_of(b"a b\n").text(), "a b%0a");
        assert_eq!(key_of(b"\xffx").text(), "%ffx");
    }

    #[test]
    fn untrusted_fields_and_keys_are_reversible() {
        let all = [Keys::of(Some("a:b")), Keys::of(Some("")), Keys::of(None)];
        let fields = [
            "a-1",
            "100%",
            "%41",
            "\u{202e} b\n",
            "x.owned",
            "1f0c9a58-8f0e-5d0a-8a43-6b0c3f6d2e7b",
        ];
        Corpus::of(Bounds::STORED, fields).hold(|field| {
            let key = key_of(field);
            if field.len() > MAX_TEXT_BYTES {
                same("its size", &field_of(&key), &placeholder(field.len()))?;
                return refused("the text is too long");
            }
            same("it leads back", &field_of(&key), &field.to_vec())?;
            for keys in &all {
                let owner = keys.part(&keys.sidecar_names(field).owner);
                same(
                    "it is known by its name",
                    &owner,
                    &Some(KeyPart::Owner(key.clone())),
                )?;
                let _ = keys.part(field);
            }
            match *key.text().as_bytes() == *field {
                true => Ok(Answer::Read),
                false => refused("it is escaped"),
            }
        });
    }
}
