//! Boards of Octavia: found by its configuration, with the names of its operators.

mod live;

use std::fs;

use serde_json::{Value, json};

use crate::support::{Env, Host, Invocation, Outcome, Server, ZooKeeper};

const BALANCER: &str = "5f3a6c1e-2b7d-4c80-9a11-7e0f4d2c9b01";
const AMPHORA: &str = "f27c9e10-8b5a-4d3e-a6c1-0d9f8e7b6a52";
const FLOW: &str = "31211ba6-5368-40d3-aaab-065d316bae66";
const PASSWORD: &str = "pa$s, 'word'";

/// A machine with Octavia's configuration, and the server of its board.
struct Octavia {
    env: Env,
    board: String,
    _server: Server,
}

impl Octavia {
    fn new() -> Option<Self> {
        let server = Server::start()?;
        server.run(&["CONFIG", "SET", "requirepass", PASSWORD]);
        let env = Env::new();
        let conf = env.file("octavia.conf");
        let text = format!(
            "[DEFAULT]\ndebug = True\n[task_flow]\njobboard_enabled = True\n\
             jobboard_backend_hosts = 127.0.0.1, unused.example\njobboard_backend_port = {}\n\
             jobboard_backend_password = \"pa$$s, 'word'\"\njobboard_expiration_time = 100\n\
             persistence_connection = mysql+pymysql://octavia:hunter2@db/octavia_persistence\n",
            server.port()
        );
        fs::write(&conf, text).unwrap();
        let board = format!("octavia:{}", conf.display());
        Some(Self {
            env,
            board,
            _server: server,
        })
    }

    fn run(&self, arguments: &[&str]) -> Invocation {
        let run = self.env.jobboard(arguments);
        run.env("JOBBOARD_URL", &self.board)
    }

    fn post_create(&self) -> String {
        let store = json!({"loadbalancer_id": BALANCER});
        self.post("get_create_load_balancer_flow", &store)
    }

    /// Posts a job as Octavia does, about the resource in its store.
    fn post(&self, factory: &str, store: &Value) -> String {
        let name = format!("{factory}-{FLOW}");
        let details = json!({ "store": store }).to_string();
        self.run(&["post", &name, "--details", &details])
            .run()
            .posted()
    }
}

#[test]
fn jobs_are_listed_by_flow_and_target_and_found_by_resource() {
    need!(octavia = Octavia::new());
    let create = octavia.post_create();
    let failover = octavia.post(
        "get_failover_LB_flow",
        &json!({"loadbalancer": {"loadbalancer_id": BALANCER}}),
    );
    let rotate = octavia.post(
        "cert_rotate_amphora_flow",
        &json!({"amphora_id": AMPHORA, "amphora": {"load_balancer_id": BALANCER}}),
    );
    let other = octavia.post("get_delete_amphora_flow", &json!({}));
    let table = octavia
        .run(&["list", "--columns", "name"])
        .at_terminal(100)
        .run();
    for name in [
        "create_load_balancer lb 5f3a6c1e",
        "failover_LB lb 5f3a6c1e",
        "cert_rotate_amphora amphora f27c9e10",
        "delete_amphora",
    ] {
        table.prints(name);
    }
    let whole = format!("get_create_load_balancer_flow-{FLOW}");
    for format in ["json", "tsv"] {
        octavia.run(&["list", "-o", format]).run().prints(&whole);
    }
    let found = |arguments: &[&str]| {
        let run = octavia.run(&[arguments, &["-o", "uuid"]].concat()).run();
        let mut found: Vec<_> = run.succeeded().lines().map(str::to_owned).collect();
        found.sort();
        found
    };
    let sorted = |jobs: &[&String]| {
        let mut jobs: Vec<_> = jobs.iter().map(|job| (*job).clone()).collect();
        jobs.sort();
        jobs
    };
    assert_eq!(
        found(&["list", "--lb", "5F3A"]),
        sorted(&[&create, &failover, &rotate])
    );
    assert_eq!(found(&["list", "--amphora", AMPHORA]), sorted(&[&rotate]));
    assert_eq!(found(&["list", "--filter", "lb=none"]), sorted(&[&other]));
    assert_eq!(
        found(&["show", "--lb", BALANCER, "--amphora", "f27c"]),
        sorted(&[&rotate])
    );
    let explained = octavia
        .run(&["explain", "--amphora", "f27c", "--json"])
        .run();
    explained.shows(&rotate);
    octavia.run(&["show", "--lb", "ffff"]).run().failed(6);
    octavia.run(&["show", "--lb", "x*"]).run().failed(2);
    let counted = octavia.run(&["list", "--count", "--by", "lb"]).run();
    counted.prints(BALANCER);
}

#[test]
fn events_of_a_load_balancer_are_streamed() {
    need!(octavia = Octavia::new());
    // Events before the start are included.
    let arguments = [
        "watch", "--lb", "5f3a", "--since", "1h", "--count", "2", "--json",
    ];
    let watch = octavia.run(&arguments).spawn();
    octavia.post("get_create_pool_flow", &json!({"loadbalancer_id": AMPHORA}));
    let mine = octavia.post(
        "get_create_pool_flow",
        &json!({"loadbalancer_id": BALANCER}),
    );
    octavia
        .run(&["claim", &mine, "--expiry", "5m"])
        .run()
        .succeeded();
    let events = watch.ended().values();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (&event["event"], &event["uuid"]))
        .collect();
    assert_eq!(
        kinds,
        [
            (&json!("posted"), &json!(mine)),
            (&json!("claimed"), &json!(mine))
        ]
    );
}

#[test]
fn octavia_board_is_protected_and_needs_an_expiry() {
    need!(octavia = Octavia::new());
    let job = octavia.post_create();
    octavia
        .run(&["claim", &job, "--expiry", "61m"])
        .run()
        .failed(8);
    let refused = octavia.run(&["claim", &job]).run();
    refused.fails(8, "wait for every job");
    for words in [
        &["claim", "--next"][..],
        &["claim", "--next", "--hold", "--lease", "2h"],
        &["extend", &job, "--expiry", "2h"],
    ] {
        octavia.run(words).run().failed(8);
    }
    // The command keeps its own exit codes.
    let refused = octavia.run(&["claim", &job, "--", "true"]).run();
    refused.fails(125, "its jobs are flows");
    let refused = octavia.run(&["conduct", "--allow-any", "--drain"]).run();
    refused.fails(8, "Octavia's own conductors run its jobs");
    octavia
        .run(&["claim", &job, "--expiry", "5m"])
        .run()
        .succeeded();
    octavia.run(&["abandon", &job]).run().succeeded();
    let all = ["trash", "--state", "unclaimed", "--force"];
    let refused = octavia.run(&[&all[..], &["--yes"]].concat()).run();
    let confirm = format!("--confirm {}", octavia.board);
    refused.fails(8, confirm);
    let confirmed = [&all[..], &["--confirm", &octavia.board]].concat();
    octavia.run(&confirmed).run().succeeded();
}

#[test]
fn oldest_job_that_blocks_new_flows_is_reported() {
    need!(octavia = Octavia::new());
    let run = |words: &[&str]| octavia.run(words).run();
    octavia.post_create();
    let codes = |run: &Outcome| {
        let report = run.value();
        let findings = report["problems"]
            .as_array()
            .or(report["findings"].as_array());
        let findings = findings.unwrap().iter();
        findings
            .map(|it| it["code"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let doctor = ["doctor", "--only", "blocks-posters", "--json"];
    assert!(codes(&run(&doctor)).is_empty());
    assert_ne!(run(&["check"]).code, 2);
    // A dump record with an old time.
    let old = json!({
        "uuid": AMPHORA, "name": format!("get_delete_amphora_flow-{FLOW}"), "created_on": "2020-01-01T00:00:00Z",
        "details": {"store": {}},
    });
    octavia
        .run(&["load", "-", "--confirm", &octavia.board])
        .stdin(old.to_string())
        .run()
        .succeeded();
    let examined = run(&doctor);
    assert_eq!(
        (examined.code, codes(&examined)),
        (7, vec!["blocks-posters".to_owned()])
    );
    examined.shows("\"list\",\"--problem\",\"blocks-posters\"");
    let checked = run(&["check"]);
    assert_eq!(checked.code, 2, "{checked}");
    assert!(
        checked
            .stdout
            .starts_with("CRITICAL - blocks-posters 1 (on the board for "),
        "{checked}"
    );
    run(&["check", "--warn", "trashed=1"]).has_code(2);
    let reported = run(&["report", "--json"]).stdout;
    assert!(reported.contains("\"blocks-posters\""), "{reported}");
    let explained = run(&["explain", AMPHORA, "--json"]);
    assert_eq!(explained.code, 4, "{explained}");
    assert!(codes(&explained).contains(&"blocks-posters".to_owned()));
}

#[test]
fn resolved_configuration_is_shown_without_secrets() {
    need!(octavia = Octavia::new());
    let shown = octavia.run(&["config"]).run();
    let text = shown.succeeded();
    for row in [
        "protected\ttrue",
        "password\tset",
        "task_flow.jobboard_enabled\tTrue",
        "task_flow.jobboard_backend_password\tset",
        "mysql://octavia@db:3306/octavia_persistence",
        "Octavia uses only the first host",
        "octavia.conf:6",
        "?namespace=octavia_jobboard",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
    assert!(
        !text.contains("hunter2") && !text.contains("pa$s"),
        "{text}"
    );
    let missing = octavia.env.run("list --board octavia:/nowhere/o.conf");
    missing.fails(2, "file /nowhere/o.conf does not exist");
}

#[test]
fn configured_board_can_be_octavia() {
    need!(octavia = Octavia::new());
    let job = octavia.post_create();
    octavia
        .env
        .configure(&format!("[board.prod]\nurl = \"{}\"\n", octavia.board));
    let listed = octavia.env.run("list --board prod -o uuid");
    assert_eq!(listed.succeeded().trim_end(), job);
    let refused = octavia
        .env
        .run("trash --state unclaimed --force --board prod --yes");
    refused.fails(8, "--confirm prod");
}

#[test]
fn octavia_board_on_zookeeper_is_found() {
    need!(server = ZooKeeper::start());
    let set = format!(
        "jobboard_backend_driver = zookeeper_taskflow_driver\njobboard_backend_port = {}",
        server.port()
    );
    let url = format!("zk://127.0.0.1:{}/octavia_test", server.port());
    is_found(&set, &url);
}

#[test]
fn octavia_board_behind_sentinels_is_found() {
    need!(master = Server::start());
    let sentinel = Server::start_sentinel(&master, 1).unwrap();
    let set = format!(
        "jobboard_redis_sentinel = mymaster\njobboard_backend_port = {}",
        sentinel.port()
    );
    is_found(&set, &master.url("/0?namespace=octavia_test"));
    // A single Sentinel cannot reach a quorum of two.
    let url = format!("redis-sentinel://127.0.0.1:{}/mymaster/0", sentinel.port());
    let objects = || {
        let doctor = "doctor --only server-unreachable --json --board";
        let run = Env::new().run(format!("{doctor} {url}"));
        let report = run.value();
        report["problems"].to_string()
    };
    assert_eq!(objects(), "[]");
    sentinel.run(&["sentinel", "set", "mymaster", "quorum", "2"]);
    let problems = objects();
    assert!(
        problems.contains("1 usable Sentinels") && problems.contains("CKQUORUM"),
        "{problems}"
    );
}

/// Requires that these settings lead to the existing board.
fn is_found(set: &str, url: &str) {
    let env = Env::new();
    let text = format!(
        "[task_flow]\njobboard_backend_hosts = 127.0.0.1\njobboard_backend_namespace = octavia_test\n{set}\n"
    );
    fs::write(env.file("octavia.conf"), text).unwrap();
    let on = |arguments: &[&str]| {
        let board = ["--board", "octavia:octavia.conf"];
        env.run([arguments, &board].concat())
    };
    let job = on(&["post", "a"]).posted();
    assert_eq!(on(&["list", "-o", "uuid"]).succeeded().trim_end(), job);
    on(&["claim", &job]).fails(8, "--hold");
    let whole = env.run(["list", "--board", url, "-o", "uuid"]);
    assert_eq!(whole.succeeded().trim_end(), job);
}
