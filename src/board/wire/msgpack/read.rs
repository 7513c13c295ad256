//! Reads postings of any writer.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    stored::{ShownValue, bytes},
    time::read_time,
    token::{PackItem, PackKey, PackReader, PackToken},
    value::Viewer,
};
use crate::{
    board::{
        Detail,
        wire::{
            members::{self, Encoding, Member, MemberValue, Members},
            posting::{Limit, Notes, Posting, RecordProblem},
        },
    },
    job::{Edit, Priority},
};

/// All of it is validated, including members that are not requested or not used here. A posting that TaskFlow rejects
/// is a problem, unless its meaning is plain: byte texts of Python 2.
pub(crate) fn decode(bytes: &[u8], detail: Detail, limit: Limit) -> Result<Posting, RecordProblem> {
    let members = members(bytes)?;
    members.posting(
        detail,
        limit,
        |notes| created_on(&members, notes),
        |notes| sequence(&members, notes),
    )
}

/// Reads the priority and the number of a posting; fails whenever [`decode`] fails.
pub(crate) fn rank(bytes: &[u8]) -> Result<(Priority, Option<i64>), RecordProblem> {
    let (members, mut notes) = (members(bytes)?, Notes::default());
    for member in [Member::Uuid, Member::Name] {
        members.require(member)?.require_small(member.name())?;
    }
    created_on(&members, &mut notes)?;
    members.book(&mut notes)?;
    Ok((members.priority()?, sequence(&members, &mut notes)?))
}

/// Splits a posting at its number: the bytes before, the number as stored, and the bytes after. `None` without a
/// number.
pub(crate) fn around_number(posting: &[u8]) -> Option<[&[u8]; 3]> {
    let number = members(posting).ok()?.find(Member::Sequence)?.bytes;
    let start = number.as_ptr().addr() - posting.as_ptr().addr();
    let (head, rest) = posting.split_at(start);
    let (number, tail) = rest.split_at(number.len());
    Some([head, number, tail])
}

pub(crate) fn edited(posting: &[u8], edit: &Edit, limit: Limit) -> Result<Vec<u8>, String> {
    let encoding = Encoding {
        members,
        decode,
        encode: |value| bytes(&ShownValue(value)),
        // A posting that lacks a member is small enough for a one-byte header.
        add: |edited, member, value, _| {
            let (name, header) = (member.name(), &mut edited[0]);
            if !(0x80..=0x8e).contains(header) {
                return Err(format!("the record has no `{name}`, and no room to add it"));
            }
            *header += 1;
            edited.extend([&bytes(&name), value].concat());
            Ok(())
        },
    };
    members::edited(&encoding, posting, edit, limit)
}

fn members<'a>(posting: &'a [u8]) -> Result<Members<'a>, RecordProblem> {
    if posting.is_empty() {
        return Err(RecordProblem::Empty);
    }
    let mut reader = PackReader::new(posting);
    let (items, has_byte_keys) = pick(&mut reader, Member::NAMES)?;
    reader.end()?;
    let decode = match has_byte_keys {
        true => shown::<true>,
        false => shown::<false>,
    };
    let field = |item: PackItem<'a>| MemberValue {
        bytes: item.bytes,
        weight: item.weight,
        kind: item.head.kind(),
        text: item.head.text().map(Into::into),
        decode,
    };
    let book = items[Member::Book as usize].filter(|it| matches!(it.head, PackToken::Map(1..)));
    let book = book.map(|it| pick(&mut PackReader::new(it.bytes), ["name", "uuid"]));
    Ok(Members {
        fields: items.map(|item| item.map(field)),
        book: book
            .transpose()?
            .map(|(items, _)| items.map(|item| item.map(field))),
    })
}

/// Reads the members of a map by their names, and whether some have only a key of bytes, as Python 2 wrote them.
fn pick<'a, const N: usize>(
    reader: &mut PackReader<'a>,
    names: [&str; N],
) -> Result<([Option<PackItem<'a>>; N], bool), RecordProblem> {
    let head = reader.token()?;
    let PackToken::Map(count) = head else {
        return Err(RecordProblem::NotMap(head.kind()));
    };
    let (mut items, mut has_byte_key) = ([None; N], [false; N]);
    for _ in 0..count {
        let (key, item) = (reader.key()?, reader.item()?);
        let named = |name: &&str| name.as_bytes() == key.as_bytes();
        if let Some(at) = names.iter().position(named) {
            let is_bytes = matches!(key, PackKey::Bytes(_));
            // To TaskFlow these are two keys, and it uses the text alone.
            if items[at].is_none() || has_byte_key[at] || !is_bytes {
                (items[at], has_byte_key[at]) = (Some(item), is_bytes);
            }
        }
    }
    Ok((items, has_byte_key.contains(&true)))
}

/// Decodes a validated value, or only these members of a map.
fn shown<const HAS_BYTE_TEXTS: bool>(value: &[u8], names: Option<&[&str]>) -> Option<Value> {
    let viewer = Viewer {
        has_byte_texts: HAS_BYTE_TEXTS,
    };
    let mut reader = PackReader::new(value);
    let Some(names) = names else {
        return viewer.show(&mut reader).ok();
    };
    let PackToken::Map(count) = reader.token().ok()? else {
        return None;
    };
    let mut found = Map::new();
    for _ in 0..count {
        let (name, item) = (viewer.key(reader.key().ok()?), reader.item().ok()?);
        if names.contains(&&*name) {
            let value = viewer.show(&mut PackReader::new(item.bytes));
            found.extend(value.ok().map(|value| (name.into_owned(), value)));
        }
    }
    Some(found.into())
}

fn created_on(
    members: &Members<'_>,
    notes: &mut Notes,
) -> Result<Option<DateTime<Utc>>, RecordProblem> {
    match read_time(members.require(Member::CreatedOn)?.bytes) {
        Ok(time) => Ok(Some(time)),
        // TaskFlow lists such a job.
        Err(problem @ (RecordProblem::NotTime(_) | RecordProblem::OtherZone(_))) => {
            notes.add(format!("created_on: {problem}"));
            Ok(None)
        }
        Err(problem) => Err(problem),
    }
}

fn sequence(members: &Members<'_>, notes: &mut Notes) -> Result<Option<i64>, RecordProblem> {
    match PackReader::new(members.require(Member::Sequence)?.bytes).token()? {
        PackToken::Signed(number) => return Ok(Some(number)),
        PackToken::Unsigned(number) => match i64::try_from(number) {
            Ok(number) => return Ok(Some(number)),
            Err(_) => notes.add(format!("the sequence is too large: {number}")),
        },
        other => notes.add(format!("the sequence is {}", other.kind())),
    }
    Ok(None)
}
