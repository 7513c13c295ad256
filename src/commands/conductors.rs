//! `jobboard conductors`.

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use serde::Serialize;

use super::parts::unused;
use crate::{
    context::Context,
    duration,
    job::Conductor,
    output::{Cell, Column, Fit, Record, Row, Tone, rfc3339, short},
};

/// List the conductors that are at work on the board
///
/// Which jobs they have performed and cannot settle is told on stderr, with the reason.
#[derive(Debug, clap::Args)]
pub(crate) struct ConductorsArgs {}

#[derive(Debug, Serialize)]
struct Registered {
    #[serde(flatten)]
    conductor: Conductor,
    #[serde(skip)]
    now: DateTime<Utc>,
}

impl Record for Registered {
    fn fields(&self) -> Vec<String> {
        let conductor = &self.conductor;
        vec![
            conductor.name.as_str().into(),
            conductor.host.as_str().into(),
            conductor.pid.to_string(),
            rfc3339(conductor.since),
            conductor.owner.text().into(),
        ]
    }
}

const COLUMNS: &[Column] = &[
    Column::new("name", Fit::KeepsEnds),
    Column::new("host", Fit::Shrinks),
    Column::new("pid", Fit::Number),
    Column::new("since", Fit::Number),
    Column::new("owner", Fit::KeepsEnds),
];

impl Row for Registered {
    fn cells(&self) -> Vec<Cell> {
        let conductor = &self.conductor;
        let at_work = (self.now - conductor.since).to_std().unwrap_or_default();
        vec![
            Cell::toned(Tone::Strong, &conductor.name),
            Cell::new(&conductor.host),
            Cell::new(conductor.pid.to_string()),
            Cell::new(duration::brief(at_work)),
            Cell::new(conductor.owner.text()),
        ]
    }
}

pub(crate) async fn run(
    ctx: &mut Context,
    ConductorsArgs {}: ConductorsArgs,
) -> anyhow::Result<()> {
    let board = ctx.board()?;
    let conductors = board
        .conductors()
        .await
        .with_context(|| ctx.trying("list", "the conductors"))?;
    if conductors.is_empty() {
        unused::say_none(ctx, &*board, "no conductor is at work").await?;
    }
    let now = Utc::now();
    let mut rows = ctx.out.rows(COLUMNS);
    let mut unsettled = Vec::new();
    for conductor in conductors {
        let jobs = conductor.unsettled.iter();
        unsettled.extend(jobs.map(|job| {
            let (uuid, name) = (short(&job.uuid), &job.name);
            let by = &conductor.name;
            format!("{by} cannot settle {uuid} {name}: {}", job.reason)
        }));
        rows.push(&Registered { conductor, now })?;
    }
    rows.finish()?;
    unsettled.into_iter().for_each(|note| ctx.out.note(note));
    Ok(())
}
