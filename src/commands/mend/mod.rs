//! `jobboard mend`.

mod apply;
mod plan;
mod view;

#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, anyhow};
use chrono::{TimeDelta, Utc};

use self::{
    apply::BalancerRepair,
    plan::RepairPlan,
    view::{MendReport, StuckRow},
};
use super::parts::{logbook::secret, octavia::id, reason::ReasonArgs};
use crate::{
    board::{Board, BoardError, examine::Examined},
    config::{Source, Sourced},
    context::{Consent, Context},
    diagnosis::{Asked, BalancerReport, JudgedBalancer, OctaviaReader},
    duration,
    exit::{CommandError, MendEnd, verb},
    output::{Column, Fit},
    secret::Secret,
};

/// A load balancer that changes during each of so many looks is not judged.
const MAX_LOOKS: usize = 5;

/// Younger amphorae may still be booting.
const OLD: TimeDelta = TimeDelta::minutes(10);

/// Bring stuck load balancers back to ACTIVE
///
/// For Octavia boards. Compares the load balancer's row with the board, the claims, the workers and the
/// logbook, finds out why it is stuck, and prints the plan that changes the least: wait, release the claim, restore
/// the job, post it again from its logbook, or set the load balancer to ERROR and fail it over. Without --lb it lists
/// all stuck load balancers and amphorae. Nothing is changed without --apply.
///
/// --apply asks first. Before each change it reads everything again: if a worker holds the job, the flow advances, or
/// anything differs from the plan, it changes nothing and exits with 4. Then it waits for the result. Repeat the
/// command after an interruption: it continues where it stopped.
#[derive(Debug, clap::Args)]
pub(crate) struct MendArgs {
    /// Load balancer (id or prefix)
    #[arg(long, value_name = "ID", value_parser = id)]
    lb: Option<String>,

    /// With --apply: mend all stuck load balancers, one after another
    #[arg(long, conflicts_with = "lb", requires_all = ["apply", "max"])]
    all: bool,

    /// With --all: refuse to mend more load balancers than this
    #[arg(long, value_name = "N", requires = "all")]
    max: Option<usize>,

    /// Carry out the plan
    #[arg(long)]
    apply: bool,

    /// Octavia's own database: mysql://USER@HOST/DB, postgresql://…, or sqlite:FILE
    ///
    /// The default is `[database] connection` in octavia.conf. Without --apply, `mend` only reads it. --apply
    /// needs the right to UPDATE load_balancer.
    #[arg(long, value_name = "URL", value_parser = secret)]
    octavia_database: Option<Secret>,

    /// Failover command; the load balancer's id is appended as the last argument
    #[arg(
        long,
        value_name = "COMMAND",
        default_value = "openstack loadbalancer failover"
    )]
    failover_command: String,

    /// Wait at most this long for each load balancer
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "30m")]
    timeout: Duration,

    #[command(flatten)]
    reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn run(ctx: &mut Context, args: MendArgs) -> anyhow::Result<()> {
    if args.apply && args.lb.is_none() && !args.all {
        let hint =
            "`jobboard help mend` has examples; `--all --max N` mends all stuck load balancers";
        let message = "--apply mends one load balancer: name it with --lb";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    let Some(conf) = ctx.config.board.value.octavia.clone() else {
        let message = "only Octavia boards have load balancers to mend";
        let hint = "use `--board octavia:` for the board in /etc/octavia/octavia.conf";
        return Err(CommandError::usage(message).hint(hint).into());
    };
    let own = args.octavia_database.clone();
    let own = own.map(|it| Sourced::new(it, Source::Flag("--octavia-database")));
    let own = own.or_else(|| conf.database.clone());
    let Some(own) = own else {
        let message = "the database with Octavia's load balancers is not configured";
        let hint = "set `connection` under `[database]` in octavia.conf, or use --octavia-database";
        return Err(CommandError::usage(message).hint(hint).into());
    };
    let mut sources = Sources {
        board: ctx.board()?,
        reader: OctaviaReader::open(&ctx.config, &conf, Some(&own)).await,
        own,
        seen: Examined::default(),
    };
    match &args.lb {
        Some(prefix) => {
            let (judged, look) = sources.named(ctx, prefix).await?;
            one(ctx, &args, &mut sources, judged, look).await
        }
        None if args.all => all(ctx, &args, &mut sources).await,
        None => list(ctx, &mut sources).await,
    }
}

struct Sources {
    board: Arc<dyn Board>,
    reader: OctaviaReader,
    own: Sourced<Secret>,
    /// What could not be read.
    seen: Examined,
}

impl Sources {
    async fn look(&mut self, ctx: &Context, asked: Asked<'_>) -> anyhow::Result<BalancerReport> {
        self.seen = Examined::default();
        let look = self.reader.look(&*self.board, asked, &mut self.seen).await;
        let trying = || ctx.trying("look for", "the jobs of the load balancers");
        // Without the board nothing can be decided.
        let is_away = |(_, why): &mut (String, Option<BoardError>)| {
            why.as_ref().is_some_and(BoardError::is_retryable)
        };
        if let Some((_, Some(error))) = self.seen.unseen.extract_if(.., is_away).next() {
            return Err(error).with_context(trying);
        }
        match look {
            Some(look) => Ok(look),
            None => {
                Err(self.unreadable()).with_context(|| ctx.trying(verb::MEND, "load balancers"))
            }
        }
    }

    fn unreadable(&self) -> anyhow::Error {
        anyhow!(self.seen.gaps().collect::<Vec<_>>().join("; "))
    }

    fn warn_of_gaps(&self, ctx: &Context) {
        for gap in self.seen.gaps() {
            ctx.out.note(format!("warning: could not check {gap}"));
        }
    }

    /// Looks at the only load balancer with this id prefix; again if it changes meanwhile.
    async fn named(
        &mut self,
        ctx: &Context,
        prefix: &str,
    ) -> anyhow::Result<(JudgedBalancer, BalancerReport)> {
        let mut look = self.look(ctx, Asked::Like(prefix)).await?;
        for _ in 1..MAX_LOOKS {
            if !look.has_changed {
                break;
            }
            look = self.look(ctx, Asked::Like(prefix)).await?;
        }
        if let Some(exact) = look
            .balancers
            .iter()
            .position(|it| it.balancer.id == prefix)
        {
            look.balancers.swap(0, exact);
            look.balancers.truncate(1);
        }
        let count = look.balancers.len() + look.left_out;
        match look.balancers.pop() {
            Some(found) if count == 1 => Ok((found, look)),
            Some(_) => {
                let message = format!("the ids of {count} load balancers begin with {prefix}");
                let hint = "use more characters; `jobboard mend` lists all stuck load balancers";
                Err(CommandError::usage(message).hint(hint).into())
            }
            None if look.has_changed => Err(CommandError::Mend {
                end: MendEnd::Changed,
                message: format!("load balancer {prefix} changed each time it was read"),
                hint: "a worker may be running its job; repeat the command later".into(),
            }
            .into()),
            None => {
                let message = format!("no load balancer has an id that begins with {prefix}");
                Err(CommandError::Nothing(message))
                    .with_context(|| ctx.trying(verb::MEND, "a load balancer"))
            }
        }
    }
}

async fn one(
    ctx: &mut Context,
    args: &MendArgs,
    sources: &mut Sources,
    judged: JudgedBalancer,
    look: BalancerReport,
) -> anyhow::Result<()> {
    let plan = RepairPlan::of(&judged, &args.failover_command);
    sources.warn_of_gaps(ctx);
    let apply = (!args.apply).then(|| ctx.program());
    let mut report = MendReport::new(&judged, look.workers, &plan, apply);
    if !args.apply {
        return ctx.out.report(&report);
    }
    // The operator agrees to the plan on the screen; the result follows on standard output.
    for line in report.lines() {
        ctx.out.note_unless_json(line);
    }
    if let Some(refusal) = plan.refusal(&judged) {
        return Err(refusal);
    }
    let repair = BalancerRepair {
        judged: &judged,
        plan: &plan,
        args,
    };
    repair.carry_out(ctx, sources, &mut report).await?;
    ctx.out.report(&report)
}

async fn all(ctx: &mut Context, args: &MendArgs, sources: &mut Sources) -> anyhow::Result<()> {
    let look = sources.look(ctx, Asked::Pending).await?;
    let stuck = look
        .balancers
        .into_iter()
        .filter(|it| it.verdict.needs_operator());
    let stuck: Vec<_> = stuck.collect();
    let (count, max) = (stuck.len(), args.max.unwrap_or_default());
    if count > max {
        let message =
            format!("{count} load balancers are stuck, but --max is {max}; nothing changed");
        let hint = "use `jobboard mend` to list them, or raise --max";
        return Err(CommandError::refused(message).hint(hint).into());
    }
    if stuck.is_empty() {
        ctx.out.note("no load balancer is stuck; nothing changed");
    }
    let mut failed = 0;
    for it in stuck {
        // The others took a while.
        let (judged, look) = sources.named(ctx, &it.balancer.id).await?;
        if !judged.verdict.needs_operator() {
            continue;
        }
        if let Err(error) = one(ctx, args, sources, judged, look).await {
            failed += 1;
            ctx.print_error(&error);
        }
    }
    CommandError::partly("load balancers", failed, count)
}

async fn list(ctx: &mut Context, sources: &mut Sources) -> anyhow::Result<()> {
    let look = sources.look(ctx, Asked::Pending).await?;
    let Sources { reader, seen, .. } = sources;
    let amphorae = reader.amphorae(Utc::now() - OLD, seen).await;
    sources.warn_of_gaps(ctx);
    if look.balancers.is_empty() && amphorae.is_empty() {
        ctx.out
            .note("no load balancer is pending, and no amphora is stuck");
    }
    if look.left_out > 0 {
        let more = look.left_out;
        ctx.out
            .note(format!("{more} more load balancers are pending"));
    }
    let program = ctx.program();
    let columns = [
        Column::new("kind", Fit::Whole),
        Column::new("id", Fit::Whole),
        Column::new("name", Fit::Shrinks),
        Column::new("status", Fit::Whole),
        Column::new("for", Fit::Number),
        Column::new("verdict", Fit::Whole),
        Column::new("next", Fit::Shrinks),
    ];
    let balancers = look.balancers.iter();
    let balancers = balancers.map(|it| StuckRow::of_balancer(it, &program));
    let amphorae = amphorae.iter();
    let amphorae = amphorae.map(|it| StuckRow::of_amphora(it, &look.balancers, &program));
    ctx.out.table(&columns, balancers.chain(amphorae))
}
