//! Kills processes that claim a job of an embedded board.

use std::{
    process::{Child, Stdio},
    sync::Arc,
    time::Duration,
};

use tokio::time;
use uuid::Uuid;

use super::{
    promise::{Assessment, TrialError, TrialResult, broken, require},
    trial::Trial,
};
use crate::job::{Location, Owner};

const KILLS: usize = 10;

impl Trial<'_> {
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
