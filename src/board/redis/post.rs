//! Posting: many jobs in few exchanges.

use chrono::{DateTime, Utc};
use redis::Cmd;

use super::{
    change::{DOING, Target, life},
    foresight,
    link::Failure,
    scripts::{Call, Reply, Script},
};
use crate::{
    board::{
        BoardError, Detail, Posted, Result,
        failure::{not_done, perhaps_posted},
        wire::{msgpack, side::text_of},
    },
    job::{Claimant, Draft, Fence, JobKey},
};

/// A call has no more jobs than this, and hardly more bytes.
const BATCH: (usize, usize) = (1000, 1 << 20);

impl Target<'_> {
    /// Puts jobs on the board, in as few exchanges as their size allows.
    pub(super) async fn post(
        self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let now = Utc::now();
        let mut postings: Vec<_> = drafts
            .iter()
            .map(|draft| msgpack::encode(draft, now))
            .collect();
        let mut answers = Vec::with_capacity(drafts.len());
        while answers.len() < drafts.len() {
            let rest = &mut postings[answers.len()..];
            let count = batch(rest.iter().map(Vec::len));
            let some = &drafts[answers.len()..][..count];
            let call = self.post_call(some, &mut rest[..count], claimant, now);
            match call.run(self.link, DOING).await {
                Ok(replies) => answers.extend(self.posted(some, replies, claimant)),
                Err(Failure::NotSent(error)) if answers.is_empty() => return Err(error),
                Err(Failure::NotSent(error)) => {
                    let missing = drafts.len() - answers.len();
                    let refused = (0..missing).map(|_| Err(not_done(self.link.name(), &error)));
                    answers.extend(refused);
                }
                Err(Failure::Lost(error)) => answers.extend(self.look_up(some, &error).await),
            }
        }
        Ok(answers)
    }

    fn post_call(
        self,
        drafts: &[Draft],
        postings: &mut [Vec<u8>],
        claimant: Option<&Claimant>,
        now: DateTime<Utc>,
    ) -> Call {
        let mut call = self.call(Script::Post);
        call.key(self.keys.sequence()).key(self.keys.fence());
        let (owner, life) = match claimant {
            Some(by) => (by.owner.as_bytes().to_vec(), life(by.term)),
            None => (Vec::new(), String::new()),
        };
        let time = text_of(now);
        let fields: Vec<_> = drafts.iter().map(|draft| draft.uuid.to_string()).collect();
        // Nobody else has such a field, and nothing can be beside it.
        let are_new = claimant.is_none() && !drafts.iter().any(|draft| draft.chosen);
        let foreseen = self.foresight.last().filter(|_| are_new);
        let (last, message) = match foreseen {
            None => (String::new(), Vec::new()),
            Some(last) => {
                foresight::complete(postings, last);
                let end = last.saturating_add_unsigned(drafts.len() as u64);
                let message = foresight::message(drafts, &fields, &time, last);
                (end.to_string(), message)
            }
        };
        call.arg(self.keys.events())
            .arg(owner)
            .arg(life)
            .arg(msgpack::time(now))
            .arg(time)
            .arg(last)
            .arg(message);
        for (field, posting) in fields.into_iter().zip(postings) {
            if !are_new {
                self.beside(&mut call, field.as_bytes());
            }
            call.arg(field).arg(std::mem::take(posting));
        }
        call
    }

    fn posted(
        self,
        drafts: &[Draft],
        replies: Vec<Reply>,
        claimant: Option<&Claimant>,
    ) -> Vec<Result<Posted>> {
        let mut last = None;
        let answers = drafts
            .iter()
            .zip(replies)
            .map(|(draft, reply)| posted(draft, reply, claimant, &mut last))
            .collect();
        self.foresight.note(last);
        answers
    }

    /// Looks once for jobs whose post was not answered.
    async fn look_up(self, drafts: &[Draft], error: &BoardError) -> Vec<Result<Posted>> {
        self.foresight.note(None);
        let mut command = Cmd::new();
        command.arg("HMGET").arg(self.keys.listings());
        for draft in drafts {
            command.arg(draft.uuid.to_string());
        }
        let found: Vec<Option<Vec<u8>>> = self
            .link
            .ask(DOING, &command)
            .await
            .unwrap_or_else(|_| vec![None; drafts.len()]);
        drafts
            .iter()
            .zip(found)
            .map(|(draft, posting)| {
                let read = posting.and_then(|bytes| msgpack::decode(&bytes, Detail::Brief).ok());
                match read.and_then(|posting| posting.sequence) {
                    // One that others may have chosen as well may have been there before.
                    Some(sequence) if !draft.chosen => Ok(Posted {
                        key: JobKey::new(draft.uuid.to_string()),
                        sequence,
                        fence: None,
                    }),
                    _ => Err(perhaps_posted(self.link.name(), draft, error)),
                }
            })
            .collect()
    }
}

/// Reads what became of a draft; `last` is the number of the one before that was posted.
fn posted(
    draft: &Draft,
    reply: Reply,
    claimant: Option<&Claimant>,
    last: &mut Option<i64>,
) -> Result<Posted> {
    let key = JobKey::new(draft.uuid.to_string());
    let reply = reply.done(&key, None)?;
    let half = |at| reply.text(at).parse::<i64>().unwrap_or_default();
    let sequence = match *last {
        Some(last) if reply.fact(0).is_empty() => last + 1,
        _ => (half(0) << 32) | half(1),
    };
    *last = Some(sequence);
    Ok(Posted {
        sequence,
        fence: claimant.map(|_| Fence(reply.text(2))),
        key,
    })
}

/// Returns how many jobs the next call may have.
fn batch(sizes: impl Iterator<Item = usize>) -> usize {
    let mut bytes = 0;
    sizes
        .take(BATCH.0)
        .take_while(|size| {
            let is_first = bytes == 0;
            bytes += size;
            is_first || bytes <= BATCH.1
        })
        .count()
}
