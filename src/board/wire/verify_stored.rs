//! Compares stored postings with their drafts.

use serde_json::Value;

use super::{
    json, msgpack,
    posting::{Limit, Posting},
};
use crate::{
    board::{Detail, url::BoardKind},
    job::Draft,
};

/// Returns how a board of this kind would read the stored bytes differently from the draft.
pub(crate) fn contradiction(kind: BoardKind, raw: &[u8], draft: &Draft) -> Option<String> {
    let differs = match kind {
        BoardKind::Embedded => match serde_json::from_slice::<Value>(raw) {
            Ok(stored) => (stored != *draft.details.value()).then_some("details"),
            Err(error) => return Some(format!("the stored details are unreadable: {error}")),
        },
        BoardKind::Redis => match msgpack::decode(raw, Detail::Whole, Limit::USUAL) {
            Ok(stored) => difference(stored, draft),
            Err(problem) => return Some(problem.to_string()),
        },
        BoardKind::ZooKeeper => match json::decode(raw, Detail::Whole, Limit::USUAL) {
            Ok(stored) => difference(stored, draft),
            Err(problem) => return Some(problem.to_string()),
        },
    };
    differs.map(|member| format!("the stored record has a different `{member}`"))
}

fn difference(stored: Posting, draft: &Draft) -> Option<&'static str> {
    let is_other_uuid = stored.uuid != draft.uuid.to_string();
    let former = draft.former.as_deref();
    let sequence = stored
        .sequence
        .and(former.and_then(|former| former.sequence));
    let created_on = stored
        .created_on
        .and(former.and_then(|former| former.created_on));
    let is_other_text = stored
        .details
        .is_some_and(|details| details != draft.details);
    [
        (is_other_uuid, "uuid"),
        (stored.name != draft.name, "name"),
        (stored.priority != draft.priority, "priority"),
        (stored.book != draft.book, "book"),
        (is_other_text, "details"),
        (
            sequence.is_some_and(|it| stored.sequence != Some(it)),
            "sequence",
        ),
        (
            created_on.is_some_and(|it| stored.created_on != Some(it)),
            "created_on",
        ),
    ]
    .into_iter()
    .find_map(|(differs, member)| differs.then_some(member))
}
