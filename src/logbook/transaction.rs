//! The only change of a database: one load balancer is set to ERROR while its row is locked.

use std::time::Duration;

use super::{Access, LoadBalancer, Logbook, LogbookError, LogbookResult, LogbookUrl};

/// Holds the lock of one row of `load_balancer`; nothing changes unless it is committed.
pub(crate) struct BalancerTransaction {
    database: Logbook,
}

impl BalancerTransaction {
    /// Locks and returns the row; `None` if it no longer exists.
    pub(crate) async fn lock(
        url: &LogbookUrl,
        patience: Duration,
        id: &str,
    ) -> LogbookResult<(Self, Option<LoadBalancer>)> {
        let database = Logbook::open_for(url, patience, Access::Write).await?;
        let dialect = database.dialect();
        database.rows(dialect.begin(), &[]).await?;
        let lock = dialect.row_lock();
        let mut found = database.balancers_where("id = ?", &[id], lock).await?;
        Ok((Self { database }, found.pop()))
    }

    pub(crate) async fn set_error(&self, balancer: &LoadBalancer) -> LogbookResult<()> {
        let nonsense = || LogbookError::Nonsense("a load balancer");
        let statement = balancer.to_error().ok_or_else(nonsense)?;
        self.database.rows(&statement, &[]).await?;
        let id = [balancer.id.as_str()];
        let now = self.database.balancers_where("id = ?", &id, "").await?;
        match now.as_slice() {
            [now] if now.status == "ERROR" => Ok(()),
            _ => Err(nonsense()),
        }
    }

    pub(crate) async fn commit(self) -> LogbookResult<()> {
        self.database.rows("COMMIT", &[]).await.map(drop)
    }
}
