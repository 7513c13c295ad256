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
pub(crate) fn contradiction(kind: BoardKind, raw: &[u8], draft: &Draft) -> Option<String> {
    let differs = match kind {
        BoardKind::Embedded if are_unread(draft) => serde_json::from_slice::<IgnoredAny>(raw)
            .map(|_| None)
            .map_err(|error| format!("the stored details are unreadable: {error}")),
        BoardKind::Embedded => serde_json::from_slice::<Value>(raw)
            .map(|stored| (stored != *draft.details.value()).then_some("details"))
            .map_err(|error| format!("the stored details are unreadable: {error}")),
        BoardKind::Redis => difference(msgpack::decode(raw, Detail::Whole, Limit::USUAL), draft),
        BoardKind::ZooKeeper => difference(json::decode(raw, Detail::Whole, Limit::USUAL), draft),
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
    let details = stored.details.filter(|_| !are_unread(draft));
    let members = [
        (is_other_uuid, "uuid"),
        (stored.name != draft.name, "name"),
        (stored.priority != draft.priority, "priority"),
        (stored.book != draft.book, "book"),
        (details.is_some_and(|it| it != draft.details), "details"),
        (numbers.is_some_and(|(it, former)| it != former), "sequence"),
        (times.is_some_and(|(it, former)| it != former), "created_on"),
    ];
    let mut members = members.into_iter();
    Ok(members.find_map(|(differs, member)| differs.then_some(member)))
}

/// Whether only the stored bytes have the details, because they were too large to read.
fn are_unread(draft: &Draft) -> bool {
    matches!(draft.details, Details::Decoded(Value::Null))
}
