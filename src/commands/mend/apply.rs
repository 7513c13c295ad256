//! Carries a plan out. Everything is read again before each change.

use std::{
    io,
    os::fd::AsFd,
    process::{Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::Context as _;
use chrono::Utc;
use tokio::{
    task,
    time::{self, Instant},
};

use super::{
    MendArgs, Sources,
    plan::{DELETE, RepairPlan, Step},
    view::MendReport,
};
use crate::{
    backoff::Backoff,
    board::{Board, BoardError, BoardExt, ext::the_answer, uuid_of},
    commands::bulk::{
        action::{Action, Force},
        settle::require_end_of_command,
        task::Executor,
    },
    context::Context,
    diagnosis::{Asked, JudgedBalancer},
    duration,
    exit::{CommandError, MendEnd, verb},
    job::{
        AuditEntry, Authority, Claimant, Decision, Draft, Entry, Identity, Job, Settlement, Term,
    },
    logbook::{BalancerTransaction, LoadBalancer, LogbookUrl},
    suggest::Hint,
};

const STATUS_PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// How long a killed repair may leave its record on the board.
const RECORDING: Duration = Duration::from_secs(10);

/// The exit code of a shell that finds no such program.
const NO_PROGRAM: i32 = 127;

pub(super) struct BalancerRepair<'a> {
    pub(super) judged: &'a JudgedBalancer,
    pub(super) plan: &'a RepairPlan,
    pub(super) args: &'a MendArgs,
}

impl BalancerRepair<'_> {
    pub(super) async fn carry_out(
        &self,
        ctx: &mut Context,
        sources: &mut Sources,
        report: &mut MendReport,
    ) -> anyhow::Result<()> {
        let balancer = &self.judged.balancer;
        if self.plan.steps.iter().any(|it| *it != Step::Wait) {
            ctx.require_writable()?;
            let names: Vec<_> = self.plan.steps.iter().map(Step::name).collect();
            let question = format!(
                "mend load balancer {} {} ({})?",
                balancer.name,
                balancer.id,
                names.join(", ")
            );
            ctx.ask(&self.args.consent, &question)?;
        }
        report.done = Some(Vec::new());
        let began = Instant::now();
        // A failover begins with a load balancer that has ended: only another status is its result.
        let mut before = None;
        for step in &self.plan.steps {
            let done = match step {
                Step::Release | Step::Restore | Step::Repost => {
                    self.change_board(ctx, sources, step).await?
                }
                Step::SetError(statement) => self.set_error(ctx, sources, statement).await?,
                Step::FailOver(command) | Step::Delete(command) => {
                    before = sources.row(ctx, &balancer.id).await?;
                    self.run(ctx, step, command).await?
                }
                Step::Wait => {
                    let ended = self.wait(ctx, sources, before.take()).await?;
                    report.status.clone_from(&ended);
                    let took = duration::brief(began.elapsed());
                    report.add_done(step, format!("{ended} after {took}"));
                    return self.judge_end(&ended);
                }
            };
            ctx.out.note(format!("{}: {done}", step.name()));
            report.add_done(step, done);
            if let Step::SetError(_) = step {
                report.status = "ERROR".to_owned();
            }
        }
        Ok(())
    }

    async fn require_unchanged(&self, ctx: &Context, sources: &mut Sources) -> anyhow::Result<()> {
        let look = sources
            .look(ctx, Asked::Like(&self.judged.balancer.id))
            .await?;
        let now = look.balancers.first();
        let Some(now) = now else {
            return Err(self.changed("its status changed, or it is gone"));
        };
        match now.change_since(self.judged) {
            Some(why) => Err(self.changed(&why)),
            None => Ok(()),
        }
    }

    async fn change_board(
        &self,
        ctx: &Context,
        sources: &mut Sources,
        step: &Step,
    ) -> anyhow::Result<String> {
        self.require_unchanged(ctx, sources).await?;
        let board = &*sources.board;
        let trying = || ctx.trying(verb::MEND, &self.judged.balancer.id);
        if *step == Step::Repost {
            return self.repost(board).await.with_context(trying);
        }
        let entry = self.judged.job.as_ref().ok_or(BoardError::NoSuchJob)?;
        let reference = entry.reference();
        let (action, done) = match step {
            Step::Restore => {
                require_end_of_command(entry, Utc::now()).with_context(trying)?;
                (
                    Action::Restore,
                    format!("moved {reference} back to the board"),
                )
            }
            _ => {
                let (force, now) = (Force::Any, false);
                (
                    Action::Abandon { force, now },
                    format!("released {reference}"),
                )
            }
        };
        self.act(ctx, board, action, entry)
            .await
            .with_context(trying)?;
        Ok(done)
    }

    async fn act(
        &self,
        ctx: &Context,
        board: &dyn Board,
        action: Action,
        entry: &Entry,
    ) -> anyhow::Result<()> {
        let (who, reason) = (ctx.who().clone(), Some(self.reason()));
        let executor = Executor::new(board, &action, who, reason).await;
        let mut answers = executor.act(&[entry]).await?;
        answers
            .pop()
            .unwrap_or_else(|| Err(BoardError::NoSuchJob.into()))
            .map(drop)
    }

    fn reason(&self) -> String {
        let given = self.args.reason.given();
        given.unwrap_or_else(|| {
            format!(
                "load balancer {}: {}",
                self.judged.balancer.id, self.judged.verdict
            )
        })
    }

    /// Posts the lost job again: the same flow, data and logbook under a new uuid.
    async fn repost(&self, board: &dyn Board) -> anyhow::Result<String> {
        let flow = self.judged.flow.as_ref();
        let (Some(flow), Some((store, book))) = (flow, &self.judged.origin) else {
            return Err(BoardError::NoSuchJob.into());
        };
        // Two repairs of the same flow cannot both post it.
        let uuid = uuid_of(&format!("mend:{}", flow.uuid));
        let draft = Draft {
            chosen: true,
            book: Some(book.clone()),
            ..Draft::new(uuid, &*flow.name, serde_json::json!({ "store": store }))
        };
        match board.post_one(&draft, None).await {
            Ok(_) => Ok(format!("posted {} as {}", flow.name, draft.uuid)),
            Err(BoardError::Exists { .. }) => Err(self.changed("its job is on the board again")),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the row to ERROR while it is locked, if nothing has changed by then.
    async fn set_error(
        &self,
        ctx: &Context,
        sources: &mut Sources,
        statement: &str,
    ) -> anyhow::Result<String> {
        let balancer = &self.judged.balancer;
        let url = sources.own.value.expose().parse::<LogbookUrl>();
        let source = sources.own.source.to_string();
        let url = url.map_err(|error| CommandError::usage(format!("{source}: {error}")))?;
        let trying = || format!("cannot change load balancer {} in {url}", balancer.id);
        let op_timeout = ctx.config.op_timeout.value;
        let locked = BalancerTransaction::lock(&url, op_timeout, &balancer.id).await;
        let (transaction, row) = locked.with_context(trying)?;
        match &row {
            Some(row) if row == balancer => {}
            Some(row) => {
                return Err(self.changed(&format!("the load balancer is now {}", row.status)));
            }
            None => return Err(self.changed("the load balancer is gone")),
        }
        transaction.set_error(balancer).await.with_context(trying)?;
        // Until the commit, other connections see the row as it was. Nothing may come between this look and the commit.
        self.require_unchanged(ctx, sources).await?;
        transaction.commit().await.with_context(trying)?;
        let done = format!("{} -> ERROR", balancer.status);
        match self.record(ctx, &*sources.board, statement).await {
            Ok(uuid) => Ok(format!("{done}; recorded in the history as {uuid}")),
            Err(error) => {
                let warning =
                    format!("warning: could not record the repair on the board: {error:#}");
                ctx.out.note(warning);
                Ok(done)
            }
        }
    }

    /// Records the repair in the history, by a job that is posted claimed and then consumed.
    async fn record(
        &self,
        ctx: &Context,
        board: &dyn Board,
        statement: &str,
    ) -> anyhow::Result<String> {
        let balancer = &self.judged.balancer;
        let claimant = Claimant {
            owner: ctx.who().clone(),
            term: Term::Lease(RECORDING),
        };
        let name = format!("mend {}: {} -> ERROR", balancer.id, balancer.status);
        let details = serde_json::json!({ "sql": statement });
        let draft = Draft::new(uuid::Uuid::new_v4(), name, details);
        let posted = board.post_one(&draft, Some(&claimant)).await?;
        let authority = match posted.fence {
            Some(fence) => Authority::Claim(claimant.owner.clone(), fence),
            None => Authority::Owner(claimant.owner.clone()),
        };
        let job = Job {
            sequence: Some(posted.sequence),
            created_on: Some(Utc::now()),
            ..Job::new(posted.key.clone(), draft.uuid.to_string(), draft.name)
        };
        let reason = self.reason();
        let settlement = Settlement {
            job: Some(Identity::from(&job)),
            audit: Some(AuditEntry::now("mended", &ctx.who().text(), Some(&reason))),
            ..Settlement::of(posted.key, Decision::Consume, authority)
        };
        the_answer(board, board.settle(&[settlement]).await?)?;
        Ok(job.uuid)
    }

    async fn run(&self, ctx: &Context, step: &Step, command: &str) -> anyhow::Result<String> {
        let (id, failover) = (
            &self.judged.balancer.id,
            self.args.failover_command.as_str(),
        );
        // The id is no part of the script: the shell reads nothing of it.
        let script = match step {
            Step::Delete(_) => format!("{DELETE} \"$1\""),
            _ => format!("{failover} \"$1\""),
        };
        ctx.out.note(format!("running {command}"));
        let stderr = io::stderr().as_fd().try_clone_to_owned()?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, "sh", id]).stdin(Stdio::null());
        shell.stdout(Stdio::from(stderr));
        let status = task::spawn_blocking(move || shell.status()).await?;
        let status = status.with_context(|| format!("cannot run {command}"))?;
        match ended(status) {
            0 => Ok(format!("{command} succeeded")),
            NO_PROGRAM => Ok(format!(
                "the program is missing on this machine; run it on another one: {command}"
            )),
            code => {
                let message = format!("{command} ended with exit code {code}");
                Err(self.ended(MendEnd::Failed, message))
            }
        }
    }

    fn changed(&self, why: &str) -> anyhow::Error {
        let id = &self.judged.balancer.id;
        let message = format!("cannot mend load balancer {id}: it changed meanwhile: {why}");
        self.ended(MendEnd::Changed, message)
    }

    fn ended(&self, end: MendEnd, message: String) -> anyhow::Error {
        let again = "`jobboard mend --lb {}` looks again and continues from there";
        let hint = Hint::new(again, [&[&self.judged.balancer.id]]);
        CommandError::Mend { end, message, hint }.into()
    }

    /// Waits until the load balancer has left its present state and is no longer pending.
    async fn wait(
        &self,
        ctx: &Context,
        sources: &mut Sources,
        before: Option<LoadBalancer>,
    ) -> anyhow::Result<String> {
        let (id, limit) = (&self.judged.balancer.id, self.args.timeout);
        ctx.out.note_at_terminal(format!(
            "waiting at most {} for the result",
            duration::brief(limit)
        ));
        let deadline = Instant::now() + limit;
        let mut pauses = Backoff::without_first_pause(STATUS_PAUSES);
        loop {
            time::sleep_until(deadline.min(Instant::now() + pauses.exact_pause())).await;
            match sources.row(ctx, id).await? {
                None => return Ok("DELETED".to_owned()),
                Some(row) if !row.is_pending() && before.as_ref() != Some(&row) => {
                    return Ok(row.status);
                }
                Some(row) if Instant::now() >= deadline => {
                    let message = format!(
                        "load balancer {id} is still {} after {}",
                        row.status,
                        duration::brief(limit)
                    );
                    return Err(self.ended(MendEnd::TimedOut, message));
                }
                Some(_) => {}
            }
        }
    }

    fn judge_end(&self, status: &str) -> anyhow::Result<()> {
        let balancer = &self.judged.balancer;
        let is_well = match balancer.is_to_be_deleted() {
            true => status == "DELETED",
            false => status == "ACTIVE",
        };
        match is_well {
            true => Ok(()),
            false => {
                let message = format!("load balancer {} ended in {status}", balancer.id);
                Err(self.ended(MendEnd::Failed, message))
            }
        }
    }
}

impl Sources {
    async fn row(&mut self, ctx: &Context, id: &str) -> anyhow::Result<Option<LoadBalancer>> {
        self.seen = Default::default();
        match self.reader.row(id, &mut self.seen).await {
            Some(row) => Ok(row),
            None => Err(self.unreadable()).with_context(|| ctx.trying("wait for", id)),
        }
    }
}

fn ended(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt as _;
    let signal = status.signal().map(|signal| 128 + signal);
    status.code().or(signal).unwrap_or(-1)
}
