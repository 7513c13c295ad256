//! Reads postings of any writer.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    pick::{map, record, require},
    token::{Item, Reader, Token},
    value::{show, shown},
    write::bytes,
};
use crate::{
    board::{
        Detail,
        wire::posting::{Limit, Notes, Posting, Problem},
    },
    job::{Book, Details, Edit, Priority},
};

/// Reads a posting. Its number and time come from its node.
///
/// All of it is validated, including members that are not requested or not used here. Details beyond the limit are
/// not read, whether requested or not.
pub(crate) fn decode(bytes: &[u8], detail: Detail, limit: Limit) -> Result<Posting, Problem> {
    let names = ["uuid", "name", "priority", "details", "book"];
    let [uuid, name, priority, details, book] = record(bytes, names)?.ok_or(Problem::Gone)?;
    let mut notes = Notes::default();
    let length = details.map_or(0, |item| item.text.len());
    let is_oversized = details.is_some_and(|item| limit.is_exceeded(length, item.weight));
    if is_oversized {
        notes.add(limit.problem(length));
    }
    Ok(Posting {
        uuid: text_of("uuid", uuid, &mut notes)?,
        name: text_of("name", name, &mut notes)?,
        priority: priority_of(priority)?,
        created_on: None,
        details: match detail {
            Detail::Whole | Detail::Stored if !is_oversized => Some(details_of(details)?),
            Detail::Brief | Detail::Whole | Detail::Stored => None,
        },
        is_oversized,
        book: book_of(book, &mut notes)?,
        sequence: None,
        problem: notes.into_problem(),
    })
}

/// Applies an edit to a posting; all else keeps its bytes.
pub(crate) fn edited(posting: &[u8], edit: &Edit, limit: Limit) -> Result<Vec<u8>, String> {
    let read = decode(posting, Detail::Whole, limit).map_err(|problem| problem.to_string())?;
    let details = edit.details(read.details.as_ref().map(Details::value).as_deref())?;
    let names = ["name", "priority", "details"];
    let found = record(posting, names).map_err(|problem| problem.to_string())?;
    let wanted = [
        edit.name.as_ref().map(bytes),
        edit.priority.map(|it| bytes(&it.name())),
        details.as_ref().map(bytes),
    ];
    let wanted = names.into_iter().zip(found.unwrap_or_default()).zip(wanted);
    let end = posting
        .iter()
        .rposition(|byte| *byte == b'}')
        .unwrap_or_default();
    let mut places = Vec::new();
    for ((name, item), value) in wanted {
        match (item, value) {
            (Some(item), Some(value)) => {
                let start = item.text.as_ptr().addr() - posting.as_ptr().addr();
                places.push((start..start + item.text.len(), value));
            }
            (None, Some(value)) => {
                let member = [format!(", \"{name}\": ").as_bytes(), &value].concat();
                places.push((end..end, member));
            }
            (_, None) => {}
        }
    }
    // From the last to the first, so that the other offsets stay valid.
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    let mut edited = posting.to_vec();
    for (place, value) in places {
        edited.splice(place, value);
    }
    let read = decode(&edited, Detail::Brief, limit).map_err(|problem| problem.to_string())?;
    match read.is_oversized {
        true => Err(read.problem.unwrap_or_default()),
        false => Ok(edited),
    }
}

/// Returns the approximate memory of a JSON text once decoded, in bytes.
pub(crate) fn weight(text: &str) -> Result<usize, Problem> {
    Ok(Reader::new(text).item()?.weight)
}

/// Returns a required text, and notes a problem if it is missing.
fn text_of(
    member: &'static str,
    item: Option<Item<'_>>,
    notes: &mut Notes,
) -> Result<String, Problem> {
    let item = require(member, item)?;
    match item.head {
        Token::Text(text) if text.read().is_some() => {}
        Token::Text(_) => notes.add(format!("the {member} contains half of a surrogate pair")),
        other => notes.add(format!("the {member} is {}", other.kind())),
    }
    words(member, item)
}

/// Returns a text literally, or escaped as on the board, and any other value as JSON.
pub(super) fn words(member: &'static str, item: Item<'_>) -> Result<String, Problem> {
    Limit::small(member, item.text.len(), item.weight)?;
    Ok(match item.head {
        Token::Text(text) => text.read().map_or_else(|| text.escaped(), Cow::into_owned),
        _ => show(item)?.to_string(),
    })
}

fn priority_of(item: Option<Item<'_>>) -> Result<Priority, Problem> {
    match item.map(|item| item.head) {
        None => Ok(Priority::default()),
        Some(Token::Text(text)) => {
            let name = text.read().unwrap_or_else(|| text.escaped().into());
            Ok(name.parse()?)
        }
        Some(other) => Err(Problem::PriorityType(other.kind())),
    }
}

fn details_of(item: Option<Item<'_>>) -> Result<Details, Problem> {
    Ok(match item {
        Some(item) if !matches!(item.head, Token::Null) => {
            Details::Stored(item.text.as_bytes().into(), shown)
        }
        _ => Value::from(Map::new()).into(),
    })
}

fn book_of(item: Option<Item<'_>>, notes: &mut Notes) -> Result<Option<Book>, Problem> {
    let Some(item) = item else {
        return Ok(None);
    };
    match item.head {
        Token::Null => Ok(None),
        Token::Map => match map(item, ["name", "uuid"])? {
            Some(parts) => book_with(parts).map(Some),
            None => Ok(None),
        },
        other => {
            notes.add(format!("the book is {}", other.kind()));
            Ok(None)
        }
    }
}

fn book_with(parts: [Option<Item<'_>>; 2]) -> Result<Book, Problem> {
    let [name, uuid] =
        parts.map(|part| part.map_or_else(|| Ok(String::new()), |part| words("book", part)));
    Ok(Book {
        name: name?,
        uuid: uuid?,
    })
}
