//! Compares stored postings with their drafts.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    json, msgpack,
    posting::{Limit, Posting, RecordProblem},
};
use crate::{
    board::{Detail, url::BoardKind},
    job::{Details, Draft},
};

/// Returns how a board of this kind would read the stored bytes differently from the draft.
///
/// Details above `max_details` are not compared if the draft has none.
pub(crate) fn contradiction(
    kind: BoardKind,
    raw: &[u8],
    draft: &Draft,
    max_details: u64,
) -> Option<String> {
    let is_unread = are_unread(draft);
    let limit = match is_unread {
        true => Limit::of(max_details),
        false => Limit::USUAL,
    };
    let differs = match kind {
        BoardKind::Embedded if is_unread && is_too_large(raw, limit) => {
            serde_json::from_slice::<IgnoredAny>(raw)
                .map(|_| None)
                .map_err(|error| format!("the stored details are unreadable: {error}"))
        }
        BoardKind::Embedded => serde_json::from_slice::<Value>(raw)
            .map(|stored| (stored != *draft.details.value()).then_some("details"))
            .map_err(|error| format!("the stored details are unreadable: {error}")),
        BoardKind::Redis => difference(msgpack::decode(raw, Detail::Whole, limit), draft),
        BoardKind::ZooKeeper => difference(json::decode(raw, Detail::Whole, limit), draft),
    };
    match differs {
        Ok(member) => member.map(|it| format!("the stored record has a different `{it}`")),
        Err(problem) => Some(problem),
    }
}

fn difference(
    stored: Result<Posting, RecordProblem>,
    draft: &Draft,
) -> Result<Option<&'static str>, String> {
    let stored = stored.map_err(|problem| problem.to_string())?;
    let is_other_uuid = stored.uuid != draft.uuid.to_string();
    let former = draft.former.as_deref();
    let numbers = stored.sequence.zip(former.and_then(|it| it.sequence));
    let times = stored.created_on.zip(former.and_then(|it| it.created_on));
    let has_other_details = match stored.details {
        Some(details) => details != draft.details,
        None => !are_unread(draft),
    };
    let members = [
        (is_other_uuid, "uuid"),
        (stored.name != draft.name, "name"),
        (stored.priority != draft.priority, "priority"),
        (stored.book != draft.book, "book"),
        (has_other_details, "details"),
        (numbers.is_some_and(|(it, former)| it != former), "sequence"),
        (times.is_some_and(|(it, former)| it != former), "created_on"),
    ];
    let mut members = members.into_iter();
    Ok(members.find_map(|(differs, member)| differs.then_some(member)))
}

fn is_too_large(details: &[u8], limit: Limit) -> bool {
    let length = details.len();
    let weight = || {
        str::from_utf8(details)
            .ok()
            .and_then(|it| json::weight(it).ok())
    };
    limit.is_exceeded(length, 0)
        || limit.may_be_exceeded(length)
            && weight().is_some_and(|weight| limit.is_exceeded(length, weight))
}

/// Whether only the stored bytes can have the details.
fn are_unread(draft: &Draft) -> bool {
    matches!(draft.details, Details::Decoded(Value::Null))
}
