//! What boards do, done to one under test, and how long it takes.

use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::{
    join,
    time::{self, Instant},
};

use super::{
    looks::{Rates, Spread},
    promise::{Seen, Tried, Trouble, require},
    trial::{RULES, Trial, authority, draft, settlement},
};
use crate::{
    board::{BoardExt as _, Detail, EventKind, Query},
    job::{Aftermath, Authority, Draft, Entry, JobKey, Outcome, Purge, Restore, Shelf},
};

/// How many posts are listened for.
const HEARD: usize = 20;

/// How late somebody may be told of what happened.
const LATE: Duration = Duration::from_secs(1);

/// How long most requests may take.
const SLOW: f64 = 0.1;

/// How many jobs are dealt with at once.
const BULK: usize = 500;

fn release() -> Outcome {
    Outcome::Abandon(Aftermath::None)
}

impl Trial<'_> {
    /// Posts jobs, small and large, and looks whether they are there as they were posted.
    pub(super) async fn keeps(&self) -> Tried {
        const LARGE: usize = 64 << 10;
        let mut drafts: Vec<_> = (0..50).map(draft).collect();
        drafts[7].details = serde_json::json!({ "text": "x".repeat(LARGE) });
        let posted = self.ada.post(&drafts, None).await?;
        let posted = posted.into_iter().collect::<Result<Vec<_>, _>>()?;
        let query = Query::all(Shelf::Board, Detail::Whole);
        let listed: Vec<_> = self.bob.entries(query).try_collect().await?;
        let is_there = |draft: &Draft| {
            let uuid = draft.uuid.to_string();
            let mut of = listed
                .iter()
                .filter_map(Entry::job)
                .filter(|it| it.uuid == uuid);
            let is_same = of.next().is_some_and(|job| {
                job.name == draft.name && job.details.as_ref() == Some(&draft.details)
            });
            is_same && of.next().is_none()
        };
        let missing = drafts.iter().filter(|draft| !is_there(draft)).count();
        require(missing == 0, || {
            format!(
                "of {} jobs {missing} are not listed once, as they were posted",
                drafts.len()
            )
        })?;
        let in_order = posted
            .windows(2)
            .all(|pair| pair[0].sequence < pair[1].sequence);
        require(in_order, || {
            "jobs are not numbered as they were posted".to_owned()
        })?;
        let keys: Vec<_> = posted.into_iter().map(|it| it.key).collect();
        let found = self.find(Shelf::Board, &keys).await?;
        require(found.iter().all(Option::is_some), || {
            "a job that was listed was not found".to_owned()
        })?;
        self.consume_all(&keys).await?;
        Ok(Seen::ok(format!(
            "{} jobs were listed and found as they were posted",
            keys.len()
        )))
    }

    /// Claims all of these jobs and consumes them.
    async fn consume_all(&self, keys: &[JobKey]) -> Tried<(Duration, Duration)> {
        let by = self.keeper("consumer");
        let start = Instant::now();
        let claimed = self.ada.claim(keys, &by, keys.len(), RULES).await?;
        let claimed = claimed.into_iter().collect::<Result<Vec<_>, _>>()?;
        let claiming = start.elapsed();
        let claims = claimed.iter().map(|it| self.claim_of(it, &by));
        let settled = claims.map(|it| settlement(&it.key, Outcome::Consume, &it));
        let start = Instant::now();
        let settled = self.ada.settle(&settled.collect::<Vec<_>>()).await?;
        settled.into_iter().collect::<Result<Vec<_>, _>>()?;
        let consuming = start.elapsed();
        let left = self.find(Shelf::Board, keys).await?;
        let left = left.iter().flatten().count();
        require(left == 0, || {
            format!("{left} jobs are still there that were consumed")
        })?;
        Ok((claiming, consuming))
    }

    /// Loses a claim to another one of the same name, and tries to settle by it.
    pub(super) async fn fence(&self) -> Tried {
        let key = self.post_one().await?;
        let by = self.keeper("same");
        let first = self.ada.claim_one(&key, &by, RULES).await?;
        let first = self.claim_of(&first, &by);
        self.ada
            .settle_one(&key, release(), authority(&first))
            .await?;
        let second = self.ada.claim_one(&key, &by, RULES).await?;
        let second = self.claim_of(&second, &by);
        require(first.fence != second.fence, || {
            "two claims of one job have one number".to_owned()
        })?;
        for outcome in [release(), Outcome::Consume, Outcome::Trash(None)] {
            let late = self.bob.settle_one(&key, outcome, authority(&first)).await;
            match late {
                Err(error) if error.is_about_the_claim() => {}
                Err(error) => return Err(error.into()),
                Ok(_) => {
                    let why = "a claim that was over settled the job".to_owned();
                    return Err(Trouble::Broken(why));
                }
            }
        }
        let renewed = self.ada.renew(std::slice::from_ref(&first)).await?;
        require(renewed.iter().all(Result::is_err), || {
            "a claim that was over was renewed".to_owned()
        })?;
        self.ada
            .settle_one(&key, Outcome::Consume, authority(&second))
            .await?;
        Ok(Seen::ok(
            "late settlements and renewals were refused, and the present claim stood",
        ))
    }

    /// Has a job end in each way.
    pub(super) async fn ends(&self) -> Tried {
        let by = self.keeper("ender");
        let shelves = async |key: &JobKey| {
            let on_board = self.find_one(Shelf::Board, key).await?.is_some();
            let in_trash = self.find_one(Shelf::Trash, key).await?.is_some();
            Tried::Ok((on_board, in_trash))
        };
        let is = async |key: &JobKey, wanted: (bool, bool), verb: &str| {
            let found = shelves(key).await?;
            require(found == wanted, || {
                let place = |it: (bool, bool)| match it {
                    (true, false) => "on the board",
                    (false, true) => "in the trash",
                    (true, true) => "on the board and in the trash",
                    (false, false) => "nowhere",
                };
                format!(
                    "a job that was {verb} is {}, not {}",
                    place(found),
                    place(wanted)
                )
            })
        };
        for outcome in [Outcome::Consume, Outcome::Trash(None)] {
            let key = self.post_one().await?;
            let claimed = self.ada.claim_one(&key, &by, RULES).await?;
            let right = self.right(&claimed, &by);
            self.ada
                .settle_one(&key, outcome.clone(), right.clone())
                .await?;
            let again = self.ada.settle_one(&key, outcome.clone(), right).await;
            require(again.is_err(), || {
                "a job was settled twice by one claim".to_owned()
            })?;
            if outcome == Outcome::Consume {
                is(&key, (false, false), "consumed").await?;
                continue;
            }
            is(&key, (false, true), "trashed").await?;
            let restored = [Restore::from_trash(key.clone(), None)];
            only(self.ada.restore(&restored).await?)?;
            is(&key, (true, false), "restored").await?;
            let claimed = self.ada.claim_one(&key, &by, RULES).await?;
            let right = self.right(&claimed, &by);
            self.ada.settle_one(&key, outcome, right).await?;
            let purged = [Purge {
                key: key.clone(),
                job: None,
                remark: None,
            }];
            only(self.ada.purge(&purged).await?)?;
            is(&key, (false, false), "purged").await?;
        }
        Ok(Seen::ok(
            "jobs were consumed, trashed, restored and purged, and none of it happened twice",
        ))
    }

    /// Has somebody look all the while that a job goes from hand to hand.
    pub(super) async fn whole(&self) -> Tried {
        let key = self.post_one().await?;
        let by = self.keeper("changer");
        let is_over = std::cell::Cell::new(false);
        let change = async {
            for _ in 0..50 {
                let claimed = self.ada.claim_one(&key, &by, RULES).await?;
                let right = self.right(&claimed, &by);
                self.ada.settle_one(&key, release(), right).await?;
                tokio::task::yield_now().await;
            }
            Tried::Ok(())
        };
        let change = async {
            let changed = change.await;
            is_over.set(true);
            changed
        };
        let look = async {
            let mut looks = 0_usize;
            while !is_over.get() {
                looks += 1;
                let job = self.find_one(Shelf::Board, &key).await?;
                let is_whole = job.as_ref().is_some_and(|job| {
                    let held = job.holding.as_ref();
                    let is_claim = held.is_none_or(|it| {
                        it.owner.as_ref() == Some(&by.owner) && it.fence.is_some()
                    });
                    is_claim && !job.is_unfit && !job.is_blocked
                });
                require(is_whole, || {
                    "somebody saw a job in the middle of a change: half a claim, or no job"
                        .to_owned()
                })?;
                tokio::task::yield_now().await;
            }
            Tried::Ok(looks)
        };
        let (changed, looks) = join!(change, look);
        changed?;
        let looks = looks?;
        self.consume_all(std::slice::from_ref(&key)).await?;
        Ok(Seen::ok(format!(
            "in {looks} looks at a job that went from hand to hand"
        )))
    }

    /// Listens for posts.
    pub(super) async fn events(&self) -> Tried<(Option<Spread>, Seen)> {
        let mut events = self.bob.events().await?;
        let (mut late, mut missed) = (Vec::new(), 0);
        for _ in 0..HEARD {
            let asked = Instant::now();
            let key = self.post_one().await?;
            let heard = async {
                while let Some(event) = events.stream.next().await {
                    let event = event?;
                    let subject = event.subject.as_ref().map(|it| &it.key);
                    if event.kind == EventKind::Posted && subject == Some(&key) {
                        return Tried::Ok(true);
                    }
                }
                Ok(false)
            };
            match time::timeout(LATE * 2, heard).await.unwrap_or(Ok(false))? {
                true => late.push(asked.elapsed()),
                false => missed += 1,
            }
            if missed > 2 {
                break;
            }
            self.consume_all(std::slice::from_ref(&key)).await?;
        }
        let spread = Spread::of(late);
        let remedy = "whoever waits for jobs looks by itself now and then, and is only slower";
        let seen = match (&events.lack, &spread) {
            (Some(lack), _) => Seen::weak(format!("not all is told at once: {lack}"), remedy),
            (None, _) if missed > 0 => Seen::weak(
                format!("of {HEARD} posts {missed} were not told of"),
                remedy,
            ),
            (None, Some(spread)) if spread.p99 > LATE.as_secs_f64() => Seen::weak(
                format!("told as late as {:.1} s behind", spread.p99),
                remedy,
            ),
            (None, _) => Seen::ok(format!("each of {HEARD} posts was told of")),
        };
        Ok((spread, seen))
    }

    /// Measures how long a request takes, and how many jobs a second can be dealt with.
    pub(super) async fn measure(&self) -> Tried<(Option<Spread>, Option<Rates>, Seen)> {
        // What is left behind these is for the claims that have yet to lapse, and to be looked at.
        let share = |part: u32| self.begun + (self.end - self.begun) * part / 10;
        let by = self.keeper("timer");
        let (mut latency, key) = (Vec::new(), self.post_one().await?);
        let mut timed = |start: Instant| latency.push(start.elapsed());
        for round in 0.. {
            if round >= 50 && Instant::now() > share(6) {
                break;
            }
            let start = Instant::now();
            let claimed = self.ada.claim_one(&key, &by, RULES).await?;
            timed(start);
            let claim = self.claim_of(&claimed, &by);
            let start = Instant::now();
            only(self.ada.renew(std::slice::from_ref(&claim)).await?)?;
            timed(start);
            let start = Instant::now();
            self.ada
                .settle_one(&key, release(), authority(&claim))
                .await?;
            timed(start);
            // The others have claims to keep.
            tokio::task::yield_now().await;
        }
        let (mut rounds, mut took) = (0_usize, [Duration::ZERO; 3]);
        while rounds == 0 || Instant::now() < share(8) {
            let start = Instant::now();
            let keys = self.post(BULK).await?;
            took[0] += start.elapsed();
            let (claiming, consuming) = self.consume_all(&keys).await?;
            took[1] += claiming;
            took[2] += consuming;
            rounds += 1;
            tokio::task::yield_now().await;
        }
        let rate = |took: Duration| (rounds * BULK) as f64 / took.as_secs_f64().max(1e-6);
        let [post, claim, consume] = took.map(rate);
        let rates = Rates {
            post,
            claim,
            consume,
        };
        let (count, spread) = (latency.len(), Spread::of(latency));
        let p99 = spread.map_or(0.0, |it| it.p99);
        let seen = match p99 > SLOW {
            false => Seen::ok(format!(
                "of {count} requests 99 of 100 took at most {:.1} ms",
                p99 * 1e3
            )),
            true => Seen::weak(
                format!(
                    "one request of a hundred takes longer than {:.0} ms",
                    p99 * 1e3
                ),
                "look what else the server and the way to it are busy with; have claims last 30 s or more",
            ),
        };
        Ok((spread, Some(rates), seen))
    }

    /// Settles by name what a claimant has.
    pub(super) async fn settle_by_name(&self, key: &JobKey, name: &crate::job::Owner) -> Tried<()> {
        let right = Authority::Owner(name.clone());
        self.bob.settle_one(key, Outcome::Consume, right).await?;
        Ok(())
    }
}

fn only<T>(answers: Vec<Result<T, crate::board::BoardError>>) -> Tried<()> {
    answers.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok(())
}
