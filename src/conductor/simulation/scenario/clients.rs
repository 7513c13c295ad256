//! The poster, the operator, the Python service and the shells of a scenario.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use futures_util::TryStreamExt;
use serde_json::json;
use tokio::{task::spawn_local, time};
use uuid::Uuid;

use super::{LEASE, OPERATOR, PEER, POSTER, RunningProgram, World, conductors::retry};
use crate::{
    board::{
        Board, BoardExt, ClaimRules, Detail, Query,
        testing::simulated::{ClaimLifetime, Server, SimulatedBoard, kind_of},
    },
    job::{
        Aftermath, AuditEntry, Authority, CapturedOutput, Claim, Claimant, Claimed, Decision,
        Draft, Entry, ExpectedState, Failure, Job, Location, Owner, Pause, Priority, RELEASED,
        Revision, Settlement, Term,
    },
    lease::Keeper,
    process::{
        clock::{self, Boottime},
        command::CommandSpec,
        signal::Signals,
        simulation::{Standing, part_of},
    },
    retry::{AttemptContext, AttemptEnd},
    worker::{HeldJob, Worker, foreground::perform_here, settling::settle_claim},
};

impl World {
    pub(super) async fn post(&mut self, jobs: u64) {
        let drafts = (0..jobs).map(|_| {
            let (high, low) = self.draw(|dice| (dice.next(), dice.next()));
            Draft {
                uuid: Uuid::from_u64_pair(high, low),
                chosen: false,
                name: "job".to_owned(),
                priority: Priority::Normal,
                book: None,
                details: json!({ "command": ["/bin/true"] }).into(),
                former: None,
            }
        });
        let drafts: Vec<_> = drafts.collect();
        let Ok(answers) = self.board(POSTER).post(&drafts, None).await else {
            return;
        };
        for (draft, answer) in drafts.iter().zip(answers) {
            if answer.is_ok() {
                self.posted.push(draft.uuid.to_string());
            }
        }
    }

    /// Returns a random job, claimed or unclaimed, as an operator sees it.
    async fn some(&self, board: &SimulatedBoard, location: Location, is_held: bool) -> Option<Job> {
        let entries = board.entries(Query::all(location, Detail::Whole));
        let entries: Vec<_> = entries.try_collect().await.ok()?;
        let jobs = entries.into_iter().filter_map(|entry: Entry| match entry {
            Entry::Job(job) if job.holding.is_some() == is_held => Some(*job),
            _ => None,
        });
        let jobs: Vec<_> = jobs.collect();
        let at = self.draw(|dice| dice.below(jobs.len() as u64) as usize);
        jobs.into_iter().nth(at)
    }

    pub(super) async fn release_by_force(&self) {
        let board = self.board(OPERATOR);
        let Some(job) = self.some(&board, Location::Board, true).await else {
            return;
        };
        let left = job.holding.as_ref().and_then(|it| it.expires_in);
        let left = TimeDelta::from_std(left.unwrap_or(LEASE)).unwrap_or_default();
        let key = job.key.clone();
        let entry = Entry::Job(Box::new(job));
        // The owner may still run it, so conductors wait until the old claim would have ended.
        let aftermath = Aftermath::Failed {
            failure: Failure::reported(RELEASED, "operator"),
            not_before: Some(clock::wall() + left),
        };
        let authority = Authority::Force(ExpectedState::of(&entry));
        let settlement = Settlement::of(key, Decision::Abandon(aftermath), authority);
        let _ = board.settle(&[settlement]).await;
    }

    pub(super) async fn retry_all(&self) {
        let board = self.board(OPERATOR);
        while let Some(job) = self.some(&board, Location::Trash, false).await {
            let restore = Revision::from_trash(job.key.clone(), None);
            if board.revise(&[restore]).await.is_err() {
                return;
            }
        }
    }

    pub(super) async fn pause(&self) {
        let board = self.board(OPERATOR);
        let audit = AuditEntry::now("paused", "operator", None);
        let pause = Pause::new("*".to_owned(), None, audit.clone());
        let _ = board.pause(&pause).await;
        let long = (Duration::from_secs(1), Duration::from_secs(60));
        let long = self.draw(|dice| dice.between(long));
        tokio::spawn(async move {
            time::sleep(long).await;
            while board.resume("*", &audit).await.is_err() {
                time::sleep(Duration::from_secs(1)).await;
            }
        });
    }

    /// Lets a Python service claim a job and finish it in time.
    pub(super) async fn peer(&self) {
        let board = self.board(PEER);
        let by = Claimant {
            owner: Owner::new("peer").unwrap(),
            term: Term::For(Duration::from_secs(600)),
        };
        let Some(job) = self.some(&board, Location::Board, false).await else {
            return;
        };
        let rules = ClaimRules {
            respects_delay: true,
            ..ClaimRules::BY_HAND
        };
        let Ok(claimed) = board.claim_one(&job.key, &by, rules).await else {
            return;
        };
        let machine = Arc::clone(&self.machine);
        let (_, mut end) = machine.start_command(&job.uuid, None);
        tokio::spawn(async move {
            let ended = end.wait_for(Option::is_some).await.ok().and_then(|it| *it);
            let decision = match ended.map(|it| it.code()) {
                Some(0) => Decision::Consume,
                _ => Decision::Abandon(Aftermath::None),
            };
            for _ in 0..20 {
                let authority = Authority::Claim(by.owner.clone(), claimed.fence.clone());
                let answer = board
                    .settle_one(&job.key, decision.clone(), authority)
                    .await;
                match answer {
                    Err(error) if error.is_away() || !error.is_about_the_claim() => {
                        time::sleep(Duration::from_secs(5)).await;
                    }
                    _ => return,
                }
            }
        });
    }

    /// Starts a program that claims one job, runs it and settles it.
    pub(super) fn start_shell(&mut self) {
        self.next += 1;
        let (program, lifetime) = (self.next, self.scenario.lifetime);
        let (machine, server) = (Arc::clone(&self.machine), Arc::clone(&self.server));
        let board = self.board(program);
        machine.note(format_args!("a shell starts as {program}"));
        let task = spawn_local(part_of(Some(program), async move {
            if lifetime == ClaimLifetime::Session {
                board.keep_session(LEASE);
            }
            let owner = Owner::new(&format!("shell:{program}")).unwrap();
            run_one(board, owner, &server).await;
            machine.set(program, Standing::Dead);
        }));
        self.shells.push(RunningProgram { program, task });
    }
}

async fn claim_any(board: &dyn Board, owner: &Owner) -> Option<(Boottime, Claimed)> {
    let by = Claimant {
        owner: owner.clone(),
        term: Term::Lease(LEASE),
    };
    let rules = ClaimRules {
        is_attempt: true,
        respects_delay: true,
        ..ClaimRules::BY_HAND
    };
    let entries = board.entries(Query::all(Location::Board, Detail::Whole));
    let entries: Vec<_> = entries.try_collect().await.ok()?;
    let keys = entries.iter().map(|entry| entry.key().clone());
    let keys: Vec<_> = keys.collect();
    let asked = Boottime::now();
    let answers = board.claim(&keys, &by, 1, rules).await.ok()?;
    let claimed = answers.into_iter().find_map(Result::ok)?;
    Some((asked, claimed))
}

/// Claims a job, runs it and settles it, as `claim --next -- COMMAND` does.
async fn run_one(board: Arc<SimulatedBoard>, owner: Owner, server: &Server) {
    let worker = Worker::start(&owner.text(), &owner, &[]).unwrap();
    let Some((asked, claimed)) = claim_any(&*board, &owner).await else {
        return;
    };
    let (job, fence) = (claimed.job, claimed.fence);
    let keeper = Keeper::start(Arc::clone(&board) as Arc<dyn Board>);
    let claim = Claim {
        key: job.key.clone(),
        owner: owner.clone(),
        fence: Some(fence.clone()),
        term: LEASE,
    };
    let mut held = HeldJob {
        lease: keeper.hold(claim, asked),
        look_since: Boottime::now(),
        job,
        fence,
    };
    let argv = ["/bin/true".into()];
    let mut command = CommandSpec::here(&argv, None).unwrap();
    let mut signals = Signals::catch(&[]).unwrap();
    let ended = perform_here(&worker, &mut held, &mut command, &mut signals, None).await;
    let Ok((ended, _)) = ended else { return };
    let HeldJob {
        job, fence, lease, ..
    } = &mut held;
    let decision = retry().decide(
        &AttemptEnd::Ended(ended),
        AttemptContext {
            attempts: &job.attempts,
            max_attempts: None,
            conductor: &owner,
            output: &CapturedOutput::default,
        },
    );
    let settlement = Settlement::of_command(job, &decision, &owner, fence);
    if settle_claim(&*board, &settlement, Some(lease))
        .await
        .is_ok()
    {
        server.change(|store| store.hear_report(&job.uuid, &owner, kind_of(&decision)));
    }
}
