//! Posting: many jobs in few exchanges.

use std::{
    iter::repeat_with,
    sync::atomic::{AtomicI64, Ordering},
};

use chrono::{DateTime, Utc};
use redis::cmd;

use super::{
    change::life,
    scripts::{Call, Reply, Script},
};
use crate::{
    board::{
        BoardError, Detail, Posted, Result,
        net::failure::{perhaps_posted, refuse_rest},
        redis::{
            Redis,
            link::{RedisClient, RequestFailure, WRITE},
        },
        wire::{message, msgpack, posting::Limit, sidecar::text_of},
    },
    job::{Claimant, Draft, Fence, JobKey},
};

/// Maximum jobs and bytes of a call.
const BATCH: (usize, usize) = (1000, 1 << 20);

impl Redis {
    pub(crate) async fn post_jobs(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let mut answers = Vec::with_capacity(drafts.len());
        // Jobs with their state are loaded by another script.
        for alike in drafts.chunk_by(|one, next| one.former.is_some() == next.former.is_some()) {
            let formers: Option<Vec<_>> = alike.iter().map(Draft::with_former).collect();
            let some = match formers {
                Some(formers) => self.load_jobs(&formers, claimant).await,
                None => self.post_new(alike, claimant).await,
            };
            match some {
                Ok(some) => answers.extend(some),
                Err(error) => {
                    refuse_rest(&mut answers, drafts.len(), self.client.name(), error)?;
                    break;
                }
            }
        }
        Ok(answers)
    }

    async fn post_new(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let now = Utc::now();
        let postings = drafts.iter().map(|draft| msgpack::encode(draft, now));
        let mut postings: Vec<_> = postings.collect();
        let mut answers = Vec::with_capacity(drafts.len());
        while answers.len() < drafts.len() {
            let rest = &mut postings[answers.len()..];
            let count = batch(rest.iter().map(Vec::len));
            let some = &drafts[answers.len()..][..count];
            let call = self.post_call(some, &mut rest[..count], claimant, now);
            match call.run(&self.client).await {
                Ok(replies) => answers.extend(self.posted(some, replies, claimant)),
                Err(RequestFailure::NotSent(error)) => {
                    refuse_rest(&mut answers, drafts.len(), self.client.name(), error)?;
                }
                Err(RequestFailure::Lost(error)) => {
                    answers.extend(self.look_up(some, claimant, &error).await);
                }
            }
        }
        Ok(answers)
    }

    fn post_call(
        &self,
        drafts: &[Draft],
        postings: &mut [Vec<u8>],
        claimant: Option<&Claimant>,
        now: DateTime<Utc>,
    ) -> Call {
        // The fields are new and have no keys beside them.
        let are_new = claimant.is_none() && !drafts.iter().any(|draft| draft.chosen);
        let mut call = self.call(match are_new {
            true => Script::PostNew,
            false => Script::Post,
        });
        call.key("sequence", self.keys.sequence())
            .arg("time", text_of(now));
        let fields: Vec<_> = drafts.iter().map(|draft| draft.uuid.to_string()).collect();
        if are_new {
            let (mut end, mut message) = (String::new(), Vec::new());
            if let Some(last) = self.predicted.last() {
                complete(postings, last);
                let until = last.saturating_add_unsigned(drafts.len() as u64);
                end = until.to_string();
                message = message::posted(drafts, &fields, now, last);
            }
            call.arg("foreseen", end).arg("message", message);
        } else {
            self.add_claimant(&mut call, claimant, now);
        }
        for (field, posting) in fields.into_iter().zip(postings) {
            if are_new {
                call.job().arg("field", field);
            } else {
                self.add_job(&mut call, field.as_bytes());
            }
            call.arg("posting", std::mem::take(posting));
        }
        call
    }

    pub(super) fn add_claimant(
        &self,
        call: &mut Call,
        claimant: Option<&Claimant>,
        now: DateTime<Utc>,
    ) {
        let (owner, life) = match claimant {
            Some(by) => (by.owner.as_bytes(), life(by.term)),
            None => (&[][..], String::new()),
        };
        call.key("fences", self.keys.fence())
            .arg("owner", owner)
            .arg("life", life)
            .arg("now", msgpack::time(now));
    }

    fn posted(
        &self,
        drafts: &[Draft],
        replies: Vec<Reply>,
        claimant: Option<&Claimant>,
    ) -> Vec<Result<Posted>> {
        // The numbers of all jobs were predicted.
        let first = Reply::for_all(&replies).map(|all| number(&self.client, all));
        let answers: Vec<_> = match first {
            Some(Ok(first)) => drafts
                .iter()
                .zip(first..=i64::MAX)
                .map(|(draft, sequence)| Ok(unclaimed(draft, sequence)))
                .collect(),
            Some(Err(error)) => drafts
                .iter()
                .map(|draft| Err(perhaps_posted(self.client.name(), draft, &error)))
                .collect(),
            None => drafts
                .iter()
                .zip(replies)
                .map(|(draft, reply)| one_posted(&self.client, draft.uuid.into(), reply, claimant))
                .collect(),
        };
        let last = answers.iter().rev().flatten().next();
        self.predicted.note(last.map(|posted| posted.sequence));
        answers
    }

    /// Looks up jobs whose post got no reply, unless a claim came with the post and would stay unknown.
    async fn look_up(
        &self,
        drafts: &[Draft],
        claimant: Option<&Claimant>,
        error: &BoardError,
    ) -> Vec<Result<Posted>> {
        self.predicted.note(None);
        let mut command = cmd("HMGET");
        command.arg(self.keys.listings());
        for draft in drafts {
            command.arg(draft.uuid.to_string());
        }
        let found = self.client.ask::<Vec<Option<Vec<u8>>>>(WRITE, &command);
        let found = found.await.unwrap_or_default().into_iter();
        let looked_up = drafts.iter().zip(found.chain(repeat_with(|| None)));
        let posted = looked_up.map(|(draft, posting)| {
            let read = |bytes: Vec<u8>| msgpack::decode(&bytes, Detail::Brief, Limit::USUAL).ok();
            match posting.and_then(read).and_then(|posting| posting.sequence) {
                // A job with a chosen uuid may have been there before.
                Some(sequence) if !draft.chosen && claimant.is_none() => {
                    Ok(unclaimed(draft, sequence))
                }
                _ => Err(perhaps_posted(self.client.name(), draft, error)),
            }
        });
        posted.collect()
    }
}

pub(super) fn one_posted(
    client: &RedisClient,
    key: JobKey,
    reply: Reply,
    claimant: Option<&Claimant>,
) -> Result<Posted> {
    let reply = reply.done(client, &key, None)?;
    Ok(Posted {
        key,
        sequence: number(client, &reply)?,
        fence: claimant.map(|_| Fence(reply.text(1))),
    })
}

fn unclaimed(draft: &Draft, sequence: i64) -> Posted {
    Posted {
        key: draft.uuid.into(),
        sequence,
        fence: None,
    }
}

fn number(client: &RedisClient, reply: &Reply) -> Result<i64> {
    let number = reply.text(0).parse();
    number.map_err(|_| Reply::unexpected(client))
}

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

/// The next job numbers, which are right unless another client posts meanwhile.
///
/// A script then has nothing to assemble, which is its slowest part. It checks the numbers, and corrects the data if
/// they are wrong.
#[derive(Debug, Default)]
pub(crate) struct PredictedNumbers {
    /// Zero if unknown.
    last: AtomicI64,
}

impl PredictedNumbers {
    pub(crate) fn last(&self) -> Option<i64> {
        Some(self.last.load(Ordering::Relaxed)).filter(|last| *last > 0)
    }

    pub(crate) fn note(&self, last: Option<i64>) {
        self.last.store(last.unwrap_or_default(), Ordering::Relaxed);
    }
}

fn complete(postings: &mut [Vec<u8>], last: i64) {
    for (number, posting) in (last + 1..).zip(postings) {
        posting.extend(msgpack::sequence(number.unsigned_abs()));
    }
}
