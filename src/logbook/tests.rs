//! Logbooks in SQLite, as TaskFlow writes them; the integration tests use logbooks of real services.

use std::{collections::HashSet, path::Path};

use chrono::{TimeZone, Utc};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::job::{Book, Job};

const FLOW: &str = "31211ba6-5368-40d3-aaab-065d316bae66";
const BOOK: &str = "ecd5d8b5-bd72-417a-a7f0-8d8b0dd2ad14";

const TABLES: &str = "
    CREATE TABLE logbooks (created_at DATETIME, updated_at DATETIME, meta TEXT, name VARCHAR(255),
        uuid VARCHAR(64) PRIMARY KEY);
    CREATE TABLE flowdetails (created_at DATETIME, updated_at DATETIME, parent_uuid VARCHAR(64),
        meta TEXT, name VARCHAR(255), state VARCHAR(255), uuid VARCHAR(64) PRIMARY KEY);
    CREATE TABLE atomdetails (created_at DATETIME, updated_at DATETIME, parent_uuid VARCHAR(64),
        meta TEXT, name VARCHAR(255), results TEXT, version VARCHAR(64), state VARCHAR(255),
        uuid VARCHAR(64) PRIMARY KEY, failure TEXT, atom_type VARCHAR(12), intention VARCHAR(7),
        revert_results TEXT, revert_failure TEXT);";

struct Books {
    _directory: TempDir,
    url: LogbookUrl,
    file: Connection,
}

impl Books {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("books.db");
        let file = Connection::open(&path).unwrap();
        file.execute_batch(TABLES).unwrap();
        let meta = json!({"factory": {"name": "a.b.get_delete_amphora_flow",
            "args": [{"id": "amp", "load_balancer_id": "lb"}], "kwargs": {}}});
        let time = "2026-11-21 20:48:49.442586";
        file.execute(
            "INSERT INTO logbooks VALUES (?1, NULL, NULL, 'b', ?2)",
            [time, BOOK],
        )
        .unwrap();
        file.execute(
            "INSERT INTO flowdetails VALUES (?1, ?1, ?2, ?3, 'f', 'RUNNING', ?4)",
            [time, BOOK, &meta.to_string(), FLOW],
        )
        .unwrap();
        Self {
            url: LogbookUrl::Sqlite(path),
            _directory: directory,
            file,
        }
    }

    fn atom(&self, name: &str, kind: &str, state: &str, intention: &str, failure: Option<&str>) {
        let results = r#"[["x", {}], ["private key", {}]]"#;
        self.file
            .execute(
                "INSERT INTO atomdetails VALUES ('2026-11-21 20:48:50', '2026-11-21 20:48:51', ?1, NULL, ?2, ?3,
                 '1.0', ?4, ?2, ?5, ?6, ?7, NULL, 'null')",
                rusqlite::params![FLOW, name, results, state, failure, kind, intention],
            )
            .unwrap();
    }

    async fn open(&self) -> Logbook {
        Logbook::open(&self.url, Duration::from_secs(90))
            .await
            .unwrap()
    }
}

fn job() -> Job {
    let mut job = Job::named(&format!("get_delete_amphora_flow-{FLOW}"));
    job.book = Some(Book {
        name: "b".to_owned(),
        uuid: BOOK.to_owned(),
    });
    job
}

#[tokio::test]
async fn flow_is_read_without_its_results() {
    let books = Books::new();
    let failure = json!({"exception_str": "no host\nat all", "traceback_str": "t",
        "exc_type_names": ["octavia.common.exceptions.ComputeBuildException", "Exception"]});
    books.atom(
        "_TaskFlow_INJECTOR",
        "TASK_DETAIL",
        "SUCCESS",
        "EXECUTE",
        None,
    );
    books.atom("a.b.One", "TASK_DETAIL", "RUNNING", "EXECUTE", None);
    books.atom("two", "RETRY_DETAIL", "SUCCESS", "EXECUTE", None);
    books.atom(
        "three",
        "TASK_DETAIL",
        "REVERTED",
        "REVERT",
        Some(&failure.to_string()),
    );
    let logbook = books.open().await;
    let flow = logbook.flow(&job()).await.unwrap().unwrap();
    let time = |seconds, micros| {
        let time = Utc.with_ymd_and_hms(2026, 11, 21, 20, 48, seconds).unwrap();
        Some(time + chrono::TimeDelta::microseconds(micros))
    };
    assert_eq!(
        (flow.uuid.as_str(), flow.created),
        (FLOW, time(49, 442_586))
    );
    assert_eq!(flow.state.as_deref(), Some("RUNNING"));
    assert_eq!(flow.factory.as_deref(), Some("a.b.get_delete_amphora_flow"));
    assert_eq!(
        (flow.amphora.as_deref(), flow.load_balancer.as_deref()),
        (Some("amp"), Some("lb"))
    );
    let mut atoms = flow.atoms.clone();
    atoms.sort_by(|one, other| one.name.cmp(&other.name));
    let [one, three, two] = atoms.as_slice() else {
        panic!("{atoms:?}");
    };
    assert_eq!(
        (&*one.title(), &*one.state, one.since),
        ("One", "RUNNING", time(51, 0))
    );
    assert_eq!((two.kind, two.attempts), (AtomKind::Retry, Some(2)));
    assert_eq!((three.is_to_be_reverted, one.attempts), (true, None));
    let failure = three.failure.as_ref().unwrap().line();
    assert_eq!(failure, "ComputeBuildException: no host");
    assert!(one.failure.is_none() && three.undo_failure.is_none());
    assert!(!format!("{flow:?}").contains("private key"));
}

#[tokio::test]
async fn flow_is_found_by_name_book_or_details() {
    let logbook = Books::new().open().await;
    let other = Job {
        name: "other".to_owned(),
        ..job()
    };
    assert_eq!(logbook.flow(&other).await.unwrap().unwrap().uuid, FLOW);
    let stranger = Job {
        book: None,
        ..other
    };
    assert_eq!(logbook.flow(&stranger).await.unwrap(), None);
    let by_details = Job {
        details: Some(json!({"flow_uuid": FLOW}).into()),
        ..stranger
    };
    assert!(logbook.flow(&by_details).await.unwrap().is_some());
}

#[test]
fn tasks_have_readable_titles() {
    let title = |name: &str| {
        let atom = Atom {
            name: name.to_owned(),
            kind: AtomKind::Task,
            state: flow_state::PENDING.to_owned(),
            is_to_be_reverted: false,
            is_to_be_retried: false,
            since: None,
            failure: None,
            undo_failure: None,
            attempts: None,
        };
        atom.title().into_owned()
    };
    for (name, known) in [
        ("a.b.network_tasks.AllocateVIP", "AllocateVIP"),
        ("reload-lb.after", "reload-lb.after"),
        (
            "MASTER-octavia-plug-net-subflow-octavia-amp-plug-vip",
            "amp-plug-vip (MASTER)",
        ),
        ("octavia-x-subflow-y", "y"),
        ("", ""),
    ] {
        assert_eq!(title(name), known);
    }
}

#[tokio::test]
async fn deleted_books_are_distinguished_from_existing_ones() {
    let books = Books::new();
    let logbook = books.open().await;
    let many: Vec<_> = (0..500).map(|number| format!("book-{number}")).collect();
    let mut asked: Vec<_> = many.iter().map(String::as_str).collect();
    asked.push(BOOK);
    let found = logbook.books(&asked).await.unwrap();
    assert_eq!(found, HashSet::from([BOOK.to_owned()]));
}

#[tokio::test]
async fn invalid_logbook_is_reported_and_not_created() {
    let directory = tempfile::tempdir().unwrap();
    let open = async |path: &Path| {
        let url = LogbookUrl::Sqlite(path.to_owned());
        let logbook = Logbook::open(&url, Duration::from_secs(90)).await?;
        logbook.flow(&job()).await.map(|flow| flow.is_some())
    };
    let missing = directory.path().join("missing.db");
    let error = open(&missing).await.unwrap_err();
    assert!(matches!(error, LogbookError::Unreachable(_)), "{error}");
    assert!(!missing.exists());
    let other = directory.path().join("other.db");
    Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE a (b)")
        .unwrap();
    let error = open(&other).await.unwrap_err();
    assert!(matches!(error, LogbookError::Schema(_)), "{error}");
    let text = directory.path().join("text");
    std::fs::write(
        &text,
        "no database, though it is long enough for the beginning of one",
    )
    .unwrap();
    let error = open(&text).await.unwrap_err();
    assert!(matches!(error, LogbookError::Schema(_)), "{error}");
}

#[tokio::test]
async fn locked_database_times_out() {
    let books = Books::new();
    let logbook = Logbook {
        database: LogbookDatabase::open(&books.url, Duration::from_secs(90), Access::Read)
            .await
            .unwrap(),
        op_timeout: Duration::from_millis(50),
        is_lost: false.into(),
    };
    books.file.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = logbook.flow(&job()).await.unwrap_err();
    assert!(matches!(error, LogbookError::Slow(_)), "{error}");
}

/// Large values in the database are cut before they are fetched.
#[tokio::test]
async fn oversized_rows_are_truncated() {
    let books = Books::new();
    let huge = "x".repeat(20 << 20);
    let long = "x".repeat(1 << 20);
    let failure = json!({"exception_str": long, "exc_type_names": [long]}).to_string();
    books.atom(&long, "TASK_DETAIL", &long, "EXECUTE", Some(&failure));
    books.atom("b", "TASK_DETAIL", &huge, "EXECUTE", Some(&huge));
    for number in 0..300 {
        let insert = "INSERT INTO flowdetails SELECT created_at, updated_at, parent_uuid, meta, name, state, ?1
                      FROM flowdetails WHERE uuid = ?2";
        let uuid = format!("{long}{number}");
        books
            .file
            .execute(insert, [&uuid[uuid.len() - 300..], FLOW])
            .unwrap();
    }
    let logbook = books.open().await;
    let flow = logbook.flow(&job()).await.unwrap().unwrap();
    let [second, first] = flow.atoms.as_slice() else {
        panic!("{} atoms", flow.atoms.len());
    };
    assert_eq!(first.name.len(), 255);
    assert_eq!(first.state.len(), 64);
    let failure = first.failure.as_ref().unwrap();
    assert!(failure.text.len() <= 1000 && failure.kind.len() <= 64);
    // Huge values read as missing.
    assert_eq!((&*second.state, &second.failure), ("PENDING", &None));
    let balancers = logbook.balancers(&[BOOK]).await.unwrap();
    assert_eq!(balancers.len(), 1);
}
