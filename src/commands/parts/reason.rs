//! Audit entries of unusual actions.

use super::verb::Verb;
use crate::{
    context::Context,
    job::{Remark, shortened},
};

/// The reason for an intervention.
#[derive(Debug, clap::Args)]
pub(crate) struct ReasonArgs {
    /// Reason to record with your name, shown by `show` and `list --history` (up to 1 KiB)
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

impl ReasonArgs {
    /// Returns the audit entry; `None` for a normal action without a reason.
    pub(crate) fn remark(&self, ctx: &Context, verb: Verb, is_ordinary: bool) -> Option<Remark> {
        let is_worth_it = !is_ordinary || self.given().is_some();
        is_worth_it.then(|| self.who_and_why(ctx, verb))
    }

    pub(crate) fn who_and_why(&self, ctx: &Context, verb: Verb) -> Remark {
        Remark::now(verb.past, &ctx.who().text(), self.given().as_deref())
    }

    /// Returns the reason, shortened to the stored length.
    pub(crate) fn given(&self) -> Option<String> {
        let reason = self.reason.as_deref().map(str::trim);
        reason.filter(|reason| !reason.is_empty()).map(shortened)
    }
}
