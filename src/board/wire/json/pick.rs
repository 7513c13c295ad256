//! Reads selected members of maps.

use super::token::{Item, Reader, Token};
use crate::board::wire::posting::Problem;

/// The requested members, the last of each name; `None` if the map is empty.
pub(super) type Picked<'a, const N: usize> = Option<[Option<Item<'a>>; N]>;

/// Reads a record, which must be a map, and validates all of it.
pub(super) fn record<'a, const N: usize>(
    bytes: &'a [u8],
    names: [&str; N],
) -> Result<Picked<'a, N>, Problem> {
    if bytes.is_empty() {
        return Err(Problem::Empty);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| Problem::NotUtf8)?;
    if text.starts_with('\u{feff}') {
        return Err(Problem::ByteOrderMark);
    }
    let mut reader = Reader::new(text);
    let picked = pick(&mut reader, names)?;
    reader.end()?;
    Ok(picked)
}

pub(super) fn map<'a, const N: usize>(
    item: Item<'a>,
    names: [&str; N],
) -> Result<Picked<'a, N>, Problem> {
    pick(&mut Reader::new(item.text), names)
}

fn pick<'a, const N: usize>(
    reader: &mut Reader<'a>,
    names: [&str; N],
) -> Result<Picked<'a, N>, Problem> {
    let head = reader.token()?;
    let Token::Map = head else {
        return Err(Problem::NotMap(head.kind()));
    };
    let mut picked = None;
    reader.members(|reader, key| {
        let picked = picked.get_or_insert([None; N]);
        let item = reader.item()?;
        let key = key.read();
        if let Some(at) = names.iter().position(|name| key.as_deref() == Some(name)) {
            picked[at] = Some(item);
        }
        Ok(())
    })?;
    Ok(picked)
}

pub(super) fn require<'a>(
    member: &'static str,
    item: Option<Item<'a>>,
) -> Result<Item<'a>, Problem> {
    match item {
        Some(item) => Ok(item),
        None => Err(Problem::Missing(member)),
    }
}
