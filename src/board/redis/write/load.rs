//! Posting jobs of another board with their state.

use chrono::Utc;

use super::{
    change::flag,
    post::one_posted,
    scripts::{Call, Script},
};
use crate::{
    board::{
        Posted, Result,
        net::failure::{RequestFailure, perhaps_posted, refuse_rest},
        redis::{Redis, keys::field_of},
        wire::{
            msgpack,
            sidecar::{Sidecar, text_of},
        },
    },
    job::{Claimant, Draft, Former, Location},
};

/// Approximate limit for the postings of a call, in bytes.
const BYTES: usize = 1 << 20;

impl Redis {
    pub(crate) async fn load_jobs(
        &self,
        drafts: &[(&Draft, &Former)],
        claimant: Option<&Claimant>,
    ) -> Result<Vec<Result<Posted>>> {
        let now = Utc::now();
        self.predicted.note(None);
        let mut answers = Vec::with_capacity(drafts.len());
        while answers.len() < drafts.len() {
            let some = &drafts[answers.len()..];
            let mut call = self.call(Script::Load);
            call.key("trash", self.keys.trash())
                .key("sequence", self.keys.sequence())
                .arg("time", text_of(now));
            self.add_claimant(&mut call, claimant, now);
            let (mut count, mut bytes) = (0, 0);
            for (draft, former) in some {
                bytes += self.add(&mut call, draft, former);
                count += 1;
                if bytes > BYTES {
                    break;
                }
            }
            let some = &some[..count];
            match call.run(&self.client).await {
                Ok(replies) => {
                    answers.extend(some.iter().zip(replies).map(|((draft, _), reply)| {
                        one_posted(&self.client, draft.uuid.into(), reply, claimant)
                    }))
                }
                Err(RequestFailure::NotSent(error)) => {
                    refuse_rest(&mut answers, drafts.len(), self.client.name(), error)?;
                }
                Err(RequestFailure::Lost(error)) => answers.extend(
                    (some.iter())
                        .map(|(draft, _)| Err(perhaps_posted(self.client.name(), draft, &error))),
                ),
            }
        }
        Ok(answers)
    }

    fn add(&self, call: &mut Call, draft: &Draft, former: &Former) -> usize {
        let made;
        let [head, stored, tail] = match msgpack::around_number(&former.raw) {
            Some(parts) => parts,
            None => {
                made = msgpack::encode(draft, former.created_on.unwrap_or_else(Utc::now));
                [made.as_slice(), &[], &[]]
            }
        };
        let number = former.sequence.map(|number| number.to_string());
        let stored = match (former.sequence, stored.is_empty()) {
            (Some(number), true) => msgpack::sequence(number.unsigned_abs()),
            _ => stored.to_vec(),
        };
        let side = Sidecar::of_former(former).map(|side| side.write());
        self.add_job(call, &field_of(&draft.uuid.into()));
        call.arg("is_trashed", flag(former.location == Location::Trash))
            .arg("head", head)
            .arg("tail", tail)
            .arg("former", number.unwrap_or_default())
            .arg("as_stored", stored)
            .arg("side", side.unwrap_or_default());
        head.len() + tail.len()
    }
}
