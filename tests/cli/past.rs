//! What a board remembers of the jobs that left it, as each command tells it.

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board},
    support::{
        env::{Outcome, wait_until},
        tmux::Pane,
    },
};

on_every_board!(
    each_end_is_told_alike_wherever_it_is_asked_for,
    who_overrides_is_known_and_why,
    what_was_done_long_before_the_end_is_not_taken_for_its_cause,
    a_job_that_is_posted_and_waited_for_tells_how_it_ended,
    conductors_leave_a_past_that_filters_choose_from,
    a_board_without_history_remembers_nothing,
    watching_may_begin_with_what_happened_before,
    what_is_consumed_as_failed_is_told_as_such,
    what_is_given_up_is_told_alike_whoever_performed_it,
    what_is_not_there_keeps_no_other_from_being_waited_for,
    where_others_end_jobs_that_is_said_to_whoever_looks_back,
);

/// Runs a command on the stage's board.
fn run(stage: &Stage, words: &[&str]) -> Outcome {
    stage.env.jobboard(words).run()
}

/// Returns the past, the latest end first.
fn past(stage: &Stage, words: &[&str]) -> Vec<Value> {
    let list = [&["list", "--past", "--json"], words].concat();
    let listed = run(stage, &list).json();
    listed.as_array().unwrap().clone()
}

fn each_end_is_told_alike_wherever_it_is_asked_for(stage: &Stage) {
    let (done, failed, purged) = (
        stage.env.post("done"),
        stage.env.post("failed"),
        stage.env.post("purged"),
    );
    let command = |job: &str, words: &[&str], script: &str| {
        let claim = [&["claim", job], words, &["--", "sh", "-c", script]].concat();
        run(stage, &claim)
    };
    command(&done, &[], "true").succeeded();
    command(&failed, &["--on-failure", "consume"], "exit 3").failed(3);
    let trash = [
        "trash",
        "--force",
        "--yes",
        &purged,
        "--reason",
        "of no use",
    ];
    run(stage, &trash).succeeded();
    run(stage, &["purge", "--yes", &purged]).succeeded();
    let listed = past(stage, &[]);
    let ends = [
        ("purged", &purged),
        ("failed", &failed),
        ("consumed", &done),
    ];
    assert_eq!(listed.len(), 3);
    for ((outcome, uuid), listed) in ends.into_iter().zip(&listed) {
        assert_eq!(listed["outcome"], outcome);
        assert_eq!(
            (&listed["uuid"], &listed["state"]),
            (&json!(uuid), &json!("COMPLETE"))
        );
        assert!(listed["ended_on"].is_string(), "{listed}");
        // By itself it is told as it is listed.
        assert_eq!(&stage.env.show(uuid), listed);
        let told = run(stage, &["show", uuid, "-o", "table"]);
        let told = told.succeeded();
        assert!(told.contains(&format!("outcome       {outcome}")), "{told}");
        let waited = run(stage, &["wait", uuid]);
        assert_eq!(waited.code, if outcome == "consumed" { 0 } else { 9 });
    }
    assert_eq!(listed[0]["reason"], "of no use");
    assert_eq!(listed[1]["exit_code"], 3);
    assert_eq!(listed[1]["last_failure"]["exit_code"], 3);
    assert_eq!(listed[2]["exit_code"], 0);
    for listed in &listed[1..] {
        assert!(listed["waited"].as_f64() >= Some(0.0), "{listed}");
        assert!(listed["took"].as_f64() >= Some(0.0), "{listed}");
        assert_eq!(listed["attempts"], 1);
    }
    let rows = run(stage, &["list", "--past"]);
    let columns: Vec<_> = rows
        .succeeded()
        .lines()
        .map(|row| row.split('\t').count())
        .collect();
    assert_eq!(columns, [9, 9, 9]);
}

fn who_overrides_is_known_and_why(stage: &Stage) {
    let job = stage.env.post("resize");
    stage.env.claim(&job, "ada");
    let olga = ["--who", "olga", "--yes"];
    let free = [
        &["abandon", "--force", &job, "--reason", "ada is ill"],
        &olga[..],
    ]
    .concat();
    run(stage, &free).succeeded();
    let told = |action: &str, reason: Option<&str>| {
        let shown = stage.env.show(&job);
        assert_eq!(shown["by"], "olga", "{shown}");
        assert_eq!(shown["action"], action, "{shown}");
        assert!(shown["action_on"].is_string(), "{shown}");
        assert_eq!(shown["reason"], json!(reason), "{shown}");
    };
    told("abandoned", Some("ada is ill"));
    let trash = [&["trash", "--force", &job], &olga[..]].concat();
    run(stage, &trash).succeeded();
    told("trashed", None);
    let purge = [&["purge", &job, "--reason", "no such volume"], &olga[..]].concat();
    run(stage, &purge).succeeded();
    told("purged", Some("no such volume"));
}

fn what_was_done_long_before_the_end_is_not_taken_for_its_cause(stage: &Stage) {
    let job = stage.env.post("resize");
    stage.env.claim(&job, "ada");
    let free = [
        "abandon",
        "--force",
        &job,
        "--reason",
        "ada is ill",
        "--yes",
    ];
    run(stage, &[&free[..], &["--who", "olga"]].concat()).succeeded();
    stage.env.claim(&job, "ben");
    run(stage, &["consume", &job, "--who", "ben"]).succeeded();
    let listed = run(stage, &["list", "--past", "-o", "table"]);
    let listed = listed.succeeded();
    assert!(listed.contains("abandoned: ada is ill"), "{listed}");
    let shown = run(stage, &["show", &job, "-o", "table"]);
    let shown = shown.succeeded();
    assert!(shown.contains("olga, abandoned "), "{shown}");
    let freed = [
        "--event",
        "abandoned",
        "--event",
        "consumed",
        "--count",
        "2",
        "--json",
    ];
    let events = run(stage, &[&["watch", "--since", "1h"], &freed[..]].concat()).values();
    let by: Vec<_> = events.iter().map(|it| (&it["event"], &it["by"])).collect();
    let (abandoned, consumed) = (json!("abandoned"), json!("consumed"));
    assert_eq!(
        by,
        [(&abandoned, &json!("olga")), (&consumed, &Value::Null)]
    );
    let wrong = run(stage, &["list", "--past", "--filter", "outcome=bogus"]);
    assert!(wrong.failed(2).contains("one of consumed, failed, purged"));
}

fn a_job_that_is_posted_and_waited_for_tells_how_it_ended(stage: &Stage) {
    let posting = stage.env.jobboard(&["post", "resize", "--wait"]).spawn();
    wait_until("it is posted", || !stage.env.names().is_empty());
    let claim = [
        "claim",
        "--next",
        "--on-failure",
        "consume",
        "--",
        "sh",
        "-c",
        "exit 7",
    ];
    run(stage, &claim).failed(7);
    let posted = posting.ended();
    assert_eq!(posted.code, 9, "{posted:?}");
    let why =
        "resize was consumed although it failed; the last failure: the command ended with code 7";
    assert!(posted.stderr.contains(why), "{}", posted.stderr);
}

fn what_is_consumed_as_failed_is_told_as_such(stage: &Stage) {
    let posting = stage.env.jobboard(&["post", "resize", "--wait"]).spawn();
    wait_until("it is posted", || !stage.env.names().is_empty());
    run(stage, &["claim", "--next", "--who", "ada"]).succeeded();
    let failed = [
        "consume", "--state", "CLAIMED", "--failed", "--who", "ada", "--yes",
    ];
    let told = [&failed[..], &["--reason", "no such volume", "--json"]].concat();
    let told = &run(stage, &told).values()[0];
    assert_eq!(
        (&told["done"], &told["outcome"]),
        (&json!("consumed"), &json!("failed"))
    );
    let posted = posting.ended();
    let why = "resize was consumed although it failed; the last failure: no such volume";
    assert!(
        posted.code == 9 && posted.stderr.contains(why),
        "{posted:?}"
    );
    let uuid = posted.stdout.trim();
    let waited = run(stage, &["wait", uuid]);
    assert!(
        waited.code == 9 && waited.stderr.contains(why),
        "{waited:?}"
    );
    let shown = stage.env.show(uuid);
    assert_eq!(
        (&shown["outcome"], &shown["by"]),
        (&json!("failed"), &json!("ada"))
    );
    assert_eq!(shown["failures"][0]["reason"], "no such volume");
    let other = stage.env.post("other");
    let force = ["consume", &other, "--failed", "--force", "--yes"];
    run(stage, &force).succeeded();
    let waited = run(stage, &["wait", &other]);
    assert!(waited.stderr.contains("the last failure: somebody said so"));
    assert_eq!(past(stage, &["--filter", "outcome=failed"]).len(), 2);
}

fn what_is_given_up_is_told_alike_whoever_performed_it(stage: &Stage) {
    let fail = ["--on-failure", "consume", "--", "sh", "-c", "exit 7"];
    run(stage, &[&["run", "one"], &fail[..]].concat()).failed(7);
    stage.env.post("two");
    run(stage, &[&["claim", "--next"], &fail[..]].concat()).failed(7);
    run(stage, &["post", "three", "--", "sh", "-c", "exit 7"]).succeeded();
    let conduct = [
        "conduct",
        "--drain",
        "--allow-any",
        "--on-failure",
        "consume",
    ];
    run(stage, &conduct);
    let listed = past(stage, &[]);
    assert_eq!(listed.len(), 3);
    for job in listed {
        let waited = run(stage, &["wait", job["uuid"].as_str().unwrap()]);
        let why =
            "was consumed although it failed; the last failure: the command ended with code 7";
        assert!(
            waited.code == 9 && waited.stderr.contains(why),
            "{waited:?}"
        );
    }
}

fn what_is_not_there_keeps_no_other_from_being_waited_for(stage: &Stage) {
    let gone = "00000000-0000-4000-8000-000000000001";
    let (job, trashed) = (stage.env.post("resize"), stage.env.post("trashed"));
    let waiting = stage.env.jobboard(&["wait", gone, "@99", &job]).spawn();
    stage.env.claim(&job, "ada");
    run(stage, &["consume", &job, "--who", "ada"]).succeeded();
    let waited = waiting.ended();
    assert_eq!(waited.code, 3, "{waited:?}");
    assert_eq!(waited.stdout, format!("{job}\tresize\tcomplete\n"));
    for told in [
        "@99 cannot be waited for; the others are",
        "there is no such job",
        "nothing is known of it",
    ] {
        assert!(waited.stderr.contains(told), "{told}: {waited:?}");
    }
    let has_peers = waited.stderr.contains("a Python service ended it");
    assert_eq!(has_peers, stage.is_network(), "{waited:?}");
    run(stage, &["trash", "--force", "--yes", &trashed]).succeeded();
    let waited = run(stage, &["wait", gone, &trashed]);
    assert_eq!(waited.code, 9, "{waited:?}");
    assert!(
        waited.stderr.contains("trashed ended in the trash"),
        "{waited:?}"
    );
    assert!(
        waited.stderr.contains("nothing is known of it"),
        "{waited:?}"
    );
}

fn where_others_end_jobs_that_is_said_to_whoever_looks_back(stage: &Stage) {
    const UNSEEN: &str = "what Python services end on this board is not remembered";
    let job = stage.env.post("resize");
    run(stage, &["consume", "--force", "--yes", &job]).succeeded();
    let says = |told: Outcome| told.stderr.contains(UNSEEN);
    assert_eq!(says(run(stage, &["show", "@99"])), stage.is_network());
    // In a pipe it would be noise.
    for words in [&["list", "--past"][..], &["show", &job]] {
        assert!(!says(run(stage, words)));
    }
    let Some(pane) = Pane::open(&stage.env, &[]) else {
        return;
    };
    pane.line(&format!("jobboard list --past; jobboard show {job}"));
    match stage.is_network() {
        true => pane.shows(&format!("(?s){UNSEEN}.*{UNSEEN}")),
        false => pane.shows("outcome +consumed"),
    };
    let has_said = !pane.shows("(?s)^(.*)$").contains(UNSEEN);
    assert_eq!(has_said, !stage.is_network());
}

fn conductors_leave_a_past_that_filters_choose_from(stage: &Stage) {
    for (name, script) in [("good", "true"), ("bad", "exit 4")] {
        run(stage, &["post", name, "--", "sh", "-c", script]).succeeded();
    }
    let words = [
        "conduct",
        "--drain",
        "--allow-any",
        "--on-failure",
        "consume",
        "-j2",
    ];
    run(stage, &words);
    let names = |filter: &str| {
        let past = past(stage, &["--filter", filter]);
        past.iter()
            .map(|job| job["name"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names("outcome=failed"), ["bad"]);
    assert_eq!(names("exit_code=0"), ["good"]);
    assert_eq!(
        names("exit_code=4 and ended<1h and took<1h and waited<1h"),
        ["bad"]
    );
    assert_eq!(names("ended>1h"), [""; 0]);
    let count = run(stage, &["list", "--past", "--count"]);
    assert_eq!(count.succeeded(), "2\n");
}

fn a_board_without_history_remembers_nothing(stage: &Stage) {
    let config = run(stage, &["config", "--json"]).json();
    let url = config
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["key"] == "url")
        .unwrap();
    let remember = |history: &str| {
        let board = format!(
            "default = \"b\"\n[board.b]\nurl = {}\n{history}",
            url["value"]
        );
        stage.env.configure(&board);
    };
    let job = stage.env.post("resize");
    remember("history = 0");
    run(stage, &["consume", "--force", "--yes", &job]).succeeded();
    remember("");
    assert_eq!(past(stage, &[]), [Value::Null; 0]);
    run(stage, &["wait", &job]).failed(3);
    let waited = run(stage, &["wait", &job, "--gone-ok", "--json"]).json();
    assert_eq!(
        (&waited["uuid"], &waited["done"]),
        (&json!(job), &json!("complete"))
    );
}

#[test]
fn what_is_spoilt_of_the_past_stands_in_its_own_columns() {
    let Some(stage) = Stage::redis() else {
        return;
    };
    stage.env.post("resize");
    let server = stage.redis_server().unwrap();
    server.run(&["EVAL", SPOIL_THE_PAST, "0"]);
    let listed = run(&stage, &["list", "--past"]);
    let columns: Vec<_> = listed.succeeded().trim_end().split('\t').collect();
    assert_eq!(columns.len(), 9, "{columns:?}");
    assert_eq!((columns[1], columns[2]), ("", "MALFORMED"));
    assert!(columns[8].contains("cannot be read"), "{columns:?}");
}

#[test]
fn a_past_that_cannot_be_read_hides_no_job() {
    let Some(stage) = Stage::redis() else {
        return;
    };
    let job = stage.env.post("resize");
    let server = stage.redis_server().unwrap();
    let taken = server.run(&["EVAL", TAKE_THE_PAST, "0"]);
    assert_eq!(taken.trim(), "1");
    let gone = "00000000-0000-4000-8000-000000000001";
    let shown = run(&stage, &["show", &job, gone]);
    assert_eq!(shown.code, 7, "{shown:?}");
    assert!(shown.stdout.contains("resize"), "{shown:?}");
    run(&stage, &["show", gone]).failed(3);
    run(&stage, &["wait", gone, "--gone-ok"]).succeeded();
    assert_ne!(run(&stage, &["list", "--past"]).code, 0);
    let ping = run(&stage, &["ping", "--json"]);
    let problem = "has something else under taskflow:past";
    assert!(ping.stderr.contains(problem), "{ping:?}");
    let told = ping.json()["past_problem"].clone();
    assert!(told.as_str().unwrap().contains(problem), "{told}");
    // The job is done all the same, and it is said that nothing is remembered of it.
    let consumed = run(&stage, &["consume", "--force", "--yes", &job]);
    consumed.succeeded();
    let warning = "warning: what ends here is not remembered: WRONGTYPE";
    assert!(consumed.stderr.contains(warning), "{consumed:?}");
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    let said_once = |told: Outcome| {
        told.succeeded();
        assert_eq!(told.stderr.matches(warning).count(), 1, "{told:?}");
    };
    said_once(run(&stage, &["run", "one", "--", "true"]));
    for name in ["two", "three", "four"] {
        stage.env.post(name);
    }
    said_once(run(&stage, &["claim", "--next", "--", "true"]));
    run(&stage, &["trash", "--force", "--yes", "--name", "*"]).succeeded();
    said_once(run(&stage, &["purge", "--yes", "--all"]));
}

/// Has the only board remember what nobody can read.
const SPOIL_THE_PAST: &str = "local listings = redis.call('KEYS', '*listings'); \
    redis.call('XADD', (listings[1]:gsub('listings$', 'past')), '5-1', 'job', 'x')";

/// Puts something else where the past of the only board is kept.
const TAKE_THE_PAST: &str = "local listings = redis.call('KEYS', '*listings'); \
    redis.call('SET', (listings[1]:gsub('listings$', 'past')), 'x'); return #listings";

fn watching_may_begin_with_what_happened_before(stage: &Stage) {
    let done = stage.env.post("done");
    let failed = stage.env.post("failed");
    let purged = stage.env.post("purged");
    run(stage, &["claim", &done, "--", "true"]).succeeded();
    let words = ["--on-failure", "consume", "--", "false"];
    run(stage, &[&["claim", failed.as_str()], &words[..]].concat()).failed(1);
    run(stage, &["trash", "--force", "--yes", &purged]).succeeded();
    run(stage, &["purge", "--yes", &purged, "--reason", "too old"]).succeeded();
    stage.env.post("waiting");
    let watch = ["watch", "--since", "1h", "--json"];
    let watching = stage.env.jobboard(&watch).spawn();
    let told = |lines: Vec<String>| -> Vec<Value> {
        let lines = lines.iter();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let before = told(watching.prints(9));
    let of = |name: &str| -> Vec<(&str, &Value)> {
        let of_it = before.iter().filter(|event| event["name"] == name);
        of_it
            .map(|event| (event["event"].as_str().unwrap(), &event["outcome"]))
            .collect()
    };
    let none = &Value::Null;
    let (consumed, given_up, gone) = (&json!("consumed"), &json!("failed"), &json!("purged"));
    let course = |end| vec![("posted", none), ("claimed", none), end];
    assert_eq!(of("done"), course(("consumed", consumed)));
    assert_eq!(of("failed"), course(("consumed", given_up)));
    assert_eq!(of("purged"), [("posted", none), ("purged", gone)]);
    assert_eq!(of("waiting"), [("posted", none)]);
    let times: Vec<_> = before.iter().map(|event| event["time"].as_str()).collect();
    assert!(times.is_sorted(), "{times:?}");
    let purge = before.iter().find(|event| event["event"] == "purged");
    assert_eq!(purge.unwrap()["reason"], "too old");
    // What happens from now on is told once, and as it happens.
    stage.env.post("later");
    let live = &told(watching.prints(10))[9];
    assert_eq!(
        (&live["event"], &live["name"]),
        (&json!("posted"), &json!("later"))
    );
    // Who wants only some of it gets only that.
    let words = [
        "--filter",
        "outcome=failed",
        "--event",
        "consumed",
        "--count",
        "1",
    ];
    let only = run(stage, &[&watch[..], &words[..]].concat());
    assert_eq!(only.json()["name"], "failed");
}
