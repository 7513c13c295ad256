//! A real Octavia: its jobs while they wait, run, fail, revert and are trashed.

/// Runs each test on a board of each server.
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

mod cloud;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod databases;
mod mend;

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use self::cloud::{Cloud, Driver, text};
use crate::support::{Env, SOON, Server, ZooKeeper, wait_until};

/// The flow whose posting does not name its resource.
const UNNAMED: &str = "delete_amphora";

/// A secret that no output may contain: all keys of Octavia have this form.
const SECRET: &str = "PRIVATE KEY-----";

on_each_board! {
    each_flow_is_listed_with_its_resource_and_logbook,
    flow_is_explained_while_running_failed_and_reverting,
    job_whose_logbook_was_deleted_is_not_restored,
    load_balancer_waiting_without_a_job_is_found,
}

fn each_flow_is_listed_with_its_resource_and_logbook<S: Driver>() {
    need!(mut cloud = Cloud::<S>::new());
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
        assert_eq!(shown["summary"], "the flow has not started", "{posted}");
        let factory = text(&shown, "factory");
        assert!(
            text(&posted, "name").starts_with(factory.rsplit('.').next().unwrap()),
            "{shown}"
        );
        if flow == UNNAMED {
            assert_eq!(shown["load_balancer"], posted["loadbalancer"], "{shown}");
            assert_eq!(shown["amphora"], posted["amphora"], "{shown}");
        }
        let explained = cloud.run_json(&["explain", job]);
        let evidence = explained["findings"][0]["evidence"].to_string();
        assert!(evidence.contains("the flow has not started"), "{explained}");
        cloud.run(&["show", job]).has_code(0);
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
        assert!(is_about || line.contains(UNNAMED), "{table}");
        assert!(!line.contains("_flow-"), "{table}");
    }
    nothing_secret_leaves(&cloud);
}

/// No output format contains a private key, except on request.
fn nothing_secret_leaves<S: Driver>(cloud: &Cloud<S>) {
    for path in [
        "details.store",
        "details.store.listeners.0.default_tls_container_data.private_key",
    ] {
        cloud.run(&["list", "--count", "--by", path]).succeeded();
    }
    // A masked posting is not valid for posting.
    let covered = cloud.run(&["list", "-o", "jsonl"]).stdout;
    let other = format!("sqlite:{}", cloud.env.file("other.db").display());
    let loaded = cloud
        .env
        .jobboard(&format!("load - --board {other}"))
        .stdin(covered)
        .run();
    loaded.exits(7, "masked secrets");
    cloud.run(&["dump"]).failed(8);
    let dumped = cloud.prepare(&["dump", "--secrets"]).run();
    assert!(dumped.succeeded().len() > 10_000);
    for format in ["table", "tsv", "uuid"] {
        cloud.run(&["list", "-o", format]);
        cloud.run(&["show", "@1", "-o", format]);
    }
}

fn flow_is_explained_while_running_failed_and_reverting<S: Driver>() {
    if let Some(cloud) = Cloud::<S>::new() {
        is_explained(cloud);
    }
}

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
        text(&shown, "summary").starts_with("the flow is at "),
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
    explained.prints("the flow is at ");
    // Its build fails, and it pauses while reverting.
    cloud
        .octavia
        .ask(&json!({"do": "fail", "at": "compute.build", "words": "no host has room"}));
    cloud
        .octavia
        .ask(&json!({"do": "hold", "at": "network.deallocate_vip", "until": fail}));
    fs::write(&hold, "").unwrap();
    let failed = cloud.octavia.wait_for("a failure", |it| {
        it["event"] == "atom" && it["state"] == "FAILURE" && it["job"] == posted["job"]
    });
    cloud.octavia.wait_for("that it stands still again", |it| {
        it["event"] == "standing" && it["at"] == "network.deallocate_vip"
    });
    let shown = cloud.run(&["flow", &job, "--json"]).json();
    let summary = text(&shown, "summary");
    assert!(summary.starts_with("the flow is reverting at "), "{shown}");
    assert!(
        summary.contains("reverted, since ") && summary.contains("no host has room"),
        "{shown}"
    );
    fs::write(&fail, "").unwrap();
    cloud.octavia.wait_for("that it is undone", |it| {
        it["event"] == "flow" && it["state"] == "REVERTED" && it["job"] == posted["job"]
    });
    assert!(
        text(&failed, "failure").contains("no host has room"),
        "{failed}"
    );
    cloud.waits_for("consumed", &posted["job"]);
    // Octavia deletes the logbook of ended flows.
    cloud.run(&["flow", &job]).failed(3);
}

fn job_whose_logbook_was_deleted_is_not_restored<S: Driver>() {
    need!(mut cloud = Cloud::<S>::new());
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    cloud
        .octavia
        .ask(&json!({"do": "outgrow", "factory": text(&posted, "factory")}));
    cloud.conduct();
    cloud.waits_for("trashed", &posted["job"]);
    let gone = "the logbook is gone";
    wait_until(gone, || {
        cloud
            .run_json(&["explain", &job])
            .to_string()
            .contains(gone)
    });
    cloud.run(&["restore", &job]).fails(8, gone);
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

/// The runner of a flow may have lost its claim, and another may start it.
#[test]
fn flow_running_without_a_claim_is_reported() {
    let env = Env::new();
    let url = format!("sqlite:///{}", env.file("octavia.db").display());
    // Long enough that the last write counts as recent even on a slow machine.
    let options = json!({"task_flow": {"jobboard_expiration_time": 3600}});
    let Some(mut cloud) = Cloud::<Server>::with(env, &json!({"database": url, "options": options}))
    else {
        return;
    };
    let until = cloud.env.file("go on");
    let hold = json!({"do": "hold", "at": "compute.build", "until": until});
    cloud.octavia.ask(&hold);
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    let code = "flow-without-claim";
    let is_reported = |cloud: &Cloud<Server>| {
        let report = cloud.run_json(&["explain", &job]);
        report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["code"] == code)
    };
    assert!(!is_reported(&cloud), "it has not begun");
    cloud.conduct();
    cloud.waits_for("standing", &posted["job"]);
    assert!(!is_reported(&cloud), "it is claimed");
    let confirm = format!("octavia:{}", cloud.conf.display());
    let free = ["abandon", &job, "--force", "--confirm", &confirm];
    cloud.run(&free).succeeded();
    assert!(is_reported(&cloud));
}

fn load_balancer_waiting_without_a_job_is_found<S: Driver>() {
    need!(mut cloud = Cloud::<S>::new());
    let [lost, waiting] = [(); 2].map(|()| cloud.post("update_load_balancer"));
    let unnamed = cloud.post(UNNAMED);
    let confirm = format!("octavia:{}", cloud.conf.display());
    let gone = |verb: &str, posted: &Value, cloud: &Cloud<S>| {
        let job = text(posted, "job");
        cloud
            .run(&[verb, job, "--force", "--confirm", &confirm])
            .succeeded();
    };
    gone("consume", &lost, &cloud);
    // Old resources, waiting for years.
    let change = |cloud: &Cloud<S>, file: &str, sql: &str| {
        let database = rusqlite::Connection::open(cloud.env.file(file)).unwrap();
        database.busy_timeout(SOON).unwrap();
        database.execute(sql, []).unwrap();
    };
    let old = "SET created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'";
    let waits = format!("UPDATE load_balancer {old}, provisioning_status = 'PENDING_UPDATE'");
    change(&cloud, "octavia.db", &waits);
    change(&cloud, "taskflow.db", &format!("UPDATE logbooks {old}"));
    let fix = |posted: &Value| format!("\"mend\",\"--lb\",{}", posted["loadbalancer"]);
    let found = |cloud: &Cloud<S>, code: &str| {
        let report = cloud.run_json(&["doctor", "--only", "octavia"]);
        let findings = report["problems"].as_array().unwrap().iter();
        let findings = findings.filter(|it| it["code"] == code);
        (findings.map(Value::to_string).collect::<Vec<_>>(), report)
    };
    let (pending, report) = found(&cloud, "stuck-load-balancer");
    assert_eq!(pending.len(), 1, "{report}");
    assert!(pending[0].contains(&fix(&lost)), "{report}");
    let (books, report) = found(&cloud, "logbook-without-job");
    assert_eq!(books.len(), 1, "{report}");
    assert!(
        books[0].contains(text(&lost, "book")) && !books[0].contains(text(&waiting, "book")),
        "{report}"
    );
    // No client runs trashed jobs, even if only the logbook names the resource.
    gone("trash", &unnamed, &cloud);
    let (pending, report) = found(&cloud, "stuck-load-balancer");
    assert_eq!(pending.len(), 2, "{report}");
    assert!(
        pending.iter().any(|it| it.contains(&fix(&unnamed))),
        "{report}"
    );
    // With a job of unknown resource, no load balancer certainly lacks a job.
    let unknown = cloud.post(UNNAMED);
    let book = text(&unknown, "book");
    change(
        &cloud,
        "taskflow.db",
        &format!("DELETE FROM flowdetails WHERE parent_uuid = '{book}'"),
    );
    let (pending, report) = found(&cloud, "stuck-load-balancer");
    assert!(pending.is_empty(), "{report}");
    assert!(
        report["unseen"]
            .to_string()
            .contains("1 job does not name its load balancer"),
        "{report}"
    );
    // Reading changed nothing.
    let status = cloud
        .octavia
        .ask(&json!({"do": "status", "id": lost["loadbalancer"]}));
    assert_eq!(status, "PENDING_UPDATE");
}
