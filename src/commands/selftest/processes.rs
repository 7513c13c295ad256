//! Tests an embedded board from several processes: races and kills.

use std::{
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{task::spawn_blocking, time};
use uuid::Uuid;

use super::{
    promise::{Assessment, TrialError, TrialResult, broken, require},
    trial::Trial,
};
use crate::job::{Job, Location, Owner};

pub(super) const PROCESSES: (usize, usize) = (4, 5);

const TAKEN: i32 = 4;

const KILLS: usize = 10;

impl Trial<'_> {
    pub(super) async fn processes_race(&self) -> TrialResult<()> {
        let count = PROCESSES.0;
        for key in self.post(PROCESSES.1).await? {
            let job = format!("key:{key}");
            let rivals: Vec<_> = (0..count)
                .map(|number| self.rival(&["claim", &job, "--who", &format!("rival-{number}")]))
                .collect::<Result<_, _>>()?;
            let ended = rivals
                .into_iter()
                .map(|mut it| spawn_blocking(move || it.child.wait()));
            let ended = join_all(ended).await.into_iter().flatten().flatten();
            let codes: Vec<_> = ended.map(|it| it.code()).collect();
            let won = codes.iter().filter(|code| **code == Some(0)).count();
            let job = self.find_one(Location::Board, &key).await?;
            let owner = job.as_ref().and_then(Job::owner);
            match (won, owner) {
                (1, Some(owner)) => self.consume_of(&key, owner).await?,
                (1, None) => return broken("a won claim disappeared"),
                // The machine may have had no room for them.
                (0, _) if codes != [Some(TAKEN); PROCESSES.0] => {
                    let why = format!("none of {count} test processes reached the claim");
                    return Err(TrialError::Local(why));
                }
                (won, _) => {
                    return broken(format!(
                        "{count} processes claimed one job concurrently; {won} of them won"
                    ));
                }
            }
        }
        Ok(())
    }

    fn rival(&self, words: &[&str]) -> TrialResult<RaceProcess> {
        let mut command = self.scratch.command();
        let command = command.arg("--quiet").args(words).stdin(Stdio::null());
        let command = command.stdout(Stdio::null()).stderr(Stdio::null());
        let child = command
            .spawn()
            .map_err(|error| TrialError::Local(format!("cannot start another process: {error}")))?;
        let _at_it = self.scratch.other();
        Ok(RaceProcess { child, _at_it })
    }

    pub(super) async fn processes_die(&self) -> TrialResult {
        let keys = self.post(KILLS).await?;
        let mut done = 0;
        for key in &keys {
            let rival = self.rival(&["claim", &format!("key:{key}"), "--who", "killed"])?;
            let noise = u64::from(Uuid::new_v4().as_bytes()[0]);
            time::sleep(Duration::from_micros(noise * 100)).await;
            drop(rival);
            let Some(job) = self.find_one(Location::Board, key).await? else {
                return broken("a killed process lost a job");
            };
            match job.holding {
                Some(holding) => {
                    done += 1;
                    require(
                        holding.fence.is_some(),
                        "a killed process left half a claim",
                    )?;
                    self.consume_of(key, &Owner::from_stored("killed")).await?;
                }
                None => self.claim_by_another(key).await?,
            }
        }
        Ok(Assessment::ok(format!(
            "killed {KILLS} processes during a claim: {done} claims took effect, and no partial \
                write remained"
        )))
    }
}

struct RaceProcess {
    child: Child,
    _at_it: Arc<()>,
}

impl Drop for RaceProcess {
    fn drop(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
