//! Decodes a posting and the keys beside it.

use std::time::Duration;

use crate::{
    board::{
        Detail,
        redis::{keys::key_of, link::bounded::size_unread},
        wire::{
            msgpack,
            posting::{Limit, together},
            sidecar::Sidecar,
        },
    },
    job::{ClaimEnd, Entry, Holding, Job, Location, Malformed, Owner},
};

/// The values that Redis stores beside a posting.
#[derive(Debug, Clone, Default)]
pub(crate) struct CompanionValues {
    /// Present while the job is claimed; empty if the value is no text.
    pub(crate) owner: Option<Vec<u8>>,
    /// How long the claim still lasts; `None` if it never expires.
    pub(crate) left: Option<Duration>,
    pub(crate) last_modified: Option<Vec<u8>>,
    pub(crate) side: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) location: Location,
    pub(crate) detail: Detail,
    pub(crate) limit: Limit,
}

pub(crate) fn read(
    reading: Reading,
    field: &[u8],
    posting: &[u8],
    companions: CompanionValues,
) -> Entry {
    let mut entry = posted(reading, field, posting);
    complete(&mut entry, companions);
    entry
}

pub(crate) fn posted(reading: Reading, field: &[u8], posting: &[u8]) -> Entry {
    let detail = reading.detail;
    let unread = size_unread(posting);
    let read = match (size_unread(field), unread) {
        (Some(size), _) => Err(format!(
            "the name of its field has {size} bytes, too many to read"
        )),
        (_, Some(size)) => Err(format!("the record has {size} bytes, too many to read")),
        _ => msgpack::decode(posting, detail, reading.limit).map_err(|problem| problem.to_string()),
    };
    match read {
        Ok(read) => {
            let raw = detail.raw(posting, !(read.is_oversized && detail.is_whole()));
            Entry::Job(Box::new(Job {
                location: reading.location,
                is_misnamed: field != read.uuid.as_bytes(),
                raw,
                ..read.into_job(key_of(field), posting.len())
            }))
        }
        Err(problem) => Entry::Malformed(Malformed {
            size: unread.unwrap_or(posting.len()) as u64,
            raw: detail.raw(if unread.is_some() { &[] } else { posting }, false),
            ..Malformed::new(key_of(field), problem)
        }),
    }
}

pub(crate) fn complete(entry: &mut Entry, companions: CompanionValues) {
    match entry {
        Entry::Job(job) => complete_job(job, companions),
        Entry::Malformed(record) => {
            let (side, _) = Sidecar::read(companions.side.as_deref());
            record.holding = holding(&companions, &side);
        }
    }
}

fn holding(companions: &CompanionValues, side: &Sidecar) -> Option<Holding> {
    let name = companions.owner.as_deref()?;
    let owner = Some(name)
        .filter(|name| (1..=Owner::MAX_BYTES).contains(&name.len()) && size_unread(name).is_none())
        .map(Owner::from_stored);
    // The sidecar's claim data describe our claims, not a peer's.
    let is_ours = owner
        .as_ref()
        .is_some_and(|owner| side.owner.as_deref() == Some(&owner.text()));
    Some(Holding {
        owner,
        end: companions.left.map_or(ClaimEnd::Never, |_| ClaimEnd::Timed),
        expires_in: companions.left,
        outlives: None,
        claimed_on: side.claimed_on.filter(|_| is_ours),
        fence: side.fence.clone().filter(|_| is_ours),
    })
}

fn complete_job(job: &mut Job, companions: CompanionValues) {
    let (mut side, side_problem) = Sidecar::read(companions.side.as_deref());
    let modified = companions.last_modified.as_deref();
    // TaskFlow treats an empty value as missing.
    let modified = modified
        .filter(|bytes| !bytes.is_empty())
        .map(msgpack::read_time);
    let modified_problem = modified
        .as_ref()
        .and_then(|time| time.as_ref().err())
        .map(|problem| format!("the modification time is unreadable: {problem}"));
    job.last_modified = modified.and_then(std::result::Result::ok).max(
        job.created_on
            .filter(|_| companions.last_modified.is_some()),
    );
    // TaskFlow stores no other time for its trash, and changes this one no more.
    let trashed_on = side.trashed_on.or(job.last_modified);
    job.trashed_on = trashed_on.filter(|_| job.location == Location::Trash);
    job.holding = holding(&companions, &side);
    if (job.holding.as_ref()).is_some_and(|held| held.fence.is_some()) {
        // While the job is claimed, its command may be running.
        side.count_ahead();
    }
    let owner_problem = (job.holding.as_ref())
        .filter(|holding| holding.owner.is_none())
        .map(|_| "the job is claimed, but its owner key contains no name".to_owned());
    job.is_unfit |= side_problem.is_some();
    job.attempts = side.into_attempts();
    job.problem = together([
        job.problem.take(),
        owner_problem,
        modified_problem,
        side_problem,
    ]);
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::{
        job::{Draft, Priority},
        untrusted::{Answer, Bounds, Corpus, refused, same},
    };

    fn parts(mut input: &[u8]) -> [&[u8]; 5] {
        std::array::from_fn(|at| {
            let length = match (at, input.split_first()) {
                (4, _) | (_, None) => input.len(),
                (_, Some((length, behind))) => {
                    input = behind;
                    input.len().min((*length).into())
                }
            };
            let (part, behind) = input.split_at(length);
            input = behind;
            part
        })
    }

    fn whole(parts: [&[u8]; 5]) -> Vec<u8> {
        let [companions @ .., posting] = parts;
        let companions = companions.map(|part| [&[part.len() as u8][..], part].concat());
        [&companions.concat()[..], posting].concat()
    }

    #[test]
    fn untrusted_keys_become_a_job_or_an_error() {
        let draft = Draft {
            uuid: Uuid::nil(),
            chosen: false,
            name: "resize".to_owned(),
            priority: Priority::High,
            book: None,
            details: serde_json::json!({"n": 1}).into(),
            former: None,
        };
        let now = DateTime::default();
        let (posting, time) = (msgpack::encode(&draft, now), msgpack::time(now));
        let posting = [posting, msgpack::sequence(7)].concat();
        let uuid = draft.uuid.to_string();
        let side = br#"{"v":1,"owner":"ada","fence":"7","attempts":1,"ahead":true}"#;
        let corpus = [
            whole([uuid.as_bytes(), b"ada", &time, side, &posting]),
            whole([b"x y", b"", b"", b"{}", &posting]),
            whole([b"\xff", b"\xffa", &time, b"", &posting]),
        ];
        Corpus::of(Bounds::STORED, corpus).hold(|input| {
            let [field, owner, modified, side, posting] = parts(input);
            let read = || {
                let mut companions = CompanionValues {
                    last_modified: Some(modified.to_vec()),
                    side: Some(side.to_vec()),
                    ..CompanionValues::default()
                };
                companions.claim(Some(owner.to_vec()), input.len() as i64 - 2);
                let reading = Reading {
                    location: Location::Board,
                    detail: Detail::Stored,
                    limit: Limit::USUAL,
                };
                super::read(reading, field, posting, companions)
            };
            let entry = read();
            same("read again", &entry, &read())?;
            same("its key", entry.key(), &key_of(field))?;
            let held = entry.holding().and_then(|holding| holding.owner.as_ref());
            let held = held.map_or(&b""[..], Owner::as_bytes);
            same("its owner", &held, &owner)?;
            match &entry {
                Entry::Job(job) => match &job.problem {
                    Some(problem) => refused(problem),
                    None => Ok(Answer::Read),
                },
                Entry::Malformed(record) => refused(&record.problem),
            }
        });
    }
}
