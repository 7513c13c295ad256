//! Stuck load balancers, and how `mend` brings them back.

use std::{fs, thread, time::Duration};

use serde_json::{Value, json};

use super::{Cloud, Driver, Server, ZooKeeper, cloud::text};
use crate::support::{Env, Outcome, needs, wait_until};

/// Where an Octavia keeps its tables.
pub(super) trait Tables {
    /// Returns their URLs.
    fn urls(&self, env: &Env) -> Value;

    fn change_logbooks(&self, env: &Env, words: &str);

    /// Makes the logbooks unreadable for a while.
    fn hide_logbooks(&self, env: &Env) {
        self.change_logbooks(env, "ALTER TABLE logbooks RENAME TO away");
    }

    fn show_logbooks(&self, env: &Env) {
        self.change_logbooks(env, "ALTER TABLE away RENAME TO logbooks");
    }
}

struct Files;

impl Tables for Files {
    fn urls(&self, env: &Env) -> Value {
        json!({"database": format!("sqlite:///{}", env.file("octavia.db").display())})
    }

    fn change_logbooks(&self, env: &Env, words: &str) {
        let database = rusqlite::Connection::open(env.file("taskflow.db")).unwrap();
        database.execute(words, []).unwrap();
    }

    fn hide_logbooks(&self, env: &Env) {
        fs::rename(env.file("taskflow.db"), env.file("away.db")).unwrap();
    }

    fn show_logbooks(&self, env: &Env) {
        fs::rename(env.file("away.db"), env.file("taskflow.db")).unwrap();
    }
}

/// Provokes and mends each verdict on a board of each server, with tables in files and in databases.
macro_rules! verdicts {
    ($($name:ident,)*) => {
        mod redis {
            $(#[test] fn $name() { super::$name::<super::Server>(&super::Files); })*
        }

        mod zookeeper {
            $(#[test] fn $name() { super::$name::<super::ZooKeeper>(&super::Files); })*
        }

        #[cfg(any(feature = "mysql", feature = "postgres"))]
        pub(super) const VERDICTS: &[(&str, fn(&dyn Tables))] = &[
            $(
                (concat!(stringify!($name), " on Redis"), $name::<Server>),
                (concat!(stringify!($name), " on ZooKeeper"), $name::<ZooKeeper>),
            )*
        ];
    };
}

verdicts! {
    lost_job_is_posted_again,
    load_balancer_without_a_trace_is_failed_over,
    trashed_job_is_restored_while_its_logbook_exists,
    trashed_job_without_logbook_is_failed_over,
    load_balancer_of_a_live_worker_is_left_alone,
    claim_of_a_dead_worker_is_released,
    ended_flow_of_a_pending_load_balancer_is_failed_over,
    repair_is_refused_if_the_world_changes_after_the_plan,
    interrupted_repair_continues,
}

/// Starts an Octavia with claims of three seconds, which optionally keeps its logbooks.
fn cloud<S: Driver>(tables: &dyn Tables, keeps_logbooks: bool) -> Option<Cloud<S>> {
    let env = Env::new();
    let keeps = if keeps_logbooks { "True" } else { "False" };
    let options =
        json!({"task_flow": {"jobboard_expiration_time": 3, "jobboard_save_logbook": keeps}});
    let mut settings = tables.urls(&env);
    settings["options"] = options;
    Cloud::with(env, &settings)
}

impl<S: Driver> Cloud<S> {
    fn look(&self, posted: &Value) -> Value {
        let balancer = text(posted, "loadbalancer");
        self.run(&["mend", "--lb", balancer, "--json"]).json()
    }

    fn verdict(&self, posted: &Value) -> String {
        text(&self.look(posted), "verdict").to_owned()
    }

    fn confirmed<'a>(&self, words: &[&'a str]) -> (Vec<&'a str>, String) {
        let name = format!("octavia:{}", self.conf.display());
        (words.to_vec(), name)
    }

    pub(super) fn apply(&self, posted: &Value, more: &[&str]) -> Outcome {
        self.applying(posted, more).run()
    }

    fn applying(&self, posted: &Value, more: &[&str]) -> crate::support::Invocation {
        let balancer = text(posted, "loadbalancer");
        let (words, name) = self.confirmed(&["mend", "--lb", balancer, "--apply"]);
        let words = [words, vec!["--confirm", &name], more.to_vec()].concat();
        self.prepare(&words)
    }

    fn forced(&self, verb: &str, posted: &Value) {
        let (words, name) = self.confirmed(&[verb, text(posted, "job"), "--force", "--confirm"]);
        self.run(&[words, vec![&name]].concat()).succeeded();
    }

    fn status(&mut self, posted: &Value) -> Value {
        let request = json!({"do": "status", "id": posted["loadbalancer"]});
        self.octavia.ask(&request)
    }

    /// Dates a load balancer back by years.
    pub(super) fn age(&mut self, posted: &Value) {
        let id = text(posted, "loadbalancer");
        let old = "created_at = '2020-01-01 00:00:00', updated_at = '2020-01-01 00:00:00'";
        let words = format!("UPDATE load_balancer SET {old} WHERE id = '{id}'");
        self.octavia.ask(&json!({"do": "sql", "words": words}));
    }

    fn set_pending(&mut self, posted: &Value) {
        let id = text(posted, "loadbalancer");
        let pending = "provisioning_status = 'PENDING_UPDATE'";
        let words = format!("UPDATE load_balancer SET {pending} WHERE id = '{id}'");
        self.octavia.ask(&json!({"do": "sql", "words": words}));
    }
}

/// On ZooKeeper only a claim by hand outlives its process: a worker's ends with its session.
fn claim_of_a_dead_worker_is_released<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let posted = cloud.post("create_load_balancer");
    let job = text(&posted, "job").to_owned();
    let host = rustix::system::uname();
    let owner = format!(
        "{}:{}:c0ffee01",
        host.nodename().to_string_lossy(),
        i32::MAX
    );
    // Through its own address the board is not protected.
    let status = cloud.run(&["status", "--json"]).json();
    let board = text(&status, "board");
    let claim = format!("claim {job} --who {owner} --board {board}");
    cloud.env.ok(claim);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "worker-dead", "{look}");
    assert_eq!(steps(&look), ["release", "wait"], "{look}");
    cloud.conduct();
    cloud.apply(&posted, &[]).succeeded();
    assert_eq!(cloud.status(&posted), "ACTIVE");
}

/// A worker that returns during a repair either prevents it or comes after it.
#[test]
fn repair_races_with_a_returning_worker() {
    let races = if needs::is_full() { 200 } else { 6 };
    need!(mut cloud = cloud::<Server>(&Files, false));
    let (mut refused, mut mended) = (0, 0);
    for race in 0..races {
        let posted = cloud.post("update_load_balancer");
        cloud.forced("consume", &posted);
        cloud.age(&posted);
        let words = ["--failover-command", "true", "--timeout", "0s"];
        let mending = cloud.applying(&posted, &words);
        let store = json!({"store": {"loadbalancer_id": posted["loadbalancer"]}}).to_string();
        let post = ["post", text(&posted, "name"), "--details", &store];
        let post = cloud.prepare(&post);
        // Each of the two begins first in half of the races, by less than a repair takes.
        let ahead = Duration::from_millis(race * 7 % 60);
        let (mending, posting) = match race % 2 {
            0 => {
                let mending = mending.spawn();
                thread::sleep(ahead);
                (mending, post.spawn())
            }
            _ => {
                let posting = post.spawn();
                thread::sleep(ahead);
                (mending.spawn(), posting)
            }
        };
        let job = posting.ended().posted();
        let claim = ["claim", &job, "--expiry", "60s", "--who", "worker"];
        cloud.run(&claim).succeeded();
        let at_claim = cloud.status(&posted);
        let ended = mending.ended();
        let later = cloud.status(&posted);
        // An ended repair has changed nothing under the worker.
        assert_eq!(at_claim, later, "{race}: {ended}");
        match ended.code {
            4 | 8 => refused += 1,
            124 => mended += 1,
            _ => panic!("{race}: {ended}"),
        }
        let words = ["consume", &job, "--who", "worker"];
        cloud.run(&words).succeeded();
    }
    eprintln!("{races} races: {refused} repairs refused, {mended} came before the worker");
}

/// Killed at any moment, a repair can be repeated.
#[test]
fn killed_repair_can_be_repeated() {
    let kills = if needs::is_full() { 60 } else { 6 };
    need!(mut cloud = cloud::<Server>(&Files, false));
    let asked = cloud.env.file("asked");
    let command = format!("touch '{}' #", asked.display());
    for kill in 0..kills {
        let posted = cloud.post("update_load_balancer");
        cloud.forced("consume", &posted);
        cloud.age(&posted);
        let words = ["--failover-command", &command, "--timeout", "0s"];
        let mending = cloud.applying(&posted, &words).spawn();
        thread::sleep(Duration::from_millis(kill * 31 % 180));
        mending.kill();
        // The row is changed or not, and never locked for long.
        let status = cloud.status(&posted);
        assert!(status == "ERROR" || status == "PENDING_UPDATE", "{status}");
        let _ = fs::remove_file(&asked);
        cloud.apply(&posted, &words).failed(124);
        assert_eq!(cloud.status(&posted), "ERROR");
        assert!(asked.exists());
    }
}

fn steps(look: &Value) -> Vec<&str> {
    let plan = look["plan"].as_array().unwrap();
    plan.iter().map(|it| text(it, "step")).collect()
}

const START_OVER: [&str; 3] = ["set-error", "fail-over", "wait"];

fn lost_job_is_posted_again<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let until = cloud.env.file("go on");
    let hold = json!({"do": "hold", "at": "compute.build", "until": until});
    cloud.octavia.ask(&hold);
    let posted = cloud.post("create_load_balancer");
    cloud.conduct();
    cloud.waits_for("standing", &posted["job"]);
    let shown = |cloud: &Cloud<S>, job: &str| {
        let shown = cloud
            .prepare(&["show", job, "--reveal", "--json"])
            .run()
            .json();
        ["name", "priority", "book", "details"].map(|field| shown[field].clone())
    };
    let lost = shown(&cloud, text(&posted, "job"));
    // Its worker dies, and the board loses the job.
    cloud.restart();
    cloud.forced("consume", &posted);
    wait_until("the job counts as lost", || {
        cloud.verdict(&posted) == "lost-job"
    });
    let look = cloud.look(&posted);
    assert_eq!(steps(&look), ["repost", "wait"], "{look}");
    let listed = cloud.run(&["list", "-o", "uuid"]);
    assert_eq!(listed.succeeded(), "", "looking posts nothing");
    // No worker is there yet.
    cloud.apply(&posted, &["--timeout", "1s"]).failed(124);
    let jobs = cloud.run(&["list", "-o", "uuid"]);
    let job = jobs.succeeded().trim_end().to_owned();
    assert_ne!(job, text(&posted, "job"));
    assert_eq!(shown(&cloud, &job), lost);
    assert_eq!(cloud.verdict(&posted), "waiting");
    cloud.conduct();
    // Refused while the worker is at it.
    wait_until("it is mended", || {
        let mended = cloud.apply(&posted, &[]);
        assert!([0, 4, 8].contains(&mended.code), "{mended}");
        mended.code == 0 && mended.stdout.contains("ACTIVE")
    });
    assert_eq!(cloud.status(&posted), "ACTIVE");
    assert_eq!(cloud.verdict(&posted), "settled");
}

/// Lets a real Octavia fail the load balancer over, as soon as the command asks for it.
fn is_failed_over<S: Driver>(cloud: &mut Cloud<S>, posted: &Value) {
    let [asked, done] = ["asked", "done"].map(|name| cloud.env.file(name));
    let command = cloud.env.file("fail over");
    fs::write(&command, "#!/bin/sh\necho \"$2\" > \"$1\"\nuntil [ -e \"$(dirname \"$1\")/done\" ]; do sleep 0.05; done\n").unwrap();
    let command = format!("sh '{}' '{}'", command.display(), asked.display());
    let mending = cloud
        .applying(posted, &["--failover-command", &command])
        .spawn();
    wait_until("the failover is asked for", || {
        fs::read_to_string(&asked).is_ok_and(|it| it.trim_end() == text(posted, "loadbalancer"))
    });
    assert_eq!(cloud.status(posted), "ERROR");
    let ids = &posted["ids"];
    let request = json!({"do": "post", "flow": "failover_load_balancer", "ids": ids});
    cloud.octavia.ask(&request);
    fs::write(&done, "").unwrap();
    cloud.conduct();
    let mended = mending.ended();
    mended.prints("ACTIVE");
    assert_eq!(cloud.status(posted), "ACTIVE");
    let history = cloud.run(&["list", "--history", "--json"]).json();
    let entries = history.as_array().unwrap();
    let name = format!("mend {}: ", text(posted, "loadbalancer"));
    let entry = entries
        .iter()
        .find(|it| text(it, "name").starts_with(&name));
    assert!(entry.is_some(), "{history} {mended}");
}

fn load_balancer_without_a_trace_is_failed_over<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let posted = cloud.post("update_load_balancer");
    cloud.forced("consume", &posted);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "in-progress", "{look}");
    cloud.apply(&posted, &[]).failed(8);
    cloud.age(&posted);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "never-posted", "{look}");
    assert_eq!(steps(&look), START_OVER, "{look}");
    // A worker without a job may still run a flow: only its logbook shows that.
    tables.hide_logbooks(&cloud.env);
    let unclear = cloud.look(&posted);
    assert_eq!(text(&unclear, "verdict"), "unclear", "{unclear}");
    let refused = cloud.apply(&posted, &[]);
    refused.fails(8, "logbooks cannot be read");
    tables.show_logbooks(&cloud.env);
    let listed = cloud.run(&["mend", "--json"]).json();
    assert_eq!(listed[0]["id"], posted["loadbalancer"], "{listed}");
    is_failed_over(&mut cloud, &posted);
}

fn trashed_job_is_restored_while_its_logbook_exists<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, true));
    let posted = cloud.post("create_load_balancer");
    let factory = text(&posted, "factory");
    cloud
        .octavia
        .ask(&json!({"do": "outgrow", "factory": factory}));
    cloud.conduct();
    cloud.waits_for("trashed", &posted["job"]);
    cloud.octavia.ask(&json!({"do": "mend"}));
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "trashed", "{look}");
    assert_eq!(steps(&look), ["restore", "wait"], "{look}");
    cloud.apply(&posted, &[]).succeeded();
    assert_eq!(cloud.status(&posted), "ACTIVE");
}

fn trashed_job_without_logbook_is_failed_over<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let posted = cloud.post("update_load_balancer");
    cloud.forced("trash", &posted);
    let book = text(&posted, "book");
    let delete = format!("DELETE FROM logbooks WHERE uuid = '{book}'");
    tables.change_logbooks(&cloud.env, &delete);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "trashed", "{look}");
    assert_eq!(steps(&look), START_OVER, "{look}");
    is_failed_over(&mut cloud, &posted);
}

fn load_balancer_of_a_live_worker_is_left_alone<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let until = cloud.env.file("go on");
    let hold = json!({"do": "hold", "at": "compute.build", "until": until});
    cloud.octavia.ask(&hold);
    let posted = cloud.post("create_load_balancer");
    assert_eq!(cloud.verdict(&posted), "waiting");
    cloud.conduct();
    cloud.waits_for("standing", &posted["job"]);
    cloud.age(&posted);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "in-progress", "{look}");
    assert!(
        text(&look, "why").contains("octavia-task-flow-conductor"),
        "{look}"
    );
    // ZooKeeper registers workers with their hosts.
    let owner = cloud.run(&["owner", text(&posted, "job"), "--json"]).json();
    let explained = cloud.run(&["explain", text(&posted, "job"), "-o", "table"]);
    match owner["host"].as_str() {
        Some(host) => {
            assert_eq!(S::NAME, "zookeeper");
            assert!(text(&look, "why").contains(host), "{look}");
            explained.prints(host);
        }
        None => {
            assert_eq!(S::NAME, "redis");
            explained.prints("the board does not record its host");
        }
    }
    cloud.apply(&posted, &[]).fails(8, "has held its job");
    assert_eq!(cloud.status(&posted), "PENDING_CREATE");
    fs::write(&until, "").unwrap();
    cloud.waits_for("consumed", &posted["job"]);
    wait_until("it is ACTIVE", || cloud.status(&posted) == "ACTIVE");
}

fn ended_flow_of_a_pending_load_balancer_is_failed_over<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, true));
    let posted = cloud.post("create_load_balancer");
    cloud.conduct();
    cloud.waits_for("consumed", &posted["job"]);
    cloud.set_pending(&posted);
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "inconsistent", "{look}");
    assert_eq!(steps(&look), START_OVER, "{look}");
    is_failed_over(&mut cloud, &posted);
}

/// The operator sees the plan, and agrees after something has changed.
fn repair_is_refused_if_the_world_changes_after_the_plan<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let name = format!("octavia:{}", cloud.conf.display());
    let agrees_after = |cloud: &mut Cloud<S>, posted: &Value, change: &dyn Fn(&mut Cloud<S>)| {
        let words = ["mend", "--lb", text(posted, "loadbalancer"), "--apply"];
        let mending = cloud.prepare(&words).at_terminal(200).piped_stdin();
        let mut mending = mending.spawn();
        wait_until("it asks", || {
            mending.stdout().contains("type the name of the board")
        });
        change(cloud);
        use std::io::Write as _;
        writeln!(mending.stdin(), "{name}").unwrap();
        let outcome = mending.ended();
        assert_eq!(outcome.code, 4, "{outcome}");
        outcome.shows("it changed meanwhile");
    };
    let trashed = cloud.post("update_load_balancer");
    cloud.forced("consume", &trashed);
    cloud.age(&trashed);
    // Another operator has repaired it.
    agrees_after(&mut cloud, &trashed, &|cloud| {
        let id = text(&trashed, "loadbalancer");
        let words =
            format!("UPDATE load_balancer SET provisioning_status = 'ACTIVE' WHERE id = '{id}'");
        cloud.octavia.ask(&json!({"do": "sql", "words": words}));
    });
    assert_eq!(cloud.status(&trashed), "ACTIVE");
    // Its request was only slow, and a worker has begun.
    let late = cloud.post("update_load_balancer");
    let ids = late["ids"].clone();
    cloud.forced("consume", &late);
    cloud.age(&late);
    agrees_after(&mut cloud, &late, &|cloud| {
        let request = json!({"do": "post", "flow": "failover_amphora", "ids": ids});
        cloud.octavia.ask(&request);
        cloud.age(&late);
    });
    assert_eq!(cloud.status(&late), "PENDING_UPDATE");
}

fn interrupted_repair_continues<S: Driver>(tables: &dyn Tables) {
    need!(mut cloud = cloud::<S>(tables, false));
    let posted = cloud.post("update_load_balancer");
    cloud.forced("consume", &posted);
    cloud.age(&posted);
    // It is killed during the failover.
    let never = [
        "--failover-command",
        "exec > /dev/null 2>&1; exec sleep 1000 #",
    ];
    let mending = cloud.applying(&posted, &never).spawn();
    mending.says("running ");
    assert_eq!(cloud.status(&posted), "ERROR");
    mending.kill();
    let look = cloud.look(&posted);
    assert_eq!(text(&look, "verdict"), "failed", "{look}");
    assert_eq!(steps(&look), ["fail-over", "wait"], "{look}");
    // Without the program it shows the command, and waits.
    let alone = cloud.apply(
        &posted,
        &["--failover-command", "no-such-program", "--timeout", "1s"],
    );
    alone.fails(124, "no-such-program");
    // A failover that is rejected ends the repair.
    cloud
        .apply(&posted, &["--failover-command", "false"])
        .failed(9);
    assert_eq!(cloud.status(&posted), "ERROR");
}
