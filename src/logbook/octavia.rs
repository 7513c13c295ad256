//! Octavia's own tables, the flows of its load balancers, and the only change of a database: one load balancer is set
//! to ERROR while its row is locked.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{
    Access, Flow, Logbook, LogbookError, LogbookResult, LogbookUrl, TextRow,
    database::MAX_VALUE_BYTES,
    tables::{BALANCER, INJECTOR, MAX_BOOKS, NAME, SHORT, argument, columns, time},
};
use crate::job::Book;

/// The places of the load balancer in the data of a flow.
const STORED: [&[&str]; 3] = [
    &["loadbalancer_id"],
    &["loadbalancer", "loadbalancer_id"],
    &["amphora", "load_balancer_id"],
];

const SINCE: &str = "COALESCE(updated_at, created_at)";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoadBalancer {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Octavia's `provisioning_status`.
    pub(crate) status: String,
    /// `updated_at` as stored: an update compares it.
    pub(crate) updated: Option<String>,
    pub(crate) since: Option<DateTime<Utc>>,
}

impl LoadBalancer {
    pub(crate) fn is_pending(&self) -> bool {
        self.status.starts_with("PENDING_")
    }

    pub(crate) fn is_to_be_deleted(&self) -> bool {
        self.status == "PENDING_DELETE"
    }

    /// Returns the statement that sets this very row to ERROR.
    ///
    /// `None` if a value is not of Octavia's form: it could end the statement.
    pub(crate) fn to_error(&self) -> Option<String> {
        let Self { id, status, .. } = self;
        let is_plain = |text: &str| {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_:. ".contains(&byte);
            !text.is_empty() && text.bytes().all(is_word)
        };
        let updated = match &self.updated {
            Some(time) if is_plain(time) => format!("= '{time}'"),
            Some(_) => return None,
            None => "IS NULL".to_owned(),
        };
        (is_plain(id) && is_plain(status)).then(|| {
            format!(
                "UPDATE load_balancer SET provisioning_status = 'ERROR' WHERE id = '{id}' AND \
                 provisioning_status = '{status}' AND updated_at {updated}"
            )
        })
    }
}

/// An amphora that neither works nor is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StuckAmphora {
    pub(crate) id: String,
    pub(crate) load_balancer: Option<String>,
    pub(crate) status: String,
    pub(crate) since: Option<DateTime<Utc>>,
}

impl Logbook {
    /// Returns the pending load balancers, the longest pending first.
    pub(crate) async fn pending_balancers(&self) -> LogbookResult<Vec<LoadBalancer>> {
        let pending =
            "provisioning_status IN ('PENDING_CREATE', 'PENDING_UPDATE', 'PENDING_DELETE')";
        self.balancers_where(pending, &[], "").await
    }

    pub(crate) async fn balancers_with_prefix(
        &self,
        prefix: &str,
    ) -> LogbookResult<Vec<LoadBalancer>> {
        let like = format!("{prefix}%");
        self.balancers_where("id LIKE ?", &[&like], "").await
    }

    pub(super) async fn balancers_where(
        &self,
        which: &str,
        values: &[&str],
        lock: &str,
    ) -> LogbookResult<Vec<LoadBalancer>> {
        let dialect = self.dialect();
        let question = format!(
            "SELECT {}, {}, {}, {}, {} FROM load_balancer WHERE {which} ORDER BY {SINCE} \
             LIMIT {MAX_BOOKS}{lock}",
            dialect.text("id", NAME),
            dialect.text("name", NAME),
            dialect.text("provisioning_status", SHORT),
            dialect.text("updated_at", SHORT),
            dialect.text(SINCE, SHORT),
        );
        let found = self.rows(&question, values).await?;
        found.into_iter().map(load_balancer).collect()
    }

    /// Returns the amphorae that have been in a passing state, or in ERROR, since before a time.
    pub(crate) async fn stuck_amphorae(
        &self,
        before: DateTime<Utc>,
    ) -> LogbookResult<Vec<StuckAmphora>> {
        let dialect = self.dialect();
        let question = format!(
            "SELECT {}, {}, {}, {} FROM amphora WHERE \
             status IN ('BOOTING', 'PENDING_CREATE', 'PENDING_DELETE', 'ERROR') ORDER BY {SINCE} \
             LIMIT {MAX_BOOKS}",
            dialect.text("id", NAME),
            dialect.text("load_balancer_id", NAME),
            dialect.text("status", SHORT),
            dialect.text(SINCE, SHORT),
        );
        let found = self.rows(&question, &[]).await?;
        let amphorae = found.into_iter().map(|row| {
            let [id, load_balancer, status, since] = columns(row)?;
            Ok(StuckAmphora {
                id: id.ok_or(LogbookError::Nonsense("an amphora"))?,
                load_balancer,
                status: status.unwrap_or_default(),
                since: time(since),
            })
        });
        let amphorae: LogbookResult<Vec<_>> = amphorae.collect();
        let is_old = |it: &StuckAmphora| it.since.is_some_and(|since| since < before);
        Ok(amphorae?.into_iter().filter(is_old).collect())
    }

    /// Returns the uuid of the latest flow of each of these load balancers.
    ///
    /// The arguments of the flow name the load balancer or, once a worker has started the flow, the data passed to it.
    pub(crate) async fn latest_flows(
        &self,
        balancers: &[&str],
    ) -> LogbookResult<HashMap<String, String>> {
        let dialect = self.dialect();
        let stored = STORED.map(|way| dialect.inside("a.results", way, NAME));
        let all = [argument(dialect, "f.meta", BALANCER)];
        let all = all.iter().chain(&stored);
        // Some databases return JSON's null as a word.
        let all: Vec<_> = all.map(|it| format!("NULLIF({it}, 'null')")).collect();
        let balancer = format!("COALESCE({})", all.join(", "));
        let flow = dialect.text("f.uuid", NAME);
        let question = |places: &str| {
            format!(
                "SELECT {balancer}, {flow} FROM flowdetails f LEFT JOIN atomdetails a \
                 ON a.parent_uuid = f.uuid AND a.name = '{INJECTOR}' \
                 WHERE f.parent_uuid IN (SELECT uuid FROM logbooks) AND {balancer} IN ({places}) \
                 ORDER BY f.created_at, f.uuid"
            )
        };
        let mut found = HashMap::new();
        for row in self.rows_of_each(balancers, question, MAX_BOOKS).await? {
            let [balancer, flow] = columns(row)?;
            // Later rows replace earlier ones.
            found.extend(balancer.zip(flow));
        }
        Ok(found)
    }

    /// Returns the data and the logbook of a flow: the parts of its job.
    pub(crate) async fn origin_of(&self, flow: &Flow) -> LogbookResult<Option<(Value, Book)>> {
        let dialect = self.dialect();
        let question = format!(
            "SELECT {}, {}, {} FROM atomdetails a JOIN flowdetails f ON f.uuid = a.parent_uuid \
             JOIN logbooks l ON l.uuid = f.parent_uuid WHERE f.uuid = ? AND a.name = '{INJECTOR}' LIMIT 1",
            dialect.text("a.results", MAX_VALUE_BYTES),
            dialect.text("l.name", NAME),
            dialect.text("l.uuid", NAME),
        );
        let mut found = self.rows(&question, &[&flow.uuid]).await?;
        let Some(row) = found.pop() else {
            return Ok(None);
        };
        let [store, name, uuid] = columns(row)?;
        let store = store.and_then(|it| serde_json::from_str::<Value>(&it).ok());
        let store = store.filter(Value::is_object);
        let book = name.zip(uuid).map(|(name, uuid)| Book { name, uuid });
        Ok(store.zip(book))
    }
}

fn load_balancer(row: TextRow) -> LogbookResult<LoadBalancer> {
    let [id, name, status, updated, since] = columns(row)?;
    Ok(LoadBalancer {
        id: id.ok_or(LogbookError::Nonsense("a load balancer"))?,
        name: name.unwrap_or_default(),
        status: status.unwrap_or_default(),
        updated,
        since: time(since),
    })
}

/// Holds the lock of one row of `load_balancer`; nothing changes unless it is committed.
pub(crate) struct BalancerTransaction {
    database: Logbook,
}

impl BalancerTransaction {
    /// Locks and returns the row; `None` if it no longer exists.
    pub(crate) async fn lock(
        url: &LogbookUrl,
        op_timeout: Duration,
        id: &str,
    ) -> LogbookResult<(Self, Option<LoadBalancer>)> {
        let database = Logbook::open_for(url, op_timeout, Access::Write).await?;
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
