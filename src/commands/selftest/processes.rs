//! What is done to an embedded board by other processes: they race, hold its lock, and are killed.

use std::{
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use tokio::{task::spawn_blocking, time};
use uuid::Uuid;

use super::{
    promise::{Seen, Tried, Trouble, require},
    trial::{RULES, Trial},
};
use crate::{
    board::{
        BoardExt as _,
        open::{HELD, HOLDER},
        url::BoardUrl,
    },
    job::{Job, Owner, Shelf},
};

/// How many processes claim one job at once, and how often.
pub(super) const PROCESSES: (usize, usize) = (4, 5);

/// How many processes are killed.
const KILLS: usize = 10;

/// How long it is looked whether a lock is kept.
const MOMENT: Duration = Duration::from_millis(50);

impl Trial<'_> {
    /// Has several processes claim one job.
    pub(super) async fn processes_race(&self) -> Tried<()> {
        for _ in 0..PROCESSES.1 {
            let key = self.post_one().await?;
            let job = format!("key:{key}");
            let rivals: Vec<_> = (0..PROCESSES.0)
                .map(|number| self.rival(&["claim", &job, "--who", &format!("rival-{number}")]))
                .collect::<Result<_, _>>()?;
            let ended = rivals
                .into_iter()
                .map(|mut it| spawn_blocking(move || it.child.wait()));
            let ended = join_all(ended).await.into_iter().flatten().flatten();
            let won = ended.filter(std::process::ExitStatus::success).count();
            require(won == 1, || {
                format!(
                    "of {} processes that claimed one job at once {won} won",
                    PROCESSES.0
                )
            })?;
            let job = self.find_one(Shelf::Board, &key).await?;
            let owner = job.as_ref().and_then(Job::owner);
            let owner =
                owner.ok_or_else(|| Trouble::Broken("a claim is gone that was won".to_owned()))?;
            self.settle_by_name(&key, owner).await?;
        }
        Ok(())
    }

    fn start(&self, command: &mut Command) -> Tried<Rival> {
        let child = command
            .spawn()
            .map_err(|error| Trouble::Broken(format!("cannot start another process: {error}")))?;
        let _at_it = self.site.other();
        Ok(Rival { child, _at_it })
    }

    /// Starts this program on the board under test.
    fn rival(&self, words: &[&str]) -> Tried<Rival> {
        let url = self.site.url.to_string();
        let mut command = Command::new("/proc/self/exe");
        command
            .args(["--config", "/dev/null", "--board", &url, "--quiet"])
            .args(words);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("JOBBOARD_") {
                command.env_remove(name);
            }
        }
        self.start(
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        )
    }

    /// Kills processes in the middle of claims, and one in the middle of removing all jobs.
    pub(super) async fn processes_die(&self) -> Tried {
        let keys = self.post(KILLS).await?;
        let mut done = 0;
        for key in &keys {
            let rival = self.rival(&["claim", &format!("key:{key}"), "--who", "killed"])?;
            let noise = u64::from(Uuid::new_v4().as_bytes()[0]);
            time::sleep(Duration::from_micros(noise * 100)).await;
            drop(rival);
            let Some(job) = self.find_one(Shelf::Board, key).await? else {
                return Err(Trouble::Broken("a job was lost with a process".to_owned()));
            };
            match job.holding {
                Some(holding) => {
                    done += 1;
                    require(holding.fence.is_some(), || {
                        "a claim was done by half when its process died".to_owned()
                    })?;
                    self.settle_by_name(key, &Owner::from_stored("killed"))
                        .await?;
                }
                None => self.taken_by_another(key).await?,
            }
        }
        self.locked_out().await?;
        Ok(Seen::ok(format!(
            "of {KILLS} processes that were killed as they claimed {done} had done so; a lock that one had kept \
             others out, and nothing of what it was doing was left"
        )))
    }

    /// Has a process keep the file locked, tries to write meanwhile, and kills it.
    async fn locked_out(&self) -> Tried<()> {
        let BoardUrl::Embedded(url) = &self.site.url else {
            return Ok(());
        };
        let keys = self.post(8).await?;
        let mut command = Command::new("/proc/self/exe");
        command.arg(HOLDER).arg(&url.path);
        let mut holder = self.start(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null()),
        )?;
        let said = holder.child.stdout.take().map(BufReader::new);
        let said = spawn_blocking(move || said.and_then(|it| it.lines().next()?.ok())).await;
        let is_held = matches!(said, Ok(Some(word)) if word == HELD);
        require(is_held, || {
            "another process could not lock the file".to_owned()
        })?;
        let by = self.keeper("heir");
        let early = time::timeout(MOMENT, self.ada.claim_one(&keys[0], &by, RULES)).await;
        require(!matches!(early, Ok(Ok(_))), || {
            "the file was written while another process had it locked: the file system does not keep locks".to_owned()
        })?;
        drop(holder);
        let found = self.find(Shelf::Board, &keys).await?;
        let gone = found.iter().filter(|it| it.is_none()).count();
        require(gone == 0, || {
            format!(
                "of {} jobs {gone} are gone with a process that was killed before it was done",
                keys.len()
            )
        })?;
        self.taken_by_another(&keys[0]).await
    }
}

/// A process of ours, which is killed when we are done with it.
struct Rival {
    child: Child,
    _at_it: Arc<()>,
}

impl Drop for Rival {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
