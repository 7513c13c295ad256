//! Audit entries of unusual actions.

use crate::{
    context::Context,
    job::{AuditEntry, shortened},
};

/// The reason for an intervention.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReasonArgs {
    /// Reason to record with your name (up to 1 KiB)
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

impl ReasonArgs {
    pub(crate) fn audit(&self, ctx: &Context, action: &str) -> AuditEntry {
        AuditEntry::now(action, &ctx.who().text(), self.given().as_deref())
    }

    pub(crate) fn given(&self) -> Option<String> {
        let reason = self.reason.as_deref().map(str::trim);
        reason.filter(|reason| !reason.is_empty()).map(shortened)
    }
}
