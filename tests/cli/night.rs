//! Many problems on each kind of board: one command shows them, the next repairs them, and the third finds none.

use std::{collections::BTreeMap, fs, time::Duration};

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, set_mode},
    doctor::dead,
    support::{Env, Pane, Peer, column, comes_true, wait_until, words},
};

on_every_board!(
    many_problems_take_three_commands,
    suggested_commands_work_on_random_boards,
);

const PLANTED: &str = "owner-dead unreadable-record conductor-refuses no-matching-conductor \
                       invalid-command claim-never-expires retries-exhausted failed paused";

fn run(env: &Env, words: &[&str]) -> String {
    env.run(words).succeeded().to_owned()
}

fn handler(env: &Env, name: &str, script: &str, mode: u32) {
    let path = env.file("handlers").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    set_mode(&path, mode);
}

fn plant(stage: &Stage) {
    let env = &stage.env;
    fs::create_dir(env.file("handlers")).unwrap();
    set_mode(&env.file("handlers"), 0o755);
    handler(
        env,
        "long",
        "echo >> log; until [ -e go ]; do sleep 0.1; done",
        0o755,
    );
    for (name, reason) in [
        ("disk", "disk full"),
        ("route", "no route"),
        ("login", "denied"),
    ] {
        handler(
            env,
            name,
            &format!("test -e mended || {{ echo {reason} >&2; exit 3; }}"),
            0o755,
        );
        for _ in 0..2 {
            run(env, &["post", name, "max_attempts:=1"]);
        }
    }
    let conduct = words("--handlers handlers --drain --filter name!=long");
    stage.conduct(&conduct).run().failed(7);
    plant_claims(stage);
    plant_unclaimed(stage);
    ruin_a_record(stage);
}

/// Leaves claims of killed conductors and an unlimited claim of a service; one job is exhausted.
fn plant_claims(stage: &Stage) {
    let env = &stage.env;
    for number in 0..5 {
        run(env, &["post", "long"]);
        let name = format!("dead{number}");
        let words = words("--handlers handlers --lease 6h --filter name=long");
        let conductor = stage.start(&[&words[..], &["--name", &name]].concat());
        stage.logged(number + 1);
        conductor.kill();
    }
    let spent = env.run("post spent").posted();
    for _ in 0..5 {
        env.fail(&spent, "1ms");
    }
    for number in 0..3 {
        let flow = env.run(format!("post flow-{number}")).posted();
        claim_by_python(stage, &flow);
    }
}

/// Leaves jobs that no conductor accepts, and a pause.
fn plant_unclaimed(stage: &Stage) {
    let env = &stage.env;
    handler(env, "cleanup", "true", 0o777);
    run(env, &["post", "cleanup"]);
    run(env, &["post", "migrate", "--priority", "HIGH"]);
    env.load("wrong", &json!({"command": ["../x"]}));
    for number in 0..4 {
        run(env, &["post", &format!("report-{number}")]);
    }
    run(
        env,
        &["pause", "report-*", "--for", "6h", "--reason", "ask Ana"],
    );
}

/// Lets a Python service claim a job without an expiry, where such claims exist.
fn claim_by_python(stage: &Stage, job: &str) {
    match stage.redis_server().and_then(Peer::on) {
        Some(mut peer) => {
            peer.request(&json!({"do": "claim", "uuid": job, "who": "service"}));
        }
        None => stage.env.claim(job, "service"),
    }
}

pub(crate) fn ruin_a_record(stage: &Stage) {
    if let Some(server) = stage.redis_server() {
        server.run(&["HSET", "taskflow:listings", "junk", "nonsense"]);
    } else if let Some(server) = stage.zookeeper_board() {
        let mut peer = Peer::on(server).unwrap();
        server.create(&mut peer, "job0000009999", "nonsense");
    } else {
        stage.env.post("junk");
        let ruin = "PRAGMA ignore_check_constraints = on;
                    UPDATE job SET details = 'nonsense' WHERE name = 'junk'";
        stage.env.database().execute_batch(ruin).unwrap();
    }
}

/// Returns the codes of the findings.
fn codes(env: &Env) -> Vec<String> {
    let report = env.run("doctor --json").value();
    column(report["problems"].as_array().unwrap(), "code")
}

/// Returns the number of jobs with each problem, as `explain` finds it for each readable job alone.
fn explained(env: &Env) -> BTreeMap<String, u64> {
    let lists = ["list -o uuid", "list --trash -o uuid"].map(|list| env.run(list).stdout);
    let jobs = lists.iter().flat_map(|list| list.lines());
    let explain: Vec<_> = ["explain", "--json"].into_iter().chain(jobs).collect();
    let mut counts = BTreeMap::new();
    let run = env.run(explain);
    for job in run.values()[0].as_array().unwrap() {
        for finding in job["findings"].as_array().unwrap() {
            let code = finding["code"].as_str().unwrap().to_owned();
            *counts.entry(code).or_default() += finding["jobs"].as_u64().unwrap().max(1);
        }
    }
    counts
}

/// Requires the same number of jobs for each problem in all views.
fn views_agree(env: &Env) {
    let json = |words: &[&str]| -> Value {
        let run = env.run([words, &["--json"]].concat());
        run.value()
    };
    let problems = |report: &Value| {
        let mut counts = BTreeMap::new();
        for problem in report["problems"].as_array().unwrap() {
            let count = problem["jobs"].as_u64().unwrap();
            if count > 0 {
                *counts
                    .entry(problem["code"].as_str().unwrap().to_owned())
                    .or_default() += count;
            }
        }
        counts
    };
    let (found, report) = (json(&["doctor"]), json(&["report"]));
    assert_eq!(report["sound"], found["sound"]);
    // Their texts have durations.
    let told = |problems: &Value| {
        let mut all = problems.as_array().unwrap().clone();
        all.iter_mut().for_each(|it| it["evidence"] = Value::Null);
        all.sort_by_key(ToString::to_string);
        all
    };
    assert_eq!(told(&report["problems"]), told(&found["problems"]));
    let doctor: BTreeMap<String, u64> = problems(&found);
    assert_eq!(problems(&json(&["explain"])), doctor);
    let explained = explained(env);
    for (code, count) in &doctor {
        let is_readable = code != "unreadable-record";
        assert!(
            !is_readable || explained.get(code) == Some(count),
            "{code}: {explained:?}"
        );
    }
    let figures = |report: &Value| -> BTreeMap<String, u64> {
        serde_json::from_value(report["jobs_with_problem"].clone()).unwrap()
    };
    let status = json(&["status"]);
    assert_eq!(figures(&status), doctor);
    assert_eq!(
        by_code(&status),
        same_codes(&json(&["doctor", "--only", "jobs,conductors,keys"]))
    );
    assert_eq!(figures(&report), doctor);
    let metrics = run(env, &["metrics"]);
    let check = json(&["check"]);
    for (code, count) in &doctor {
        let selected = run(env, &["list", "--problem", code, "--count"]);
        assert_eq!(selected.trim(), count.to_string(), "{code}");
        let is_it = |line: &&str| line.contains("_with_problem{") && line.contains(code);
        match metrics.lines().find(is_it) {
            Some(line) => assert!(line.ends_with(&format!(" {count}")), "{line}"),
            // The metrics omit the trash.
            None => assert_eq!(code, "failed", "{metrics}"),
        }
        let mut values = check["metrics"].as_array().unwrap().iter();
        let value = values.find(|it| it["name"] == code.replace('-', "_"));
        assert!(
            value.is_none_or(|it| it["value"] == *count),
            "{code}: {check}"
        );
    }
    dash_agrees(env, doctor);
}

fn dash_agrees(env: &Env, doctor: BTreeMap<String, u64>) {
    let dash = env.run("dash --once --view problems");
    for (code, count) in doctor {
        // A mark, the code, and the number of jobs.
        let rows = dash
            .succeeded()
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let rows = rows.filter(|words| words.get(1) == Some(&code.as_str()));
        let jobs = rows
            .map(|words| words[2].parse::<u64>().unwrap())
            .sum::<u64>();
        assert_eq!(jobs, count, "{code}: {dash}");
    }
}

type CodeCounts = Vec<(String, u64, u64)>;

/// Returns the codes that `status` lists, each with the numbers of its problems and jobs.
fn by_code(status: &Value) -> CodeCounts {
    serde_json::from_value::<Vec<Value>>(status["problems"].clone())
        .unwrap()
        .iter()
        .map(|it| {
            let number = |name: &str| it[name].as_u64().unwrap();
            let code = it["code"].as_str().unwrap().to_owned();
            (code, number("problems"), number("jobs"))
        })
        .collect()
}

/// Counts the problems of `doctor` in the order of its codes.
fn same_codes(report: &Value) -> CodeCounts {
    let mut counts: CodeCounts = Vec::new();
    for it in report["problems"].as_array().unwrap() {
        let (code, jobs) = (it["code"].as_str().unwrap(), it["jobs"].as_u64().unwrap());
        match counts.iter_mut().find(|(known, ..)| known == code) {
            Some((_, problems, sum)) => (*problems, *sum) = (*problems + 1, *sum + jobs),
            None => counts.push((code.to_owned(), 1, jobs)),
        }
    }
    counts
}

#[test]
fn views_agree_on_problems_without_a_job() {
    need!(stage = Stage::redis());
    let (env, server) = (&stage.env, stage.redis_server().unwrap());
    let flow = env.post("flow");
    stage.post("command", "true");
    let owned = format!("taskflow:{flow}.owned");
    server.run(&["SET", &owned, "octavia-7", "PX", "600000"]);
    server.run(&["HSET", "taskflow:paused", "x*", "garbage"]);
    server.run(&["SET", "taskflow:fence", "x"]);
    let mover = format!("move:{}", dead("ada"));
    let begun = "2026-01-01T00:00:00Z redis://127.0.0.1:1/0?namespace=b";
    server.run(&["HSET", "taskflow:moves", &mover, begun]);
    views_agree(env);
    let expected = words("wrong-type breaks-peers unfinished-move unreadable-entry");
    let status = env.json("status --json");
    let codes = by_code(&status).into_iter().map(|(code, ..)| code);
    let codes: Vec<_> = codes.filter(|it| it != "no-conductor").collect();
    assert_eq!(codes, expected);
    let (metrics, check) = (run(env, &["metrics"]), env.run("check"));
    let dash = env.run("dash --once --view problems");
    for code in expected {
        let is_it = |it: &str| it.starts_with("jobboard_problems{") && it.contains(code);
        assert!(
            metrics.lines().any(|it| is_it(it) && it.ends_with(" 1")),
            "{metrics}"
        );
        check.shows(format!("{code} 1"));
        dash.shows(code);
    }
    assert_eq!(check.code, 1, "{check}");
    let listed = env.run("list -o jsonl --filter details.command!=none");
    assert_eq!(listed.succeeded().lines().count(), 1, "{listed}");
}

fn next(seed: &mut u64, most: usize) -> usize {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*seed >> 33).unwrap() % most
}

fn change_at_random(env: &Env, seed: &mut u64) {
    let name = ["backup", "report", "resize"][next(seed, 3)];
    let job = match next(seed, 4) {
        0 => env.load(name, &json!({"command": ["../x"]})),
        1 => env.run(format!("post {name} max_attempts:=1")).posted(),
        2 => env.run(["post", name, "--", "true"]).posted(),
        _ => env.post(name),
    };
    let fail = ["claim", &job, "--retry-delay", "1ms", "--retry-max", "1ms"];
    match next(seed, 8) {
        0 => env.claim(&job, &dead("night")),
        1 => env.claim(&job, "service"),
        2 => env.trash(&job),
        3 => drop(env.run(format!("claim {job} --expiry 1h"))),
        // Without its own retry limit, the job is delayed; with one, it may be trashed.
        4 | 5 => drop(env.run([&fail[..], &["--", "false"]].concat())),
        6 if env.board().exists() => {
            let ruin = "PRAGMA ignore_check_constraints = on;
                        UPDATE job SET details = 'nonsense' WHERE uuid = ?1";
            let (pragma, update) = ruin.split_once(';').unwrap();
            let database = env.database();
            database.execute_batch(pragma).unwrap();
            database.execute(update, [&job]).unwrap();
        }
        _ => {}
    }
}

fn diagnosed(env: &Env) -> Vec<Value> {
    let report = env.run("doctor --skip server --json").value();
    report["problems"].as_array().unwrap().clone()
}

/// Runs the command of each problem: it repairs all its jobs, or only reads and its text names the next step.
fn commands_work(env: &Env) {
    let key = |it: &Value| (it["code"].clone(), it["summary"].clone());
    for problem in diagnosed(env) {
        let fix = &problem["fix"];
        let words: Option<Vec<_>> = (fix["command"].as_array())
            .map(|words| words.iter().map(|word| word.as_str().unwrap()).collect());
        let is_repair = !fix["risk"].is_null();
        assert!(is_repair || fix["text"].is_string(), "{problem}");
        let Some(words) = words.filter(|words| words[0] == "jobboard") else {
            continue;
        };
        let consent: &[&str] = if is_repair { &["--yes"] } else { &[] };
        let run = env.run([&words[1..], consent].concat());
        assert!([0, 4, 7].contains(&run.code), "{problem}: {run}");
        let left = diagnosed(env).iter().any(|it| key(it) == key(&problem));
        assert_eq!(left, !is_repair, "{problem}: {run}");
    }
}

fn suggested_commands_work_on_random_boards(stage: &Stage) {
    for round in 0..3 {
        let mut seed = 11 + round;
        for _ in 0..25 {
            change_at_random(&stage.env, &mut seed);
        }
        if round == 1 {
            ruin_a_record(stage);
        }
        views_agree(&stage.env);
        commands_work(&stage.env);
    }
}

#[test]
fn views_agree_on_random_boards() {
    for seed in 1..=5 {
        let (env, mut seed) = (Env::new(), seed);
        for _ in 0..30 {
            change_at_random(&env, &mut seed);
        }
        if next(&mut seed, 2) == 0 {
            run(&env, &["pause", "report"]);
        }
        views_agree(&env);
    }
}

fn many_problems_take_three_commands(stage: &Stage) {
    let env = &stage.env;
    need!(screen = Pane::open(env, &[]));
    plant(stage);
    let night = stage.start(&["--handlers", "handlers", "--name", "night", "-j", "9"]);
    // It has read all jobs, and the commands of dead conductors have ended.
    wait_until("it skips jobs", || night.stderr().contains("skipped"));
    let doctor = ["doctor", "--skip", "server", "--color", "never"];
    let shown = env.jobboard(&doctor).at_terminal(100).run();
    for code in words(PLANTED) {
        assert!(shown.stdout.contains(code), "{code}: {shown}");
    }
    let rows = |line: &str| line.chars().count().div_ceil(100).max(1);
    assert!(
        shown.stdout.lines().map(rows).sum::<usize>() <= 40,
        "{shown}"
    );
    shown.shows("4 paused (report-* is paused by");
    shown.shows("exit 3: disk full");
    views_agree(env);
    // Problems that no command repairs.
    for name in ["cleanup", "migrate", "flow-0", "flow-1", "flow-2"] {
        handler(env, name, "true", 0o755);
    }
    fs::write(env.file("mended"), "").unwrap();

    screen.resize(200, 200);
    screen.line("jobboard doctor --fix --skip server");
    let mut at = 0;
    while !screen.has(r"(?m)^waiting as intended") {
        at += 1;
        wait_until("it asks, or is done", || {
            screen.has(&format!(
                r"(?m)^{at} of \d+\. [^\[]*\[y\].*\[q\]uit, then Enter *$"
            )) || screen.has("(?m)^waiting as intended")
        });
        // No conductor takes the spent job yet, so no canary would end.
        let is_spent = screen.has(&format!(r"(?m)^{at} of \d+\. retries-exhausted"));
        screen.line(if is_spent { "n" } else { "y" });
    }
    run(env, &["retry", "--problem", "retries-exhausted", "--yes"]);
    handler(env, "spent", "true", 0o755);
    let left = || {
        codes(env)
            .into_iter()
            .filter(|code| words(PLANTED).contains(&code.as_str()))
    };
    // The conductor reads its handlers again within ten seconds.
    let is_clear = comes_true(Duration::from_secs(60), || left().next().is_none());
    assert!(is_clear, "{:?}", left().collect::<Vec<_>>());
    fs::write(env.file("go"), "").unwrap();
    let left = || {
        env.names()
            .into_iter()
            .filter(|name| !name.starts_with("report-"))
    };
    let is_done = comes_true(Duration::from_secs(60), || left().next().is_none());
    assert!(
        is_done,
        "{:?}: {}",
        left().collect::<Vec<_>>(),
        night.stderr()
    );
    drop(night);
}
