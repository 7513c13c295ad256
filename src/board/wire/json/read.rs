//! Reads postings of any writer.

use super::{
    token::{JsonItem, JsonReader, JsonToken},
    value::shown,
    write::bytes,
};
use crate::{
    board::{
        Detail,
        wire::{
            members::{self, Encoding, Member, MemberValue, Members},
            posting::{Limit, Posting, RecordProblem},
        },
    },
    job::Edit,
};

/// Reads a posting. Its number and time come from its node.
///
/// All of it is validated, including members that are not requested or not used here.
pub(crate) fn decode(bytes: &[u8], detail: Detail, limit: Limit) -> Result<Posting, RecordProblem> {
    members(bytes)?.posting(detail, limit, |_| Ok(None), |_| Ok(None))
}

pub(crate) fn edited(posting: &[u8], edit: &Edit, limit: Limit) -> Result<Vec<u8>, String> {
    let encoding = Encoding {
        members,
        decode,
        encode: |value| bytes(value),
        add: |edited, member, value, posting| {
            let end = posting.iter().rposition(|byte| *byte == b'}');
            let end = end.unwrap_or_default();
            let text = [format!(", \"{}\": ", member.name()).as_bytes(), value].concat();
            edited.splice(end..end, text);
            Ok(())
        },
    };
    members::edited(&encoding, posting, edit, limit)
}

/// Returns the approximate memory of a JSON text once decoded, in bytes.
pub(crate) fn weight(text: &str) -> Result<usize, RecordProblem> {
    Ok(JsonReader::new(text).item()?.weight)
}

fn members(posting: &[u8]) -> Result<Members<'_>, RecordProblem> {
    let items = record(posting, Member::NAMES)?.ok_or(RecordProblem::Gone)?;
    let book = items[Member::Book as usize].filter(|item| matches!(item.head, JsonToken::Map));
    let book = book.map(|item| map(item, ["name", "uuid"]));
    Ok(Members {
        fields: items.map(|item| item.map(MemberValue::from)),
        book: (book.transpose()?.flatten())
            .map(|parts| parts.map(|item| item.map(MemberValue::from))),
    })
}

impl<'a> From<JsonItem<'a>> for MemberValue<'a> {
    fn from(item: JsonItem<'a>) -> Self {
        Self {
            bytes: item.text.as_bytes(),
            weight: item.weight,
            kind: item.head.kind(),
            text: match item.head {
                JsonToken::Text(text) => Some(text.read()),
                _ => None,
            },
            decode: shown,
        }
    }
}

/// The requested members, the last of each name; `None` if the map is empty.
pub(super) type Picked<'a, const N: usize> = Option<[Option<JsonItem<'a>>; N]>;

/// Reads a record, which must be a map, and validates all of it.
pub(super) fn record<'a, const N: usize>(
    bytes: &'a [u8],
    names: [&str; N],
) -> Result<Picked<'a, N>, RecordProblem> {
    if bytes.is_empty() {
        return Err(RecordProblem::Empty);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| RecordProblem::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(RecordProblem::ByteOrderMark);
    }
    let mut reader = JsonReader::new(text);
    let picked = pick(&mut reader, names)?;
    reader.end()?;
    Ok(picked)
}

pub(super) fn map<'a, const N: usize>(
    item: JsonItem<'a>,
    names: [&str; N],
) -> Result<Picked<'a, N>, RecordProblem> {
    pick(&mut JsonReader::new(item.text), names)
}

fn pick<'a, const N: usize>(
    reader: &mut JsonReader<'a>,
    names: [&str; N],
) -> Result<Picked<'a, N>, RecordProblem> {
    let head = reader.token()?;
    let JsonToken::Map = head else {
        return Err(RecordProblem::NotMap(head.kind()));
    };
    let mut picked = None;
    reader.members(|reader, key| {
        let picked = picked.get_or_insert([None; N]);
        let item = reader.item()?;
        let key = key.read();
        if let Some(at) = names.iter().position(|name| key == *name) {
            picked[at] = Some(item);
        }
        Ok(())
    })?;
    Ok(picked)
}

pub(super) fn require<'a>(
    member: &'static str,
    item: Option<JsonItem<'a>>,
) -> Result<JsonItem<'a>, RecordProblem> {
    item.ok_or(RecordProblem::Missing(member))
}
