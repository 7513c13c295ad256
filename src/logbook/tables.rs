//! The queries of the three tables: `logbooks`, `flowdetails` and `atomdetails`.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, NaiveDateTime, Utc};
use serde_json::Value;

use super::{
    Atom, AtomFailure, AtomKind, Flow, Logbook, LogbookError, LogbookResult, TextRow,
    database::Dialect, flow_state,
};
use crate::job::{Job, octavia};

const MAX_ATOMS: usize = 8_000;

pub(super) const NAME: usize = 255;
const WORDS: usize = 250;

pub(super) const SHORT: usize = 64;

const UUIDS_PER_QUERY: usize = 200;

/// Each uuid has at most one valid row.
const MAX_ROWS: usize = 2 * UUIDS_PER_QUERY;

pub(super) const MAX_BOOKS: usize = 10_000;

/// TaskFlow adds this atom to pass a flow's data to the others.
pub(super) const INJECTOR: &str = "_TaskFlow_INJECTOR";

/// The first argument of a flow's factory has this key if it is an amphora, along with its load balancer's id.
const AMPHORA: &str = "id";
pub(super) const BALANCER: &str = "load_balancer_id";

pub(super) fn argument(dialect: Dialect, meta: &str, name: &str) -> String {
    dialect.inside(meta, &["factory", "args", "0", name], NAME)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FlowSubject {
    LoadBalancer,
    Amphora,
}

#[derive(Debug)]
pub(crate) struct StaleBook {
    pub(crate) uuid: String,
    pub(crate) name: String,
    pub(crate) state: Option<String>,
    pub(crate) load_balancer: Option<String>,
}

impl Logbook {
    pub(crate) async fn flow(&self, job: &Job) -> LogbookResult<Option<Flow>> {
        let stated = job.details.as_ref().and_then(|it| it.get("flow_uuid"));
        let stated = stated.as_deref().and_then(Value::as_str);
        let uuid = stated.or_else(|| octavia::flow_uuid(&job.name));
        if let Some(uuid) = uuid
            && let Some(flow) = self.flow_with("uuid", uuid).await?
        {
            return Ok(Some(flow));
        }
        match &job.book {
            Some(book) => self.flow_with("parent_uuid", &book.uuid).await,
            None => Ok(None),
        }
    }

    /// SQLite keeps flows of deleted logbooks; these are ignored.
    pub(crate) async fn flow_with(&self, column: &str, uuid: &str) -> LogbookResult<Option<Flow>> {
        let dialect = self.dialect();
        let question = format!(
            "SELECT {}, {}, {}, {}, {}, {}, {}, {} FROM flowdetails WHERE {column} = ? \
             AND parent_uuid IN (SELECT uuid FROM logbooks) ORDER BY created_at LIMIT 1",
            dialect.text("uuid", NAME),
            dialect.text("name", NAME),
            dialect.text("state", SHORT),
            dialect.text("created_at", SHORT),
            dialect.text("updated_at", SHORT),
            dialect.inside("meta", &["factory", "name"], NAME),
            argument(dialect, "meta", AMPHORA),
            argument(dialect, "meta", BALANCER),
        );
        let found = self.rows(&question, &[uuid]).await?;
        let Some(row) = found.into_iter().next() else {
            return Ok(None);
        };
        let [
            uuid,
            name,
            state,
            created,
            updated,
            factory,
            amphora,
            balancer,
        ] = columns(row)?;
        let uuid = uuid.ok_or(LogbookError::Nonsense("a flow"))?;
        let is_about_amphora = balancer.is_some();
        Ok(Some(Flow {
            atoms: self.atoms(&uuid).await?,
            uuid,
            name: name.unwrap_or_default(),
            state,
            created: time(created),
            updated: time(updated),
            factory,
            amphora: amphora.filter(|_| is_about_amphora),
            load_balancer: balancer,
        }))
    }

    async fn atoms(&self, flow: &str) -> LogbookResult<Vec<Atom>> {
        let dialect = self.dialect();
        let question = format!(
            "SELECT {}, {}, {}, {}, {}, {}, {}, {}, {}, {} FROM atomdetails \
             WHERE parent_uuid = ? AND name <> '{INJECTOR}' ORDER BY created_at, name LIMIT {MAX_ATOMS}",
            dialect.text("name", NAME),
            dialect.text("atom_type", SHORT),
            dialect.text("state", SHORT),
            dialect.text("intention", SHORT),
            dialect.text("updated_at", SHORT),
            failure(dialect, "failure", "exception_str"),
            failure(dialect, "failure", "exc_type_names"),
            failure(dialect, "revert_failure", "exception_str"),
            failure(dialect, "revert_failure", "exc_type_names"),
            retried(dialect),
        );
        let found = self.rows(&question, &[flow]).await?;
        found.into_iter().map(atom).collect()
    }

    pub(crate) async fn books(&self, uuids: &[&str]) -> LogbookResult<HashSet<String>> {
        self.books_where(uuids, "").await
    }

    /// Returns the usable logbooks: they exist and have a flow.
    pub(crate) async fn usable_books(&self, uuids: &[&str]) -> LogbookResult<HashSet<String>> {
        let has_flow = " AND uuid IN (SELECT parent_uuid FROM flowdetails)";
        self.books_where(uuids, has_flow).await
    }

    async fn books_where(&self, uuids: &[&str], also: &str) -> LogbookResult<HashSet<String>> {
        let uuid = self.dialect().text("uuid", NAME);
        let question =
            |places: &str| format!("SELECT {uuid} FROM logbooks WHERE uuid IN ({places}){also}");
        let found = self.rows_of_each(uuids, question, MAX_ROWS).await?;
        Ok(found.into_iter().flatten().flatten().collect())
    }

    /// Queries many uuids in batches; `question` gets the placeholders of one batch.
    pub(super) async fn rows_of_each(
        &self,
        uuids: &[&str],
        question: impl Fn(&str) -> String,
        most: usize,
    ) -> LogbookResult<Vec<TextRow>> {
        let mut found = Vec::new();
        for uuids in uuids.chunks(UUIDS_PER_QUERY) {
            let places = vec!["?"; uuids.len()].join(", ");
            let question = format!("{} LIMIT {most}", question(&places));
            found.extend(self.rows(&question, uuids).await?);
        }
        Ok(found)
    }

    pub(crate) async fn balancers(
        &self,
        uuids: &[&str],
    ) -> LogbookResult<HashMap<String, Option<String>>> {
        let balancer = argument(self.dialect(), "meta", BALANCER);
        let book = self.dialect().text("parent_uuid", NAME);
        let question = |places: &str| {
            format!("SELECT {book}, {balancer} FROM flowdetails WHERE parent_uuid IN ({places})")
        };
        let mut found = HashMap::new();
        for row in self.rows_of_each(uuids, question, MAX_ROWS).await? {
            let [book, balancer] = columns(row)?;
            found.extend(book.map(|book| (book, balancer)));
        }
        Ok(found)
    }

    /// Returns the uuids of the flows about a load balancer or an amphora, by the prefix of its id. The arguments of
    /// their factory contain the id.
    pub(crate) async fn flows_about(
        &self,
        subject: FlowSubject,
        id: &str,
    ) -> LogbookResult<HashSet<String>> {
        let dialect = self.dialect();
        let inside = |name: &str| argument(dialect, "meta", name);
        let (balancer, amphora) = (inside(BALANCER), inside(AMPHORA));
        let about = match subject {
            FlowSubject::LoadBalancer => format!("{balancer} LIKE ?"),
            // An argument with an id and a load balancer is an amphora.
            FlowSubject::Amphora => format!("{balancer} IS NOT NULL AND {amphora} LIKE ?"),
        };
        let uuid = dialect.text("uuid", NAME);
        let question = format!("SELECT {uuid} FROM flowdetails WHERE {about} LIMIT {MAX_BOOKS}");
        let found = self.rows(&question, &[&format!("{id}%")]).await?;
        Ok(found.into_iter().flatten().flatten().collect())
    }

    pub(crate) async fn books_before(&self, time: DateTime<Utc>) -> LogbookResult<Vec<StaleBook>> {
        let dialect = self.dialect();
        let created = dialect.text("logbooks.created_at", NAME);
        let question = format!(
            "SELECT {}, {}, {}, {} FROM logbooks LEFT JOIN flowdetails \
             ON flowdetails.parent_uuid = logbooks.uuid WHERE {created} < ? AND (flowdetails.state IS NULL OR \
             flowdetails.state NOT IN ('SUCCESS', 'REVERTED')) ORDER BY {created} LIMIT {MAX_BOOKS}",
            dialect.text("logbooks.uuid", NAME),
            dialect.text("logbooks.name", NAME),
            dialect.text("flowdetails.state", NAME),
            argument(dialect, "flowdetails.meta", BALANCER),
        );
        let time = time.format("%Y-%m-%d %H:%M:%S").to_string();
        let found = self.rows(&question, &[&time]).await?;
        let books = found.into_iter().map(|row| {
            let [uuid, name, state, load_balancer] = columns(row)?;
            Ok(StaleBook {
                uuid: uuid.ok_or(LogbookError::Nonsense("a logbook"))?,
                name: name.unwrap_or_default(),
                state,
                load_balancer,
            })
        });
        books.collect()
    }

    /// Returns the columns that later migrations of TaskFlow widen, since large values did not fit: a problem of
    /// MySQL's texts only.
    pub(crate) async fn short_columns(&self) -> LogbookResult<Vec<String>> {
        if self.dialect() != Dialect::Mysql {
            return Ok(Vec::new());
        }
        let question = "SELECT CONCAT(table_name, '.', column_name) FROM information_schema.columns \
             WHERE table_schema = DATABASE() AND data_type = 'text' AND (table_name, column_name) IN \
             (('flowdetails', 'meta'), ('atomdetails', 'results'), ('atomdetails', 'failure'), \
             ('atomdetails', 'revert_failure')) ORDER BY 1";
        let found = self.rows(question, &[]).await?;
        Ok(found.into_iter().flatten().flatten().collect())
    }

    pub(super) fn dialect(&self) -> Dialect {
        self.database.dialect()
    }
}

fn failure(dialect: Dialect, column: &str, part: &str) -> String {
    match part {
        "exc_type_names" => dialect.inside(column, &[part, "0"], SHORT),
        part => dialect.inside(column, &[part], WORDS),
    }
}

/// Writes the expression for the attempts of a retry, without its results, which may be secret.
fn retried(dialect: Dialect) -> String {
    let kind = dialect.text("atom_type", NAME);
    format!(
        "CASE WHEN {kind} = 'RETRY_DETAIL' THEN {} END",
        dialect.length("results")
    )
}

fn atom(row: TextRow) -> LogbookResult<Atom> {
    let [
        name,
        kind,
        state,
        intention,
        updated,
        text,
        type_name,
        undo_text,
        undo_type,
        attempts,
    ] = columns(row)?;
    Ok(Atom {
        name: name.unwrap_or_default(),
        kind: match kind.as_deref() {
            Some("RETRY_DETAIL") => AtomKind::Retry,
            _ => AtomKind::Task,
        },
        state: state.unwrap_or_else(|| flow_state::PENDING.to_owned()),
        is_to_be_reverted: intention.as_deref() == Some("REVERT"),
        is_to_be_retried: intention.as_deref() == Some("RETRY"),
        since: time(updated),
        failure: AtomFailure::of(type_name, text),
        undo_failure: AtomFailure::of(undo_type, undo_text),
        attempts: attempts.and_then(|count| count.parse().ok()),
    })
}

pub(super) fn columns<const N: usize>(row: TextRow) -> LogbookResult<[Option<String>; N]> {
    // Some databases return JSON's null as a word.
    let row: Vec<_> = row
        .into_iter()
        .map(|it| it.filter(|text| text != "null"))
        .collect();
    row.try_into().map_err(|_| LogbookError::Nonsense("a row"))
}

/// Reads a time, which is in UTC without a suffix.
pub(super) fn time(text: Option<String>) -> Option<DateTime<Utc>> {
    let text = text?;
    let time = NaiveDateTime::parse_from_str(&text, "%Y-%m-%d %H:%M:%S%.f").ok()?;
    Some(time.and_utc())
}
