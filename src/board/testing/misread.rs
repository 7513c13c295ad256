//! What a board of each kind would read differently from a draft.

use crate::{
    board::{
        contradiction,
        url::BoardKind,
        wire::{json, msgpack, sidecar::Sidecar},
    },
    job::Draft,
};

pub(crate) fn misread(kind: BoardKind, draft: &Draft) -> Option<String> {
    let former = draft.former.as_deref();
    let raw = match kind {
        BoardKind::Embedded => draft.details.value().to_string().into_bytes(),
        BoardKind::Redis => {
            let created_on = former.and_then(|former| former.created_on);
            let sequence = former.and_then(|former| former.sequence);
            let posting = msgpack::encode(draft, created_on.unwrap_or_default());
            let sequence = sequence.map_or(1, i64::unsigned_abs);
            [posting, msgpack::sequence(sequence)].concat()
        }
        BoardKind::ZooKeeper => json::encode(draft),
    };
    let companions = former.and_then(Sidecar::of_former);
    let companions = companions.and_then(|side| Sidecar::read(Some(&side.write())).1);
    contradiction(kind, &raw, draft, 1 << 20).or(companions)
}
