//! Rejects jobs without their logbook.

use super::select::Chosen;
use crate::{
    commands::parts::logbook::LogbookArgs, context::Context, exit::CommandError, job::Entry,
};

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
            Err(error) if self.logbook.is_given() => {
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
