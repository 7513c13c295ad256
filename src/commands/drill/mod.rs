//! `jobboard drill`.

mod conductors;
mod record;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use futures_util::TryStreamExt;
use rustix::process::Signal;
use serde_json::json;
use tokio::time::{self, Instant};
use uuid::Uuid;

use self::{
    conductors::{Conductors, DrillConductor},
    record::{DrillRecord, DrillReport},
};
use super::{
    bulk::{
        action::{Action, Force},
        task::Executor,
    },
    parts::under_claim,
    selftest::Scratch,
};
use crate::{
    backoff::Backoff,
    board::{Board, BoardError, BoardExt as _, Detail, JobRef, Query},
    context::{Consent, Context},
    diagnosis::is_silent,
    duration,
    exit::{CommandError, PARTLY},
    job::{Draft, Entry, Location, Priority},
    process::signal::Signals,
};

const SLOTS: usize = 3;

/// How often the board is read while the drill waits for it.
const READ_PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// How much longer than the lease each command runs, so that the stopped conductor cannot finish in time.
const BEYOND: Duration = Duration::from_secs(1);

/// The time limit for everything besides the lease and the commands.
const SPARE: Duration = Duration::from_secs(60);

/// Prove that failover works before you need it
///
/// Posts a few jobs that only sleep, lets two conductors of its own claim them, kills one and stops the other for
/// longer than its lease. Then it reports how long the jobs waited for another conductor, and whether any was lost,
/// finished twice, or finished by a conductor that no longer owned it. Your own conductors take part if they may
/// run `sleep`.
///
/// The drill touches only its own jobs and processes, and removes what remains of them. Asks first, unless --yes is
/// given. Use --copy on a board with Python workers, which trash jobs without a flow: the drill then runs on an empty
/// board beside yours. For Octavia boards, --copy is always on. `selftest` tests the server, and `drill` the
/// failover between conductors.
#[derive(Debug, clap::Args)]
pub(crate) struct DrillArgs {
    /// Number of jobs
    #[arg(id = "count", long = "jobs", value_name = "N", default_value_t = 12, value_parser = jobs)]
    jobs: usize,

    /// Lease duration of the drill's conductors
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = lease)]
    lease: Duration,

    /// Start no replacement conductors, so that only yours can take over the jobs
    #[arg(long)]
    yours: bool,

    /// Run on an empty board beside yours, on the same server
    #[arg(long, conflicts_with = "yours")]
    copy: bool,

    #[command(flatten)]
    consent: Consent,
}

fn jobs(text: &str) -> Result<usize, String> {
    let count = text
        .parse()
        .ok()
        .filter(|count| (2 * SLOTS..=1000).contains(count));
    count.ok_or_else(|| format!("use a number from {} to 1000", 2 * SLOTS))
}

fn lease(text: &str) -> Result<Duration, String> {
    let bounds = (Duration::from_secs(2), Duration::from_secs(300));
    duration::within(text, bounds, "use a duration from 2s to 5m")
}

pub(crate) async fn run(ctx: &mut Context, args: DrillArgs) -> anyhow::Result<()> {
    let (board, opener) = ctx.testable_board()?;
    ctx.require_writable()?;
    let name = format!("drill-{}", &Uuid::new_v4().simple().to_string()[..8]);
    let question = format!(
        "post {} jobs named {name}, and kill and stop conductors of this drill?",
        args.jobs
    );
    ctx.ask(&args.consent, &question)?;
    let is_copy = args.copy || ctx.config.board.value.is_of_octavia();
    if is_copy && args.yours {
        let message =
            "--yours needs the board of your conductors, but a drill of Octavia uses a copy";
        return Err(CommandError::usage(message).into());
    }
    let scratch = is_copy.then(|| Scratch::new(ctx.config.board.value.url.resolved(), opener));
    let mut board: Arc<dyn Board> = board;
    if let Some(scratch) = &scratch {
        let copy = scratch.open()?;
        let made = copy.make_scratch().await;
        made.with_context(|| ctx.trying("prepare", "the copy of the board"))?;
        board = copy;
    }
    let mut conductors = Conductors {
        program: ctx.program(),
        copy: scratch.as_ref(),
        name: name.clone(),
        lease: args.lease,
        children: Vec::new(),
    };
    let drill = Drill {
        board: &*board,
        name,
        args: &args,
        record: DrillRecord::default(),
        jobs: (0..args.jobs).map(|_| Uuid::new_v4()).collect(),
    };
    let mut signals = Signals::ending()?;
    let done = tokio::select! {
        biased;
        signal = signals.next() => Err(under_claim::code(128 + signal.as_raw())),
        done = drill.hold(ctx, &mut conductors) => done,
    };
    conductors.end().await;
    let removed = drill.remove_rest(ctx).await;
    drop(board);
    if let Some(scratch) = &scratch
        && let Err(why) = scratch.clean_up().await
    {
        let place = &scratch.url;
        ctx.out.note(format!(
            "warning: {place} was not removed: {why}; `jobboard selftest --clean` removes it"
        ));
    }
    let report = done?;
    removed?;
    ctx.out.report(&report)?;
    match report.works() {
        true => Ok(()),
        false => Err(CommandError::Command(PARTLY).into()),
    }
}

struct Drill<'a> {
    board: &'a dyn Board,
    name: String,
    args: &'a DrillArgs,
    record: DrillRecord,
    jobs: Vec<Uuid>,
}

impl Drill<'_> {
    async fn hold(
        &self,
        ctx: &Context,
        conductors: &mut Conductors<'_>,
    ) -> anyhow::Result<DrillReport> {
        let trying = || ctx.trying("drill", "the board");
        let board = self.board;
        let listener = self.record.listen(board);
        let drilled = async {
            self.record.listens().await;
            let [killed, stopped] = [conductors.start(SLOTS)?, conductors.start(SLOTS)?];
            let both = [&*killed.name, &*stopped.name];
            ctx.out
                .note_at_terminal("two conductors of the drill start");
            self.await_registered(&both).await?;
            self.post().await.with_context(trying)?;
            let have_jobs = || both.iter().all(|it| !self.record.held_by(it).is_empty());
            if !self.record.until(self.deadline(), have_jobs).await {
                anyhow::bail!(
                    "the conductors of the drill claimed no job: others were faster, or the board is paused"
                );
            }
            self.fail_both(ctx, conductors, &killed, &stopped).await
        };
        tokio::select! {
            never = listener => match never.with_context(trying)? {},
            drilled = drilled => drilled,
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + SPARE + self.sleep()
    }

    /// Longer than the lease: the stopped conductor cannot finish in time.
    fn sleep(&self) -> Duration {
        self.args.lease + BEYOND
    }

    async fn post(&self) -> Result<(), BoardError> {
        let command = [
            "sleep".to_owned(),
            format!("{:.3}", self.sleep().as_secs_f64()),
        ];
        let drafts = self.jobs.iter().map(|uuid| Draft {
            priority: Priority::VeryHigh,
            ..Draft::new(*uuid, &*self.name, json!({ "command": command }))
        });
        let drafts: Vec<_> = drafts.collect();
        for posted in self.board.post(&drafts, None).await? {
            posted?;
        }
        Ok(())
    }

    async fn await_registered(&self, names: &[&str]) -> anyhow::Result<()> {
        let (deadline, mut pauses) = (self.deadline(), Backoff::after_one(READ_PAUSES));
        loop {
            let there = self.board.conductors().await?;
            let is_there = |name: &&str| there.iter().any(|it| it.name == **name && !is_silent(it));
            if names.iter().all(is_there) {
                return Ok(());
            }
            if Instant::now() > deadline {
                anyhow::bail!(
                    "the conductors of the drill did not start; `jobboard conduct` shows why"
                );
            }
            time::sleep(pauses.exact_pause()).await;
        }
    }

    /// Kills one conductor, stops the other past its lease, and watches the jobs.
    async fn fail_both(
        &self,
        ctx: &Context,
        conductors: &mut Conductors<'_>,
        killed: &DrillConductor,
        stopped: &DrillConductor,
    ) -> anyhow::Result<DrillReport> {
        conductors.signal(killed, Signal::KILL)?;
        conductors.signal(stopped, Signal::STOP)?;
        let since = Instant::now();
        ctx.out
            .note_at_terminal("one of them is killed, the other is stopped");
        let [of_killed, of_stopped] = [killed, stopped].map(|it| self.record.held_by(&it.name));
        if !self.args.yours {
            let rest = self.args.jobs.div_ceil(2).max(SLOTS);
            conductors.start(rest)?;
        }
        // All of its claims are over by then, wherever the time is measured.
        time::sleep_until(since + self.args.lease * 2).await;
        // On a busy machine, conductors need longer to take them over.
        let pickups = || self.record.pickups(&of_stopped, &stopped.name, since);
        let all = || pickups().picked_up == of_stopped.len();
        self.record.until(self.deadline(), all).await;
        conductors.signal(stopped, Signal::CONT)?;
        let long = since.elapsed();
        let rounds = u32::try_from(self.args.jobs).unwrap_or(u32::MAX);
        let deadline = self.deadline() + self.sleep() * rounds.min(4);
        let uuids: Vec<_> = self.jobs.iter().map(Uuid::to_string).collect();
        let all = || uuids.iter().all(|uuid| self.record.has_ended(uuid));
        self.record.until(deadline, all).await;
        let refused = self.refusals(stopped, of_stopped.len() as u64).await;
        Ok(DrillReport {
            board: self.board.url().to_owned(),
            jobs: self.args.jobs,
            lease: self.args.lease.as_secs_f64(),
            crash: self.record.pickups(&of_killed, &killed.name, since),
            stop: pickups(),
            stopped_for: long.as_secs_f64(),
            refused,
            finished: self.record.finished(&uuids),
            finished_twice: self.record.finished_twice(&uuids),
            finished_by_former_owner: self.record.finished_by_former(
                &of_stopped,
                &stopped.name,
                since,
            ),
            lost: self.lost().await?,
            events_missed: self.record.missed(&uuids),
            took_over: self
                .record
                .took_over(&[of_killed, of_stopped].concat(), since),
        })
    }

    async fn refusals(&self, stopped: &DrillConductor, all: u64) -> Option<u64> {
        let (deadline, mut pauses) = (
            Instant::now() + self.args.lease * 2,
            Backoff::after_one(READ_PAUSES),
        );
        loop {
            let there = self.board.conductors().await.ok()?;
            let own = there.iter().find(|it| it.name == stopped.name);
            match own.map(|it| it.report.counters.lost) {
                Some(lost) if lost >= all => return Some(lost),
                known if Instant::now() > deadline => return known,
                _ => time::sleep(pauses.exact_pause()).await,
            }
        }
    }

    /// Counts the jobs that are in no place: neither on the board nor in the trash, and without an end in the history.
    async fn lost(&self) -> anyhow::Result<usize> {
        let uuids = self.jobs.iter().map(Uuid::to_string);
        let references: Vec<_> = uuids.clone().map(JobRef::Uuid).collect();
        let locations = [Location::Board, Location::Trash, Location::History];
        let found = self.board.resolve_on(&locations, &references).await?;
        let lost = uuids.zip(&found);
        let lost = lost.filter(|(uuid, it)| it.is_err() && !self.record.has_ended(uuid));
        Ok(lost.count())
    }

    async fn remove_rest(&self, ctx: &Context) -> anyhow::Result<()> {
        let (force, failed) = (Force::Any, false);
        let consume = Action::Consume { force, failed };
        for (location, action) in [(Location::Board, consume), (Location::Trash, Action::Purge)] {
            let query = Query::all(location, Detail::Brief);
            let own = self.board.entries(query).try_filter(|entry| {
                let uuid = entry.job().and_then(|job| job.uuid.parse::<Uuid>().ok());
                std::future::ready(uuid.is_some_and(|uuid| self.jobs.contains(&uuid)))
            });
            let own: Vec<Entry> = own.try_collect().await?;
            if own.is_empty() {
                continue;
            }
            let (who, reason) = (ctx.who().clone(), Some(self.name.clone()));
            let executor = Executor::new(self.board, &action, who, reason).await;
            // Some may have ended meanwhile.
            executor.act(&own.iter().collect::<Vec<_>>()).await?;
        }
        Ok(())
    }
}
