//! `jobboard config`.

use std::borrow::Cow;

use crate::{
    config::Setting,
    context::Context,
    output::{Cell, Column, Fit, Row, Tone},
};

/// Print the effective configuration and the source of each value
///
/// Secrets are never printed.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {}

const COLUMNS: &[Column] = &[
    Column::new("setting", Fit::Whole),
    Column::new("value", Fit::Whole),
    Column::new("from", Fit::Shrinks),
];

impl Row for Setting {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        vec![
            self.key.as_str().into(),
            self.text().into(),
            self.source.as_str().into(),
        ]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::toned(Tone::Strong, &self.key),
            Cell::new(self.text()),
            Cell::toned(Tone::Faint, &self.source),
        ]
    }
}

pub(crate) async fn run(ctx: &mut Context, ConfigArgs {}: ConfigArgs) -> anyhow::Result<()> {
    ctx.out.table(COLUMNS, ctx.config.entries())
}
