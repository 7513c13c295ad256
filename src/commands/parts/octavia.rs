//! Octavia boards: selection by load balancer, and restrictions.

use std::{collections::HashSet, time::Duration};

use anyhow::Context as _;
use chrono::Utc;
use futures_util::TryStreamExt;

use super::logbook::LogbookArgs;
use crate::{
    board::{
        Board, Detail, JobRef, Order, Query,
        filter::{Filter, Filters},
    },
    context::Context,
    exit::{CommandError, chain},
    job::Location,
    logbook::FlowSubject,
};

/// The Octavia resource of a job.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AboutArgs {
    /// Only Octavia jobs for this load balancer (id or prefix)
    #[arg(long, value_name = "ID", value_parser = id)]
    lb: Option<String>,

    /// Only Octavia jobs for this amphora (id or prefix)
    #[arg(long, value_name = "ID", value_parser = id)]
    amphora: Option<String>,
}

pub(crate) fn id(text: &str) -> Result<String, String> {
    let is_id = text
        .bytes()
        .all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    match is_id && !text.is_empty() {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("use an id or its first characters: hex digits and `-`".to_owned()),
    }
}

impl AboutArgs {
    pub(crate) fn is_given(&self) -> bool {
        self.lb.is_some() || self.amphora.is_some()
    }

    /// Returns the filters. The posting names the load balancer, or else its logbook does, if readable.
    pub(crate) async fn filters(&self, ctx: &Context) -> anyhow::Result<Vec<Filter>> {
        let asked = [
            (FlowSubject::LoadBalancer, "lb", &self.lb),
            (FlowSubject::Amphora, "amphora", &self.amphora),
        ];
        let mut filters = Vec::new();
        let logbook = match self.is_given() {
            true => LogbookArgs::default().open(ctx).await.transpose(),
            false => None,
        };
        for (what, field, id) in asked {
            let Some(id) = id else { continue };
            let filter = format!("{field}={id}*").parse::<Filter>()?;
            let flows = match &logbook {
                None => Ok(HashSet::new()),
                Some(Ok(logbook)) => logbook.flows_about(what, id).await.map_err(|it| chain(&it)),
                Some(Err(error)) => Err(format!("{error:#}")),
            };
            filters.push(match flows {
                Ok(flows) => filter.or_of_flows(&flows),
                Err(why) => {
                    ctx.out.note(format!(
                        "warning: jobs that do not name their load balancer are missing: {why}"
                    ));
                    filter
                }
            });
        }
        Ok(filters)
    }

    /// Returns the jobs of the resource, or the named ones if no resource is given.
    pub(crate) async fn jobs_or(
        &self,
        named: Vec<JobRef>,
        ctx: &Context,
        board: &dyn Board,
    ) -> anyhow::Result<Vec<JobRef>> {
        if !self.is_given() {
            return Ok(named);
        }
        let filters = Filters::new(self.filters(ctx).await?);
        let (now, mut jobs) = (Utc::now(), Vec::new());
        for location in Location::LIVE {
            let mut entries = board.entries(Query {
                order: Order::Rank,
                ..Query::all(location, Detail::Whole)
            });
            let trying = || ctx.trying("list", "the jobs");
            while let Some(entry) = entries.try_next().await.with_context(trying)? {
                if filters.matches(&entry, now) {
                    jobs.push(JobRef::Key(entry.key().clone()));
                }
            }
        }
        match jobs.is_empty() {
            true => {
                let message = format!("no job on this board matches {filters}");
                Err(CommandError::Nothing(message).into())
            }
            false => Ok(jobs),
        }
    }
}

const MAX_CLAIM: Duration = Duration::from_secs(3600);

pub(crate) fn warn_of_workers(ctx: &Context) {
    if ctx.config.board.value.is_of_octavia() {
        let warning = "warning: this is an Octavia board; its workers trash every job that Octavia did not post";
        ctx.out.note(warning);
    }
}

/// Rejects a claim that would keep a job from its conductors for over an hour.
pub(crate) fn refuse_to_hold(
    ctx: &Context,
    time: Option<Duration>,
    hint: &'static str,
) -> anyhow::Result<()> {
    match time.is_none_or(|time| time > MAX_CLAIM) {
        true => refuse(ctx, "hold a claim for more than an hour", IN_THE_WAY, hint),
        false => Ok(()),
    }
}

const IN_THE_WAY: &str =
    "its posters wait for every job, so one job that never ends blocks them all";

pub(crate) fn refuse_to_perform(ctx: &Context, deed: &str) -> anyhow::Result<()> {
    let why = "its jobs are flows, not commands";
    let hint = "Octavia's own conductors run its jobs; inspect and repair them with `explain`, \
        `flow`, `abandon`, `trash` and `restore`";
    refuse(ctx, deed, why, hint)
}

fn refuse(ctx: &Context, deed: &str, why: &str, hint: &'static str) -> anyhow::Result<()> {
    if !ctx.config.board.value.is_of_octavia() {
        return Ok(());
    }
    let board = &ctx.config.board.value.url;
    let message = format!("cannot {deed} on {board}: this is an Octavia board; {why}");
    Err(CommandError::refused(message).hint(hint).into())
}
