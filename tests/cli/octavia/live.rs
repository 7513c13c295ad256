//! A real Octavia at work: what is said of its jobs while they wait, run, fail, go back and are trashed.

use std::{collections::BTreeSet, fs, path::PathBuf};

use serde_json::{Value, json};

use crate::support::{
    env::{Env, Invocation, Outcome, SOON, wait_until},
    octavia,
    servers::{Host, Server, ZooKeeper},
};

/// The flow of which the posting does not say what it is about.
const UNTOLD: &str = "delete_amphora";

/// What no output may have: all keys that Octavia hands around are in this form.
const SECRET: &str = "PRIVATE KEY-----";

/// An Octavia with its configuration, its databases, and the server of its board.
struct Cloud<S> {
    env: Env,
    conf: PathBuf,
    octavia: octavia::Octavia,
    _server: S,
}

/// How Octavia's configuration names a kind of server.
trait Driver: Host {
    const NAME: &'static str;
    fn place(&self) -> u16;
    /// Where the board is, so that its trash is this test's alone.
    fn namespace(&self) -> String;
}

impl Driver for Server {
    const NAME: &'static str = "redis";

    fn place(&self) -> u16 {
        self.port()
    }

    fn namespace(&self) -> String {
        "octavia".to_owned()
    }
}

impl Driver for ZooKeeper {
    const NAME: &'static str = "zookeeper";

    fn place(&self) -> u16 {
        self.port()
    }

    fn namespace(&self) -> String {
        format!("{}/octavia", self.top().trim_start_matches('/'))
    }
}

impl<S: Driver> Cloud<S> {
    /// Starts one whose databases are files.
    fn new() -> Option<Self> {
        let env = Env::new();
        let url = format!("sqlite:///{}", env.file("octavia.db").display());
        Self::with(env, &json!({ "database": url }))
    }

    /// Starts one with these databases.
    fn with(env: Env, databases: &Value) -> Option<Self> {
        let server = S::start()?;
        let conf = env.file("octavia.conf");
        let mut settings = json!({
            "conf": conf,
            "board": {"driver": S::NAME, "hosts": ["127.0.0.1"], "port": server.place(),
                "namespace": server.namespace()},
        });
        let all = databases.as_object().into_iter().flatten();
        for (name, url) in all {
            settings[name] = url.clone();
        }
        let mut octavia = octavia::Octavia::with(&settings)?;
        octavia.ask(&json!({"do": "prepare"}));
        Some(Self {
            env,
            conf,
            octavia,
            _server: server,
        })
    }

    fn prepare(&self, arguments: &[&str]) -> Invocation {
        let run = self.env.jobboard(arguments);
        run.env("JOBBOARD_URL", format!("octavia:{}", self.conf.display()))
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        let run = self.prepare(arguments).run();
        let said = run.to_string();
        assert!(!said.contains(SECRET), "{arguments:?} tells a secret");
        run
    }

    fn post(&mut self, flow: &str) -> Value {
        self.octavia.ask(&json!({"do": "post", "flow": flow}))
    }

    /// Returns what a run told as JSON, however it ended.
    fn told(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
    }

    /// Starts its conductor; from here on jobs are performed.
    fn conduct(&mut self) {
        self.octavia.ask(&json!({"do": "conduct"}));
    }

    /// Waits until a job is where its conductor says.
    fn waits_for(&mut self, event: &str, job: &Value) -> Value {
        let what = format!("{event} of {job}");
        self.octavia
            .tells(&what, |it| it["event"] == event && it["job"] == *job)
    }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}

macro_rules! on_each_board {
    ($($name:ident,)*) => {
        mod redis {
            $(#[test] fn $name() { super::$name::<super::Server>(); })*
        }

        mod zookeeper {
            $(#[test] fn $name() { super::$name::<super::ZooKeeper>(); })*
        }
    };
}

on_each_board! {
    each_flow_is_listed_by_what_it_is_about_and_found_in_the_logbook,
    a_flow_is_explained_while_it_runs_fails_and_goes_back,
    a_job_that_was_trashed_with_its_logbook_is_not_restored,
    a_load_balancer_that_waits_for_no_job_is_found,
}

fn each_flow_is_listed_by_what_it_is_about_and_found_in_the_logbook<S: Driver>() {
    let Some(mut cloud) = Cloud::<S>::new() else {
        return;
    };
    let flows = cloud.octavia.ask(&json!({"do": "flows"}));
    let flows: Vec<_> = flows
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap().to_owned())
        .collect();
    assert!(flows.len() > 25, "{flows:?}");
    for flow in &flows {
        let posted = cloud.post(flow);
        let (job, balancer) = (text(&posted, "job"), text(&posted, "loadbalancer"));
        let found = cloud.run(&["list", "--lb", balancer, "-o", "uuid"]);
        let found: BTreeSet<_> = found.succeeded().lines().map(str::to_owned).collect();
        assert!(found.contains(job), "{posted}: {found:?}");
        let shown = cloud.run(&["flow", job, "--json"]).json();
        assert_eq!(shown["flow"], posted["flow_uuid"], "{posted}: {shown}");
        assert_eq!(shown["summary"], "its flow has not begun", "{posted}");
        let factory = text(&shown, "factory");
        assert!(
            text(&posted, "name").starts_with(factory.rsplit('.').next().unwrap()),
            "{shown}"
        );
        if flow == UNTOLD {
            assert_eq!(shown["load_balancer"], posted["loadbalancer"], "{shown}");
            assert_eq!(shown["amphora"], posted["amphora"], "{shown}");
        }
        let explained = cloud.told(&["explain", job]);
        let said = explained["findings"][0]["evidence"].to_string();
        assert!(said.contains("its flow has not begun"), "{explained}");
        let dumped = cloud.run(&["show", job]);
        assert_eq!(dumped.code, 0, "{dumped}");
    }
    let listed = cloud.run(&["list", "--json"]).json();
    assert_eq!(listed.as_array().unwrap().len(), flows.len());
    let table = cloud
        .prepare(&["list", "--columns", "name"])
        .at_terminal(120)
        .run();
    for line in table
        .succeeded()
        .lines()
        .skip(1)
        .filter(|line| !line.trim().is_empty())
    {
        let is_about = line.contains(" lb ") || line.contains(" amphora ");
        assert!(is_about || line.contains(UNTOLD), "{table}");
        assert!(!line.contains("_flow-"), "{table}");
    }
    nothing_secret_leaves(&cloud);
}

/// No form of output has a private key, unless it is asked for.
fn nothing_secret_leaves<S: Driver>(cloud: &Cloud<S>) {
    for path in [
        "details.store",
        "details.store.listeners.0.default_tls_container_data.private_key",
    ] {
        cloud.run(&["list", "--count", "--by", path]).succeeded();
    }
    // What was covered is no job that anybody posted.
    let covered = cloud.run(&["list", "-o", "jsonl"]).stdout;
    let other = format!("sqlite:{}", cloud.env.file("other.db").display());
    let loaded = cloud
        .env
        .jobboard(&["load", "-", "--board", &other])
        .stdin(covered)
        .run();
    assert_eq!(loaded.code, 7, "{loaded}");
    assert!(loaded.stderr.contains("which were covered"), "{loaded}");
    cloud.run(&["dump"]).failed(8);
    let dumped = cloud.prepare(&["dump", "--secrets"]).run();
    assert!(dumped.succeeded().len() > 10_000);
    for format in ["table", "tsv", "uuid"] {
        cloud.run(&["list", "-o", format]);
        cloud.run(&["show", "@1", "-o", format]);
    }
}

fn a_flow_is_explained_while_it_runs_fails_and_goes_back<S: Driver>() {
    if let Some(cloud) = Cloud::<S>::new() {
        is_explained(cloud);
    }
}

/// Follows a flow from its first task to its end.
fn is_explained<S: Driver>(mut cloud: Cloud<S>) {
    let [hold, fail] = ["go on", "go back"].map(|name| cloud.env.file(name));
    cloud
        .octavia
        .ask(&json!({"do": "hold", "at": "compute.build", "until": hold}));
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    cloud.conduct();
    cloud.waits_for("standing", &posted["job"]);
    let shown = cloud.run(&["flow", &job, "--json"]).json();
    let running: Vec<_> = shown["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|it| it["state"] == "RUNNING")
        .collect();
    assert!(
        !running.is_empty() && shown["state"] == "RUNNING",
        "{shown}"
    );
    assert!(
        text(&shown, "summary").starts_with("its flow is at "),
        "{shown}"
    );
    assert!(shown["progress"]["done"].as_u64() > Some(0), "{shown}");
    let page = cloud.prepare(&["flow", &job]).at_terminal(140).run();
    assert!(
        page.succeeded().contains("RUNNING") && !page.succeeded().contains(SECRET),
        "{page}"
    );
    let balancer = text(&posted, "loadbalancer");
    let explained = cloud.run(&["explain", "--lb", balancer, "-o", "table"]);
    assert!(
        explained.succeeded().contains("its flow is at "),
        "{explained}"
    );
    // What it builds fails, and while it goes back it stands still again.
    cloud
        .octavia
        .ask(&json!({"do": "fail", "at": "compute.build", "words": "no host has room"}));
    cloud
        .octavia
        .ask(&json!({"do": "hold", "at": "network.deallocate_vip", "until": fail}));
    fs::write(&hold, "").unwrap();
    let failed = cloud.octavia.tells("a failure", |it| {
        it["event"] == "atom" && it["state"] == "FAILURE" && it["job"] == posted["job"]
    });
    cloud.octavia.tells("that it stands still again", |it| {
        it["event"] == "standing" && it["at"] == "network.deallocate_vip"
    });
    let shown = cloud.run(&["flow", &job, "--json"]).json();
    let summary = text(&shown, "summary");
    assert!(
        summary.starts_with("its flow goes back at undoing "),
        "{shown}"
    );
    assert!(
        summary.contains("undone, since ") && summary.contains("no host has room"),
        "{shown}"
    );
    fs::write(&fail, "").unwrap();
    cloud.octavia.tells("that it is undone", |it| {
        it["event"] == "flow" && it["state"] == "REVERTED" && it["job"] == posted["job"]
    });
    assert!(
        text(&failed, "failure").contains("no host has room"),
        "{failed}"
    );
    cloud.waits_for("consumed", &posted["job"]);
    // Octavia does not keep the logbook of what has ended.
    cloud.run(&["flow", &job]).failed(3);
}

fn a_job_that_was_trashed_with_its_logbook_is_not_restored<S: Driver>() {
    let Some(mut cloud) = Cloud::<S>::new() else {
        return;
    };
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    cloud
        .octavia
        .ask(&json!({"do": "outgrow", "factory": text(&posted, "factory")}));
    cloud.conduct();
    cloud.waits_for("trashed", &posted["job"]);
    let gone = "its logbook is gone";
    wait_until(gone, || {
        cloud.told(&["explain", &job]).to_string().contains(gone)
    });
    let refused = cloud.run(&["restore", &job]);
    assert!(refused.failed(8).contains(gone), "{refused}");
    cloud.run(&["flow", &job]).failed(6);
    let found = cloud.run(&[
        "list",
        "--trash",
        "--lb",
        text(&posted, "loadbalancer"),
        "-o",
        "uuid",
    ]);
    assert_eq!(found.succeeded().trim_end(), job);
    cloud.octavia.ask(&json!({"do": "mend"}));
    cloud.run(&["restore", &job, "--without-book"]).succeeded();
    cloud.waits_for("trashed", &posted["job"]);
}

fn a_load_balancer_that_waits_for_no_job_is_found<S: Driver>() {
    let Some(mut cloud) = Cloud::<S>::new() else {
        return;
    };
    let [lost, waiting] = [(); 2].map(|()| cloud.post("update_load_balancer"));
    let confirm = format!("octavia:{}", cloud.conf.display());
    let consume = [
        "consume",
        text(&lost, "job"),
        "--force",
        "--confirm",
        &confirm,
    ];
    cloud.run(&consume).succeeded();
    // Both are as they are for years.
    for (file, table) in [("octavia.db", "load_balancer"), ("taskflow.db", "logbooks")] {
        let database = rusqlite::Connection::open(cloud.env.file(file)).unwrap();
        database.busy_timeout(SOON).unwrap();
        let since = "SET created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'";
        database
            .execute(&format!("UPDATE {table} {since}"), [])
            .unwrap();
    }
    let examined = cloud.run(&["doctor", "--only", "octavia", "--json"]);
    assert_eq!(examined.code, 7, "{examined}");
    let told: Value = serde_json::from_str(&examined.stdout).unwrap();
    let found = |code: &str| {
        let findings = told["findings"].as_array().unwrap().iter();
        findings
            .filter(|it| it["code"] == code)
            .map(Value::to_string)
            .collect::<Vec<_>>()
    };
    let pending = found("pending-without-job");
    assert_eq!(pending.len(), 1, "{told}");
    let sql = format!(
        "UPDATE load_balancer SET provisioning_status = 'ERROR' WHERE id = '{}' AND",
        text(&lost, "loadbalancer")
    );
    assert!(pending[0].contains(&sql), "{told}");
    assert!(
        !pending[0].contains(text(&waiting, "loadbalancer")),
        "{told}"
    );
    let books = found("book-without-job");
    assert_eq!(books.len(), 1, "{told}");
    assert!(
        books[0].contains(text(&lost, "book")) && !books[0].contains(text(&waiting, "book")),
        "{told}"
    );
    // Nothing was changed by looking.
    let status = cloud
        .octavia
        .ask(&json!({"do": "status", "id": lost["loadbalancer"]}));
    assert_eq!(status, "PENDING_UPDATE");
}

#[cfg(any(feature = "mysql", feature = "postgres"))]
mod databases {
    use rustix::process::Signal;
    use serde_json::json;

    use super::{Cloud, is_explained, text};
    use crate::support::{
        databases::{Database, NAMES},
        env::Env,
        servers::Server,
    };

    fn cloud(database: &Database) -> Option<Cloud<Server>> {
        let [octavia, persistence] = NAMES.map(|name| database.url(name));
        Cloud::with(
            Env::new(),
            &json!({"database": octavia, "persistence": persistence}),
        )
    }

    /// A database that stands still costs its part of an answer, and no more time than an operation may take.
    fn is_missed(cloud: &mut Cloud<Server>, database: &Database) {
        let posted = cloud.post("create_load_balancer");
        let job = text(&posted, "job").to_owned();
        database.signal(Signal::STOP);
        let explained = cloud.told(&["explain", &job, "--op-timeout", "1s"]);
        database.signal(Signal::CONT);
        let unseen = explained["unseen"].to_string();
        assert!(unseen.contains("did not answer within 1s"), "{explained}");
        assert!(explained["verdict"].is_string(), "{explained}");
        let refused = cloud.run(&["flow", &job, "--logbook", &database.url("nowhere")]);
        assert!(!refused.to_string().contains("hunter2"), "{refused}");
        assert_eq!(refused.code, 1, "{refused}");
    }

    fn has_logbooks(database: Option<Database>) {
        let Some(database) = database else {
            return;
        };
        if let Some(mut cloud) = cloud(&database) {
            is_missed(&mut cloud, &database);
            is_explained(cloud);
        }
    }

    #[cfg(feature = "mysql")]
    #[test]
    fn mariadb_has_logbooks() {
        has_logbooks(Database::mariadb());
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn postgresql_has_logbooks() {
        has_logbooks(Database::postgres());
    }
}
