//! Reads and edits the members of postings, in either encoding.

use std::{borrow::Cow, cmp::Reverse};

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::posting::{Limit, Notes, Posting, RecordProblem};
use crate::{
    board::Detail,
    job::{Book, Decode, Details, Edit, Priority},
};

/// The kinds of value that change how a member is read.
pub(super) const NULL: &str = "null";
pub(super) const MAP: &str = "a map";

#[derive(Clone)]
pub(super) struct MemberValue<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) weight: usize,
    pub(super) kind: &'static str,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) decode: Decode,
}

impl MemberValue<'_> {
    pub(super) fn require_small(&self, member: &'static str) -> Result<(), RecordProblem> {
        match self.bytes.len().max(self.weight) > Limit::SMALL {
            true => Err(RecordProblem::TooLarge(member)),
            false => Ok(()),
        }
    }

    /// Returns a text literally, and any other value as JSON.
    pub(super) fn words(self, member: &'static str) -> Result<String, RecordProblem> {
        self.require_small(member)?;
        Ok(match self.text {
            Some(text) => text.into_owned(),
            None => (self.decode)(self.bytes, None)
                .unwrap_or_default()
                .to_string(),
        })
    }
}

/// The members of a map by these names, in this order.
pub(super) type Fields<'a, const N: usize> = [Option<MemberValue<'a>>; N];

#[derive(Debug, Clone, Copy)]
pub(super) enum Member {
    Uuid,
    Name,
    Priority,
    CreatedOn,
    Details,
    Book,
    Sequence,
}

impl Member {
    pub(super) const COUNT: usize = Self::NAMES.len();

    pub(super) const NAMES: [&str; 7] = [
        "uuid",
        "name",
        "priority",
        "created_on",
        "details",
        "book",
        "sequence",
    ];

    pub(super) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// Adds a member with these bytes to a posting, given last, that lacks it.
type AddMember = fn(&mut Vec<u8>, Member, &[u8], &[u8]) -> Result<(), String>;

pub(super) struct Encoding {
    pub(super) members: for<'a> fn(&'a [u8]) -> Result<Members<'a>, RecordProblem>,
    pub(super) decode: fn(&[u8], Detail, Limit) -> Result<Posting, RecordProblem>,
    pub(super) encode: fn(&Value) -> Vec<u8>,
    pub(super) add: AddMember,
}

pub(super) struct Members<'a> {
    pub(super) fields: Fields<'a, { Member::COUNT }>,
    /// The name and the uuid of the book, unless it is an empty map.
    pub(super) book: Option<Fields<'a, 2>>,
}

impl<'a> Members<'a> {
    /// Reads a posting; two members differ between the encodings.
    ///
    /// Details beyond the limit are not read, whether requested or not.
    pub(super) fn posting(
        &self,
        detail: Detail,
        limit: Limit,
        created_on: impl FnOnce(&mut Notes) -> Result<Option<DateTime<Utc>>, RecordProblem>,
        sequence: impl FnOnce(&mut Notes) -> Result<Option<i64>, RecordProblem>,
    ) -> Result<Posting, RecordProblem> {
        let mut notes = Notes::default();
        let details = self.find(Member::Details);
        let length = details.map_or(0, |it| it.bytes.len());
        let is_oversized = details.is_some_and(|it| limit.is_exceeded(length, it.weight));
        if is_oversized {
            notes.add(limit.problem(length));
        }
        Ok(Posting {
            uuid: self.text(Member::Uuid, &mut notes)?,
            name: self.text(Member::Name, &mut notes)?,
            priority: self.priority()?,
            created_on: created_on(&mut notes)?,
            details: match (detail, details.filter(|it| it.kind != NULL)) {
                (Detail::Brief, _) => None,
                (Detail::Whole | Detail::Stored, _) if is_oversized => None,
                (Detail::Whole | Detail::Stored, Some(it)) => {
                    Some(Details::Stored(it.bytes.into(), it.decode))
                }
                (Detail::Whole | Detail::Stored, None) => Some(Value::from(Map::new()).into()),
            },
            is_oversized,
            book: self.book(&mut notes)?,
            sequence: sequence(&mut notes)?,
            problem: notes.0,
        })
    }

    pub(super) fn find(&self, member: Member) -> Option<&MemberValue<'a>> {
        self.fields[member as usize].as_ref()
    }

    pub(super) fn require(&self, member: Member) -> Result<&MemberValue<'a>, RecordProblem> {
        let field = self.find(member);
        field.ok_or_else(|| RecordProblem::Missing(member.name()))
    }

    fn text(&self, member: Member, notes: &mut Notes) -> Result<String, RecordProblem> {
        let (field, name) = (self.require(member)?, member.name());
        if field.text.is_none() {
            notes.add(format!("the {name} is {}", field.kind));
        }
        field.clone().words(name)
    }

    pub(super) fn priority(&self) -> Result<Priority, RecordProblem> {
        match self.find(Member::Priority) {
            None => Ok(Priority::default()),
            Some(MemberValue {
                text: Some(name), ..
            }) => Ok(name.parse()?),
            Some(other) => Err(RecordProblem::PriorityType(other.kind)),
        }
    }

    pub(super) fn book(&self, notes: &mut Notes) -> Result<Option<Book>, RecordProblem> {
        if let Some(field) = self.find(Member::Book)
            && ![NULL, MAP].contains(&field.kind)
        {
            notes.add(format!("the book is {}", field.kind));
        }
        let Some(parts) = self.book.clone() else {
            return Ok(None);
        };
        let words =
            |it: Option<MemberValue<'_>>| it.map_or(Ok(String::new()), |it| it.words("book"));
        let [name, uuid] = parts.map(words);
        Ok(Some(Book {
            name: name?,
            uuid: uuid?,
        }))
    }
}

/// Applies an edit to a posting; all else keeps its bytes.
pub(super) fn edited(
    encoding: &Encoding,
    posting: &[u8],
    edit: &Edit,
    limit: Limit,
) -> Result<Vec<u8>, String> {
    let text = |problem: RecordProblem| problem.to_string();
    let read = (encoding.decode)(posting, Detail::Whole, limit).map_err(text)?;
    let details = edit.details(read.details.as_ref().map(Details::value).as_deref())?;
    let members = (encoding.members)(posting).map_err(text)?;
    let wanted = [
        (Member::Name, edit.name.as_deref().map(Value::from)),
        (Member::Priority, edit.priority.map(|it| it.name().into())),
        (Member::Details, details),
    ];
    let (mut edited, mut places) = (posting.to_vec(), Vec::new());
    for (member, value) in wanted {
        let Some(value) = value.as_ref().map(encoding.encode) else {
            continue;
        };
        match members.find(member) {
            Some(field) => {
                let start = field.bytes.as_ptr().addr() - posting.as_ptr().addr();
                places.push((start..start + field.bytes.len(), value));
            }
            None => (encoding.add)(&mut edited, member, &value, posting)?,
        }
    }
    // From the last to the first, so that the other offsets stay valid.
    places.sort_by_key(|(place, _)| Reverse(place.start));
    for (place, value) in places {
        edited.splice(place, value);
    }
    let read = (encoding.decode)(&edited, Detail::Brief, limit).map_err(text)?;
    match read.is_oversized {
        true => Err(read.problem.unwrap_or_default()),
        false => Ok(edited),
    }
}
