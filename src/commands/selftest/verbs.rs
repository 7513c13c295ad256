//! Tests the normal operations of a board and measures their duration.

use std::{cell::Cell, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time::{self, Instant};

use super::{
    actor::draft,
    promise::{Assessment, TrialResult, p99, require},
    trial::{Trial, settlement},
};
use crate::{
    board::{ClaimRules, Detail, EventKind, Query, ext::the_answer},
    job::{Aftermath, Decision, Draft, Entry, JobKey, Location, Purge, Revision},
};

const HEARD: usize = 20;
const LATE: Duration = Duration::from_secs(1);

/// The largest usual duration of a request, and the smallest number of measured ones.
const SLOW: Duration = Duration::from_millis(100);
const TIMED: usize = 150;

const RELEASE: Decision = Decision::Abandon(Aftermath::None);

impl Trial<'_> {
    pub(super) async fn keeps(&self) -> TrialResult {
        const LARGE: usize = 64 << 10;
        let mut drafts: Vec<_> = (0..50).map(draft).collect();
        drafts[7].details = serde_json::json!({ "text": "x".repeat(LARGE) }).into();
        let posted = self.ada.post(&drafts, None).await?;
        let posted = posted.into_iter().collect::<Result<Vec<_>, _>>()?;
        let query = Query::all(Location::Board, Detail::Whole);
        let listed: Vec<_> = self.bob.entries(query).try_collect().await?;
        let is_there = |draft: &Draft| {
            let uuid = draft.uuid.to_string();
            let jobs = listed.iter().filter_map(Entry::job);
            let mut of = jobs.filter(|it| it.uuid == uuid);
            let is_same = of.next().is_some_and(|job| {
                job.name == draft.name && job.details.as_ref() == Some(&draft.details)
            });
            is_same && of.next().is_none()
        };
        let (count, missing) = (
            drafts.len(),
            drafts.iter().filter(|it| !is_there(it)).count(),
        );
        let why = format_args!(
            "{missing} of {count} posted jobs are not listed exactly once and unchanged"
        );
        require(missing == 0, why)?;
        let is_in_order = posted.is_sorted_by(|one, next| one.sequence < next.sequence);
        require(is_in_order, "jobs are not numbered in posting order")?;
        let keys: Vec<_> = posted.into_iter().map(|it| it.key).collect();
        require(self.absent(&keys).await? == 0, "a listed job was not found")?;
        self.consume_all(&keys).await?;
        Ok(Assessment::ok(format!(
            "{count} posted jobs were listed and found unchanged"
        )))
    }

    pub(super) async fn consume_all(&self, keys: &[JobKey]) -> TrialResult<()> {
        let by = self.claimant("consumer");
        let claimed = self
            .ada
            .claim(keys, &by, keys.len(), ClaimRules::BY_HAND)
            .await?;
        let claimed = claimed.into_iter().collect::<Result<Vec<_>, _>>()?;
        let claims = claimed.iter().map(|it| self.claim_of(it, &by));
        let settled: Vec<_> = claims
            .map(|it| settlement(&it, Decision::Consume))
            .collect();
        let settled = self.ada.settle(&settled).await?;
        settled.into_iter().collect::<Result<Vec<_>, _>>()?;
        let left = keys.len() - self.absent(keys).await?;
        let why = format_args!("{left} consumed jobs are still on the board");
        require(left == 0, why)
    }

    pub(super) async fn fence(&self) -> TrialResult {
        let (key, by) = (self.post_one().await?, self.claimant("same"));
        let first = self.win(&self.ada, &key, &by).await?;
        self.settle(&self.ada, &first, RELEASE).await?;
        let second = self.win(&self.ada, &key, &by).await?;
        require(
            first.fence != second.fence,
            "two claims of one job have the same fencing token",
        )?;
        for decision in [RELEASE, Decision::Consume, Decision::Trash(Aftermath::None)] {
            self.require_rejected(&self.bob, &first, decision).await?;
        }
        let renewed = self.ada.renew(std::slice::from_ref(&first)).await?;
        require(
            renewed.iter().all(Result::is_err),
            "an ended claim could be renewed",
        )?;
        self.settle(&self.ada, &second, Decision::Consume).await?;
        Ok(Assessment::ok(
            "late settlements and renewals were rejected; the current claim was unchanged",
        ))
    }

    async fn is(&self, key: &JobKey, wanted: Option<Location>, verb: &str) -> TrialResult<()> {
        for (location, place) in [
            (Location::Board, "on the board"),
            (Location::Trash, "in the trash"),
        ] {
            let is_there = self.find_one(location, key).await?.is_some();
            let not = if is_there { "" } else { "not " };
            let why = format_args!("a job was {verb} but is {not}{place}");
            require(is_there == (wanted == Some(location)), why)?;
        }
        Ok(())
    }

    pub(super) async fn ends(&self) -> TrialResult {
        let by = self.claimant("ender");
        let keys = self.post(2).await?;
        for (key, decision) in keys
            .iter()
            .zip([Decision::Consume, Decision::Trash(Aftermath::None)])
        {
            let claim = self.win(&self.ada, key, &by).await?;
            self.settle(&self.ada, &claim, decision.clone()).await?;
            let again = self.settle(&self.ada, &claim, decision).await;
            require(again.is_err(), "one claim settled a job twice")?;
        }
        self.is(&keys[0], None, "consumed").await?;
        let key = &keys[1];
        self.is(key, Some(Location::Trash), "trashed").await?;
        let restored = [Revision::from_trash(key.clone(), None)];
        the_answer(&*self.ada, self.ada.revise(&restored).await?)?;
        self.is(key, Some(Location::Board), "restored").await?;
        let claim = self.win(&self.ada, key, &by).await?;
        self.settle(&self.ada, &claim, Decision::Trash(Aftermath::None))
            .await?;
        let purged = [Purge {
            key: key.clone(),
            job: None,
            audit: None,
        }];
        the_answer(&*self.ada, self.ada.purge(&purged).await?)?;
        self.is(key, None, "purged").await?;
        Ok(Assessment::ok(
            "jobs were consumed, trashed, restored and purged exactly once",
        ))
    }

    /// Reads continuously while a job moves through all states.
    pub(super) async fn whole(&self) -> TrialResult {
        let (key, by) = (self.post_one().await?, self.claimant("changer"));
        let looks = Cell::new(0_usize);
        let hand_on = async {
            for _ in 0..50 {
                let claim = self.win(&self.ada, &key, &by).await?;
                self.settle(&self.ada, &claim, RELEASE).await?;
                tokio::task::yield_now().await;
            }
            TrialResult::Ok(())
        };
        let look = async {
            loop {
                let job = self.find_one(Location::Board, &key).await?;
                let is_whole = job.is_some_and(|job| {
                    let is_claim = job.holding.is_none_or(|it| {
                        it.owner.as_ref() == Some(&by.owner) && it.fence.is_some()
                    });
                    is_claim && !job.is_unfit && !job.is_blocked
                });
                require(
                    is_whole,
                    "a reader saw a half-made change: half a claim or no job",
                )?;
                looks.set(looks.get() + 1);
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            changed = hand_on => changed?,
            never = look => return never,
        }
        self.consume_all(std::slice::from_ref(&key)).await?;
        Ok(Assessment::ok(format!(
            "{} reads of a job that changed owners",
            looks.get()
        )))
    }

    pub(super) async fn events(&self) -> TrialResult {
        let mut events = self.bob.events().await?;
        let (mut late, mut missed) = (Vec::new(), 0);
        while missed < 3 && late.len() + missed < HEARD {
            let asked = Instant::now();
            let key = self.post_one().await?;
            let heard = async {
                while let Some(event) = events.stream.next().await {
                    let event = event?;
                    let subject = event.subject.as_ref().map(|it| &it.key);
                    if event.kind == EventKind::Posted && subject == Some(&key) {
                        return TrialResult::Ok(true);
                    }
                }
                Ok(false)
            };
            match time::timeout(LATE * 2, heard).await.unwrap_or(Ok(false))? {
                true => late.push(asked.elapsed()),
                false => missed += 1,
            }
            self.consume_all(std::slice::from_ref(&key)).await?;
        }
        let (posts, slowest) = (late.len() + missed, p99(late).unwrap_or_default());
        let remedy = "clients also poll, so they only notice jobs later";
        let why = match &events.lack {
            Some(lack) => format!("not all events arrive immediately: {lack}"),
            None if missed > 0 => format!("{missed} of {posts} posts caused no event"),
            None if slowest > LATE => {
                format!("events arrive up to {:.1} s late", slowest.as_secs_f64())
            }
            None => {
                let ms = slowest.as_secs_f64() * 1e3;
                let why = format!("each of {posts} posts caused an event within {ms:.1} ms");
                return Ok(Assessment::ok(why));
            }
        };
        Ok(Assessment::weak(why, remedy))
    }

    pub(super) async fn measure(&self) -> TrialResult {
        // The rest of the time is for claims that have yet to expire.
        let share = |part: u32| self.begun + (self.end - self.begun) * part / 10;
        let (key, by) = (self.post_one().await?, self.claimant("timer"));
        let mut latency = Vec::new();
        while Instant::now() < share(if latency.len() < TIMED { 8 } else { 7 }) {
            let mut start = Instant::now();
            let mut timed =
                || latency.push(std::mem::replace(&mut start, Instant::now()).elapsed());
            let claim = self.win(&self.ada, &key, &by).await?;
            timed();
            the_answer(
                &*self.ada,
                self.ada.renew(std::slice::from_ref(&claim)).await?,
            )?;
            timed();
            self.settle(&self.ada, &claim, RELEASE).await?;
            timed();
            // The other tasks have claims to renew.
            tokio::task::yield_now().await;
        }
        self.consume_all(std::slice::from_ref(&key)).await?;
        let count = latency.len();
        let Some(slowest) = p99(latency) else {
            return Ok(Assessment::untried("out of time"));
        };
        let ms = slowest.as_secs_f64() * 1e3;
        Ok(match slowest > SLOW {
            false => Assessment::ok(format!("99% of {count} requests took at most {ms:.1} ms")),
            true => Assessment::weak(
                format!("1% of requests take longer than {ms:.0} ms"),
                "check the load of the server and the network; use leases of 30 s or more",
            ),
        })
    }
}
