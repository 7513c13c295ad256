//! Changes of jobs: converts requests to script calls, and replies to results.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::scripts::{Call, Reply, Script};
use crate::{
    board::{
        BoardError, ClaimRules, Detail, NOT_AHEAD, Query, Result, Settled,
        redis::{
            Redis,
            keys::{field_of, key_of},
            link::RequestFailure,
            read::{
                record::{CompanionValues, posted, read},
                scan::first_postings,
            },
        },
        rules::won_at_most,
        wire::{as_json, history::HistoryRecord, msgpack, sidecar::text_of},
    },
    job::{
        Aftermath, AuditEntry, Authority, Claim, Claimant, Claimed, Decision, Entry, ExpectedState,
        Fence, JobChange, JobKey, Location, MoveRecord, Owner, Purge, Revision, Settlement, Term,
    },
};

/// A posting before and after an edit.
type Edited = (Vec<u8>, Vec<u8>);

impl Redis {
    pub(super) fn call(&self, script: Script) -> Call {
        let mut call = Call::of(script);
        call.key("listings", self.keys.listings())
            .arg("channel", self.keys.events());
        call
    }

    pub(super) fn add_job(&self, call: &mut Call, field: &[u8]) {
        let names = self.keys.sidecar_names(field);
        call.job()
            .key("owned", names.owner)
            .key("modified", names.last_modified)
            .key("sidecar", names.side)
            .arg("field", field);
    }

    async fn run(&self, call: &Call) -> Result<Vec<Reply>> {
        let replies = call.run(&self.client).await;
        replies.map_err(|failure| failure.into_unknown(self.client.name()))
    }

    pub(crate) async fn claim_jobs(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<Vec<Result<Claimed>>> {
        let (mut answers, mut won) = (Vec::with_capacity(keys.len()), 0);
        loop {
            let rest = &keys[answers.len()..];
            let left = ClaimRules {
                starting: rules.starting.saturating_sub(won),
                ..rules
            };
            let (some, released) = self.claim_some(rest, by, most - won, left).await?;
            answers.extend(some);
            won = won_at_most(&answers);
            // A released claim took the place of a job that was not tried.
            if released == 0 || won >= most || answers.len() == keys.len() {
                return Ok(answers);
            }
        }
    }

    /// Also returns how many of the claimed jobs were unreadable and released again.
    async fn claim_some(
        &self,
        keys: &[JobKey],
        by: &Claimant,
        most: usize,
        rules: ClaimRules,
    ) -> Result<(Vec<Result<Claimed>>, usize)> {
        let now = Utc::now();
        let fields: Vec<_> = keys.iter().map(field_of).collect();
        let mut call = self.call(Script::Claim);
        self.add_claimant(&mut call, Some(by), now);
        call.arg("time", text_of(now))
            .arg("most", most.to_string())
            .arg("is_attempt", flag(rules.is_attempt))
            .arg("respects_delay", flag(rules.respects_delay))
            .arg("starting", rules.starting.to_string())
            .arg("not_ahead", text_of(now + NOT_AHEAD))
            .arg("needs_sidecar", flag(rules.needs_sidecar(by.term)))
            .arg("largest", self.client.limit.stored().to_string());
        for field in &fields {
            self.add_job(&mut call, field);
        }
        let replies = self.run(&call).await?;
        let (mut answers, mut released) = (Vec::with_capacity(replies.len()), 0);
        for (field, reply) in fields.iter().zip(replies) {
            answers.push(match reply.done(&self.client, &key_of(field), None) {
                Ok(reply) => {
                    let answer = self.claimed(field, &reply, by, rules, now).await;
                    released += usize::from(answer.is_err());
                    answer
                }
                Err(refusal) => Err(refusal),
            });
        }
        Ok((answers, released))
    }

    /// Returns a claimed job, but releases it if it is malformed or unfit for these rules.
    ///
    /// The script rejects a posting that is too large or not a map; only decoding finds the other defects.
    async fn claimed(
        &self,
        field: &[u8],
        reply: &Reply,
        by: &Claimant,
        rules: ClaimRules,
        now: DateTime<Utc>,
    ) -> Result<Claimed> {
        let fence = Fence(reply.text(0));
        let companions = CompanionValues {
            owner: Some(by.owner.as_bytes().to_vec()),
            left: by.term.duration(),
            last_modified: Some(msgpack::time(now)),
            side: Some(reply.fact(2).to_vec()).filter(|side| !side.is_empty()),
        };
        let reading = self.reading(Query::all(Location::Board, Detail::Whole));
        let refused = match read(reading, field, reply.fact(1), companions) {
            Entry::Job(job) if job.is_unfit && rules.needs_sidecar(by.term) => {
                BoardError::unclaimable(job.problem)
            }
            Entry::Job(mut job) => {
                if let Some(holding) = &mut job.holding {
                    holding.fence = Some(fence.clone());
                }
                return Ok(Claimed {
                    is_first: job.is_claimed_first(),
                    job: *job,
                    fence,
                });
            }
            Entry::Malformed(record) => BoardError::from(&record),
        };
        self.release(key_of(field), by, fence).await?;
        Err(refused)
    }

    /// Ends a claim just made; an error means that it may still exist.
    async fn release(&self, key: JobKey, by: &Claimant, fence: Fence) -> Result<()> {
        let authority = Authority::Claim(by.owner.clone(), fence);
        let release = Settlement::of(key, Decision::Abandon(Aftermath::Interrupted), authority);
        let released = self.settle_jobs(std::slice::from_ref(&release)).await;
        match released.and_then(|answers| answers.into_iter().collect::<Result<Vec<_>>>()) {
            Err(error) if !error.is_about_the_claim() => {
                Err(RequestFailure::Lost(error).into_unknown(self.client.name()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) async fn renew_claims(&self, claims: &[Claim]) -> Result<Vec<Result<()>>> {
        let mut call = self.call(Script::Renew);
        call.arg("time", text_of(Utc::now()));
        for claim in claims {
            self.add_job(&mut call, &field_of(&claim.key));
            call.arg("owner", claim.owner.as_bytes())
                .arg("fence", fence_text(claim.fence.as_ref()))
                .arg("life", millis(claim.term));
        }
        let replies = claims.iter().zip(self.run(&call).await?);
        let renewed = replies.map(|(claim, reply)| {
            let renewed = reply.done(&self.client, &claim.key, Some(&claim.owner));
            renewed.map(drop)
        });
        Ok(renewed.collect())
    }

    pub(crate) async fn settle_jobs(
        &self,
        settlements: &[Settlement],
    ) -> Result<Vec<Result<Settled>>> {
        let now = Utc::now();
        let any = |is_so: fn(&Settlement) -> bool| flag(settlements.iter().any(is_so));
        let mut call = self.call(Script::Settle);
        call.key("trash", self.keys.trash())
            .arg("now", msgpack::time(now))
            .arg("time", text_of(now))
            .arg("moves", self.keys.moves())
            .arg("has_ends", any(|it| it.decision.is_end()))
            .arg("has_stays", any(|it| !it.decision.is_end()))
            .arg("has_commits", any(|it| it.commit.is_some()));
        self.add_history(&mut call);
        for settlement in settlements {
            self.add_job(&mut call, &field_of(&settlement.key));
            add_settlement(&mut call, settlement);
            let commit = settlement.commit.as_ref().map(MoveRecord::key);
            call.arg("commit", commit.unwrap_or_default());
            self.add_remembered(&mut call, HistoryRecord::of(settlement, now));
        }
        let replies = settlements.iter().zip(self.run(&call).await?);
        let settled = replies.map(|(settlement, reply)| {
            let wanted = match &settlement.authority {
                Authority::Owner(owner) | Authority::Claim(owner, _) => Some(owner),
                Authority::Force(_) => None,
            };
            let reply = reply.done(&self.client, &settlement.key, wanted)?;
            Ok(Settled {
                replaced_namesake: reply.fact(0) == b"1",
                forgotten: Some(reply.text(1)).filter(|why| !why.is_empty()),
            })
        });
        Ok(settled.collect())
    }

    pub(crate) async fn revise_jobs(&self, jobs: &[Revision]) -> Result<Vec<Result<()>>> {
        let edits = self.edits(jobs).await?;
        let now = Utc::now();
        let mut call = self.on_trash(Script::Revise, now);
        call.arg("now", msgpack::time(now));
        for (job, edit) in jobs.iter().zip(&edits) {
            let Ok((seen, edited)) = edit else { continue };
            self.add_job(&mut call, &field_of(&job.key));
            call.arg("is_trashed", flag(job.location == Location::Trash))
                .arg("keeps_attempts", flag(job.change == JobChange::Continue))
                .arg("remark", audit_text(job.audit.as_ref()))
                .arg("seen", seen.as_slice())
                .arg("edited", edited.as_slice());
        }
        let mut replies = self.run(&call).await?.into_iter();
        let answers = jobs.iter().zip(edits).map(|(job, edit)| {
            edit?;
            let reply = replies.next().ok_or(BoardError::Changed)?;
            reply.done(&self.client, &job.key, None).map(drop)
        });
        Ok(answers.collect())
    }

    /// Reads the postings, and returns for each job what `edited` makes of it.
    async fn edits(&self, jobs: &[Revision]) -> Result<Vec<Result<Edited>>> {
        let mut edits: Vec<_> = jobs.iter().map(|_| Ok(Edited::default())).collect();
        for location in Location::LIVE {
            // A restart from the trash needs no posting.
            let is_read = |job: &Revision| {
                let is_edit = matches!(job.change, JobChange::Edit(_));
                job.location == location && (is_edit || location == Location::Board)
            };
            let read: Vec<_> = (0..jobs.len()).filter(|at| is_read(&jobs[*at])).collect();
            let fields: Vec<_> = read.iter().map(|at| field_of(&jobs[*at].key)).collect();
            let (hash, mut done) = (self.keys.hash(location), 0);
            while done < fields.len() {
                let postings = first_postings(&self.client, &hash, &fields[done..]).await?;
                for (at, posting) in read[done..].iter().zip(&postings) {
                    edits[*at] = self.edited(&jobs[*at], posting.as_deref());
                }
                done += postings.len();
            }
        }
        Ok(edits)
    }

    /// Returns the posting before and after an edit, both empty for a restart. Refuses a malformed record, because the
    /// script does not decode postings.
    fn edited(&self, job: &Revision, posting: Option<&[u8]>) -> Result<Edited> {
        let JobChange::Edit(edit) = &job.change else {
            let reading = self.reading(Query::all(job.location, Detail::Brief));
            return match posting.map(|posting| posted(reading, &field_of(&job.key), posting)) {
                Some(Entry::Malformed(record)) => Err(BoardError::from(&record)),
                Some(Entry::Job(_)) | None => Ok(Edited::default()),
            };
        };
        let seen = posting.ok_or(BoardError::NoSuchJob)?;
        let edited = msgpack::edited(seen, edit, self.client.limit);
        let edited = edited.map_err(|problem| BoardError::malformed(&job.key, problem))?;
        Ok((seen.to_vec(), edited))
    }

    pub(crate) async fn purge_jobs(&self, purges: &[Purge]) -> Result<Vec<Result<Settled>>> {
        let now = Utc::now();
        let mut call = self.on_trash(Script::Purge, now);
        self.add_history(&mut call);
        for purge in purges {
            self.add_job(&mut call, &field_of(&purge.key));
            call.arg("remark", audit_text(purge.audit.as_ref()));
            self.add_remembered(&mut call, HistoryRecord::purged(purge, now));
        }
        let replies = purges.iter().zip(self.run(&call).await?);
        let purged = replies.map(|(purge, reply)| {
            let reply = reply.done(&self.client, &purge.key, None)?;
            Ok(Settled {
                replaced_namesake: false,
                forgotten: Some(reply.text(0)).filter(|why| !why.is_empty()),
            })
        });
        Ok(purged.collect())
    }

    fn add_history(&self, call: &mut Call) {
        call.arg("history", self.keys.history())
            .arg("history_length", self.history.to_string());
    }

    fn add_remembered(&self, call: &mut Call, ended: Option<HistoryRecord>) {
        let ended = ended.filter(|_| self.history > 0);
        let ended = ended.map(|ended| ended.write());
        call.arg("remembered", ended.unwrap_or_default());
    }

    fn on_trash(&self, script: Script, now: DateTime<Utc>) -> Call {
        let mut call = self.call(script);
        call.key("trash", self.keys.trash())
            .arg("time", text_of(now));
        call
    }
}

fn add_settlement(call: &mut Call, settlement: &Settlement) {
    let decision = &settlement.decision;
    let word = match decision {
        Decision::Abandon(_) => "abandon",
        Decision::Trash(_) | Decision::Spent(_) => "trash",
        Decision::Consume => "consume",
        Decision::ConsumeFailed(_) => "consume-failed",
    };
    let no_name: &[u8] = b"";
    let (authority, owner, fence) = match &settlement.authority {
        Authority::Owner(owner) => ("owner", owner.as_bytes(), None),
        Authority::Claim(owner, fence) => ("owner", owner.as_bytes(), Some(fence)),
        Authority::Force(ExpectedState::Unclaimed) => ("free", no_name, None),
        Authority::Force(ExpectedState::Claimed { owner, fence }) => (
            "seen",
            owner.as_ref().map_or(no_name, Owner::as_bytes),
            fence.as_ref(),
        ),
    };
    let failure = decision.failure().filter(|_| !decision.is_end());
    let (failure, not_before) = (failure.map(as_json), decision.not_before());
    call.arg("decision", word)
        .arg("authority", authority)
        .arg("owner", owner)
        .arg("fence", fence_text(fence))
        .arg("not_before", not_before.map(text_of).unwrap_or_default())
        .arg(
            "attempts",
            if decision.counts_attempt() { "0" } else { "-1" },
        )
        .arg("postponed", flag(decision.is_postponed()))
        .arg("failure", failure.unwrap_or_default())
        .arg("remark", audit_text(settlement.audit.as_ref()));
}

fn audit_text(audit: Option<&AuditEntry>) -> String {
    audit.map(as_json).unwrap_or_default()
}

pub(crate) fn life(term: Term) -> String {
    term.duration().map(millis).unwrap_or_default()
}

fn millis(term: Duration) -> String {
    term.as_millis().to_string()
}

pub(crate) fn flag(is_set: bool) -> &'static str {
    if is_set { "1" } else { "0" }
}

fn fence_text(fence: Option<&Fence>) -> &str {
    fence.map_or("", |fence| fence.0.as_str())
}
