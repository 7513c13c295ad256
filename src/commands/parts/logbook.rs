//! Opens the logbook database of a board's jobs.

use anyhow::Context as _;
use futures_util::future::OptionFuture;

use crate::{
    config::Source,
    context::Context,
    exit::CommandError,
    logbook::{Logbook, LogbookUrl},
    secret::Secret,
};

/// The logbook database.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LogbookArgs {
    /// TaskFlow logbook database: mysql://USER@HOST/DB, postgresql://…, or sqlite:FILE
    ///
    /// The default is JOBBOARD_LOGBOOK, else `logbook` in the board's configuration, else the connection in
    /// octavia.conf. `jobboard` only reads this database.
    #[arg(long, value_name = "URL", value_parser = secret)]
    logbook: Option<Secret>,
}

pub(in crate::commands) fn secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

impl LogbookArgs {
    pub(crate) fn is_known(&self, ctx: &Context) -> bool {
        self.is_given() || ctx.config.logbook.is_some()
    }

    pub(crate) fn is_given(&self) -> bool {
        self.logbook.is_some()
    }

    pub(crate) fn is_at_fault(&self, error: &anyhow::Error) -> bool {
        let is_usage = matches!(error.downcast_ref(), Some(CommandError::Usage { .. }));
        is_usage && self.is_given()
    }

    pub(crate) async fn open(&self, ctx: &Context) -> anyhow::Result<Option<Logbook>> {
        let given = self
            .logbook
            .as_ref()
            .map(|url| (url, Source::Flag("--logbook")));
        let configured = ctx.config.logbook.as_ref();
        let configured = configured.map(|it| (&it.value, it.source.clone()));
        let opened = given.or(configured).map(|(url, source)| async move {
            let url = url.expose().parse::<LogbookUrl>();
            let url = url.map_err(|error| CommandError::usage(format!("{source}: {error}")))?;
            let logbook = Logbook::open(&url, ctx.config.op_timeout.value).await;
            logbook.with_context(|| format!("cannot read the logbooks in {url}"))
        });
        OptionFuture::from(opened).await.transpose()
    }
}
