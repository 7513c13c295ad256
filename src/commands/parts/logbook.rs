//! Opens the logbook database of a board's jobs.

use anyhow::Context as _;
use futures_util::future::OptionFuture;

use crate::{
    commands::bulk::select::Chosen,
    config::Source,
    context::Context,
    exit::CommandError,
    job::Entry,
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
        self.logbook.is_some() || ctx.config.logbook.is_some()
    }

    pub(crate) fn is_at_fault(&self, error: &anyhow::Error) -> bool {
        let is_usage = matches!(error.downcast_ref(), Some(CommandError::Usage { .. }));
        is_usage && self.logbook.is_some()
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

/// What to do with jobs whose logbook no longer exists.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct BooklessArgs {
    #[command(flatten)]
    logbook: LogbookArgs,

    /// Restore TaskFlow jobs even if their logbook no longer exists
    #[arg(long)]
    without_book: bool,
}

impl BooklessArgs {
    /// Rejects chosen jobs without their logbook: the next conductor would trash them again.
    pub(crate) async fn refuse(&self, ctx: &Context, chosen: &mut Chosen) -> anyhow::Result<()> {
        let uuids: Vec<_> = chosen.entries().filter_map(book).collect();
        if self.without_book || uuids.is_empty() {
            return Ok(());
        }
        let books = match self.logbook.open(ctx).await {
            Ok(None) => return Ok(()),
            Ok(Some(logbook)) => {
                let books = logbook.usable_books(&uuids).await;
                books.map_err(anyhow::Error::from)
            }
            Err(error) => Err(error),
        };
        let books = match books {
            Ok(books) => books,
            // An explicit option makes the error fatal.
            Err(error) if self.logbook.logbook.is_some() => {
                return Err(error.context("cannot check the logbooks"));
            }
            Err(error) => {
                let unknown = format!("warning: cannot check the logbooks: {error:#}");
                ctx.out.note(unknown);
                return Ok(());
            }
        };
        for named in &mut chosen.jobs {
            let uuid = named.entry.as_ref().ok().and_then(book);
            if uuid.is_some_and(|uuid| !books.contains(uuid)) {
                let message = "the logbook is gone; the next worker would return the job to the trash immediately";
                let hint = "--without-book restores the job anyway";
                named.entry = Err(CommandError::refused(message).hint(hint).into());
            }
        }
        Ok(())
    }
}

fn book(entry: &Entry) -> Option<&str> {
    Some(entry.job()?.book.as_ref()?.uuid.as_str())
}
