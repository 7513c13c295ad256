//! Reads postings of any writer.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::{
    extension::bytes,
    stored::Stored,
    time::read_time,
    token::{Item, Key, Reader, Token},
    value::Viewer,
};
use crate::{
    board::{
        Detail,
        wire::posting::{Limit, Notes, Posting, Problem},
    },
    job::{Book, Details, Edit, Priority},
};

/// Reads a posting.
///
/// All of it is validated, including members that are not requested or not used here. A posting that TaskFlow rejects
/// is a problem, unless its meaning is plain: byte texts of Python 2.
///
/// Details beyond the limit are not read, whether requested or not.
pub(crate) fn decode(bytes: &[u8], detail: Detail, limit: Limit) -> Result<Posting, Problem> {
    let members = Members::read(bytes)?;
    let mut notes = Notes::default();
    let is_oversized = members.has_oversized_details(limit, &mut notes);
    Ok(Posting {
        uuid: members.text(Member::Uuid, &mut notes)?,
        name: members.text(Member::Name, &mut notes)?,
        priority: members.priority()?,
        created_on: members.created_on(&mut notes)?,
        details: match detail {
            Detail::Whole | Detail::Stored if !is_oversized => Some(members.details()?),
            Detail::Brief | Detail::Whole | Detail::Stored => None,
        },
        is_oversized,
        book: members.book(&mut notes)?,
        sequence: members.sequence(&mut notes)?,
        problem: notes.into_problem(),
    })
}

/// Reads the priority and the number of a posting; fails whenever [`decode`] fails.
pub(crate) fn rank(bytes: &[u8]) -> Result<(Priority, Option<i64>), Problem> {
    let (members, mut notes) = (Members::read(bytes)?, Notes::default());
    members.small(Member::Uuid)?;
    members.small(Member::Name)?;
    members.created_on(&mut notes)?;
    members.book(&mut notes)?;
    Ok((members.priority()?, members.sequence(&mut notes)?))
}

/// Splits a posting at its number: the bytes before, the number as stored, and the bytes after. `None` without a
/// number.
pub(crate) fn around_number(posting: &[u8]) -> Option<[&[u8]; 3]> {
    let number = Members::read(posting).ok()?.find(Member::Sequence)?.bytes;
    let start = number.as_ptr().addr() - posting.as_ptr().addr();
    let (head, rest) = posting.split_at(start);
    let (number, tail) = rest.split_at(number.len());
    Some([head, number, tail])
}

/// Applies an edit to a posting; all else keeps its bytes.
pub(crate) fn edited(posting: &[u8], edit: &Edit, limit: Limit) -> Result<Vec<u8>, String> {
    let read = decode(posting, Detail::Whole, limit).map_err(|problem| problem.to_string())?;
    let details = edit.details(read.details.as_ref().map(Details::value).as_deref())?;
    let members = Members::read(posting).map_err(|problem| problem.to_string())?;
    let wanted = [
        (Member::Name, edit.name.as_ref().map(bytes)),
        (Member::Priority, edit.priority.map(|it| bytes(&it.name()))),
        (
            Member::Details,
            details.as_ref().map(|it| bytes(&Stored(it))),
        ),
    ];
    let mut edited = posting.to_vec();
    // From the last to the first, so that the other offsets stay valid.
    let mut places = Vec::new();
    for (member, value) in wanted
        .into_iter()
        .filter_map(|(member, it)| Some((member, it?)))
    {
        match members.find(member) {
            Some(item) => {
                let start = item.bytes.as_ptr().addr() - posting.as_ptr().addr();
                places.push((start..start + item.bytes.len(), value));
            }
            None => add(&mut edited, member, &value)?,
        }
    }
    places.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
    for (place, value) in places {
        edited.splice(place, value);
    }
    let read = decode(&edited, Detail::Brief, limit).map_err(|problem| problem.to_string())?;
    match read.is_oversized {
        true => Err(read.problem.unwrap_or_default()),
        false => Ok(edited),
    }
}

/// Adds a member to a map; a posting without it is small enough for a one-byte header.
fn add(posting: &mut Vec<u8>, member: Member, value: &[u8]) -> Result<(), String> {
    let 0x80..=0x8e = posting[0] else {
        return Err(format!(
            "the record has no `{}`, and no room to add it",
            member.name()
        ));
    };
    posting[0] += 1;
    posting.extend(bytes(&member.name()));
    posting.extend(value);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Member {
    Uuid,
    Name,
    Priority,
    CreatedOn,
    Details,
    Book,
    Sequence,
}

impl Member {
    const COUNT: usize = 7;

    fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"uuid" => Self::Uuid,
            b"name" => Self::Name,
            b"priority" => Self::Priority,
            b"created_on" => Self::CreatedOn,
            b"details" => Self::Details,
            b"book" => Self::Book,
            b"sequence" => Self::Sequence,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Uuid => "uuid",
            Self::Name => "name",
            Self::Priority => "priority",
            Self::CreatedOn => "created_on",
            Self::Details => "details",
            Self::Book => "book",
            Self::Sequence => "sequence",
        }
    }
}

/// Decodes a validated value, or only these members of a map.
fn shown<const HAS_BYTE_TEXTS: bool>(value: &[u8], names: Option<&[&str]>) -> Option<Value> {
    let (viewer, mut reader) = (Viewer::new(HAS_BYTE_TEXTS), Reader::new(value));
    let Some(names) = names else {
        return viewer.show(&mut reader).ok();
    };
    let Token::Map(count) = reader.token().ok()? else {
        return None;
    };
    let mut found = Map::new();
    for _ in 0..count {
        let (name, item) = (viewer.key(reader.key().ok()?), reader.item().ok()?);
        if names.contains(&name.as_str()) {
            let value = viewer.show(&mut Reader::new(item.bytes));
            found.extend(value.ok().map(|value| (name, value)));
        }
    }
    Some(found.into())
}

struct Members<'a> {
    items: [Option<Item<'a>>; Member::COUNT],
    /// Whether some member has only a key of bytes, as Python 2 wrote them.
    has_byte_keys: bool,
}

impl<'a> Members<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        if bytes.is_empty() {
            return Err(Problem::Empty);
        }
        let mut reader = Reader::new(bytes);
        let root = reader.token()?;
        let Token::Map(count) = root else {
            return Err(Problem::NotMap(root.kind()));
        };
        let mut items = [None; Member::COUNT];
        let mut has_byte_key = [false; Member::COUNT];
        for _ in 0..count {
            let key = reader.key()?;
            let item = reader.item()?;
            if let Some(member) = Member::of(key.as_bytes()) {
                let at = member as usize;
                let is_bytes = matches!(key, Key::Bytes(_));
                // To TaskFlow these are two keys, and it uses the text alone.
                if items[at].is_none() || has_byte_key[at] || !is_bytes {
                    (items[at], has_byte_key[at]) = (Some(item), is_bytes);
                }
            }
        }
        reader.end()?;
        Ok(Self {
            items,
            has_byte_keys: has_byte_key.contains(&true),
        })
    }

    fn find(&self, member: Member) -> Option<Item<'a>> {
        self.items[member as usize]
    }

    fn require(&self, member: Member) -> Result<Item<'a>, Problem> {
        let item = self.find(member);
        item.ok_or_else(|| Problem::Missing(member.name()))
    }

    fn show(&self, item: Item<'_>) -> Result<Value, Problem> {
        Viewer::new(self.has_byte_keys).show(&mut Reader::new(item.bytes))
    }

    fn small(&self, member: Member) -> Result<Item<'a>, Problem> {
        let item = self.require(member)?;
        Limit::small(member.name(), item.bytes.len(), item.weight)?;
        Ok(item)
    }

    fn text(&self, member: Member, notes: &mut Notes) -> Result<String, Problem> {
        let item = self.small(member)?;
        if item.head.text().is_none() {
            notes.add(format!("the {} is {}", member.name(), item.head.kind()));
        }
        self.words(item)
    }

    /// Returns a text unchanged, and any other value as JSON.
    fn words(&self, item: Item<'_>) -> Result<String, Problem> {
        match item.head.text() {
            Some(text) => Ok(text.to_owned()),
            None => Ok(self.show(item)?.to_string()),
        }
    }

    fn priority(&self) -> Result<Priority, Problem> {
        let Some(Item { head, .. }) = self.find(Member::Priority) else {
            return Ok(Priority::default());
        };
        let name = head.text();
        let name = name.ok_or_else(|| Problem::PriorityType(head.kind()))?;
        Ok(name.parse()?)
    }

    fn created_on(&self, notes: &mut Notes) -> Result<Option<DateTime<Utc>>, Problem> {
        match read_time(self.require(Member::CreatedOn)?.bytes) {
            Ok(time) => Ok(Some(time)),
            // TaskFlow lists such a job.
            Err(problem @ (Problem::NotTime(_) | Problem::OtherZone(_))) => {
                notes.add(format!("created_on: {problem}"));
                Ok(None)
            }
            Err(problem) => Err(problem),
        }
    }

    fn has_oversized_details(&self, limit: Limit, notes: &mut Notes) -> bool {
        let Some(item) = self.find(Member::Details) else {
            return false;
        };
        let length = item.bytes.len();
        let is_oversized = limit.is_exceeded(length, item.weight);
        if is_oversized {
            notes.add(limit.problem(length));
        }
        is_oversized
    }

    fn details(&self) -> Result<Details, Problem> {
        match self.find(Member::Details) {
            Some(item) if !matches!(item.head, Token::Null) => {
                let decode = match self.has_byte_keys {
                    true => shown::<true>,
                    false => shown::<false>,
                };
                Ok(Details::Stored(item.bytes.into(), decode))
            }
            _ => Ok(Value::from(Map::new()).into()),
        }
    }

    fn book(&self, notes: &mut Notes) -> Result<Option<Book>, Problem> {
        let Some(item) = self.find(Member::Book) else {
            return Ok(None);
        };
        match item.head {
            Token::Null | Token::Map(0) => Ok(None),
            Token::Map(count) => self.book_of(count, item).map(Some),
            other => {
                notes.add(format!("the book is {}", other.kind()));
                Ok(None)
            }
        }
    }

    fn book_of(&self, count: u32, item: Item<'_>) -> Result<Book, Problem> {
        let mut book = Book {
            name: String::new(),
            uuid: String::new(),
        };
        let mut reader = Reader::new(item.bytes);
        reader.token()?;
        for _ in 0..count {
            let key = reader.key()?;
            let value = reader.item()?;
            let text = match key.as_bytes() {
                b"name" => &mut book.name,
                b"uuid" => &mut book.uuid,
                _ => continue,
            };
            Limit::small("book", value.bytes.len(), value.weight)?;
            *text = self.words(value)?;
        }
        Ok(book)
    }

    fn sequence(&self, notes: &mut Notes) -> Result<Option<i64>, Problem> {
        match self.require(Member::Sequence)?.head {
            Token::Signed(number) => return Ok(Some(number)),
            Token::Unsigned(number) => match i64::try_from(number) {
                Ok(number) => return Ok(Some(number)),
                Err(_) => notes.add(format!("the sequence is too large: {number}")),
            },
            other => notes.add(format!("the sequence is {}", other.kind())),
        }
        Ok(None)
    }
}
