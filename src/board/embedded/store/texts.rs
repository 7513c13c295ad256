//! Reads bounded texts of any row.

use rusqlite::{Row, types::ValueRef};

use crate::job::Owner;

pub(crate) fn text_of(row: &Row<'_>, at: usize) -> rusqlite::Result<String> {
    Ok(text_or_none(row, at)?.unwrap_or_default())
}

pub(crate) fn text_or_none(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<String>> {
    let bytes = bytes_or_none(row, at)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Reads a text for display. Its length replaces a long one.
pub(crate) fn bytes_or_none(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Vec<u8>>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Null => None,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) if bytes.len() <= Owner::MAX_BYTES => {
            Some(bytes.to_vec())
        }
        other => Some(format!("({} bytes)", length_of(other)).into()),
    })
}

/// Returns the length of a text. [`BoardView::bounded`](super::transaction::BoardView::bounded) selects a number, the
/// length, instead of a long text.
pub(crate) fn length_of(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        ValueRef::Integer(length) => usize::try_from(length).unwrap_or(usize::MAX),
        ValueRef::Null | ValueRef::Real(_) => 0,
    }
}
