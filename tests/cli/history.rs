//! The history of a board, as shown by each command.

mod corrupt;
mod watch;

use serde_json::{Value, json};

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{Outcome, Pane, column, members, wait_until, words},
};

on_every_board!(
    each_end_looks_the_same_everywhere,
    board_without_history_records_nothing,
    missing_job_does_not_prevent_waiting_for_others,
    unrecorded_ends_of_peers_are_mentioned,
);

on_one_board!(
    actor_and_reason_of_a_forced_action_are_recorded,
    earlier_action_is_not_taken_for_the_cause_of_the_end,
    conductors_write_history_that_filters_can_select,
    job_consumed_as_failed_counts_as_failed,
    final_failure_is_reported_the_same_by_every_runner,
);

fn run(stage: &Stage, words: &[&str]) -> Outcome {
    stage.env.run(words)
}

/// Returns the history, latest end first.
fn history(stage: &Stage, words: &[&str]) -> Vec<Value> {
    let list = [&["list", "--history", "--json"], words].concat();
    let listed = run(stage, &list).json();
    listed.as_array().unwrap().clone()
}

fn each_end_looks_the_same_everywhere(stage: &Stage) {
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
    stage
        .env
        .ok(format!("trash --force --yes {purged} --reason 'of no use'"));
    stage.env.ok(format!("purge --yes {purged}"));
    let listed = history(stage, &[]);
    let ends = [
        ("purged", &purged),
        ("failed", &failed),
        ("consumed", &done),
    ];
    assert_eq!(listed.len(), 3);
    for ((outcome, uuid), listed) in ends.into_iter().zip(&listed) {
        assert_eq!(listed["outcome"], outcome);
        assert_eq!(members(listed, "uuid state"), format!("{uuid} COMPLETE"));
        assert!(listed["ended_on"].is_string(), "{listed}");
        // `show` prints the same.
        assert_eq!(&stage.env.show(uuid), listed);
        let page = stage.env.run(format!("show {uuid} -o table"));
        page.prints(format!("outcome       {outcome}"));
        let waited = stage.env.run(format!("wait {uuid}"));
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
    let rows = stage.env.run("list --history");
    let columns: Vec<_> = rows
        .succeeded()
        .lines()
        .map(|row| row.split('\t').count())
        .collect();
    assert_eq!(columns, [8, 8, 8]);
}

fn actor_and_reason_of_a_forced_action_are_recorded(stage: &Stage) {
    let job = stage.env.post("resize");
    stage.env.claim(&job, "ada");
    let olga = ["--who", "olga", "--yes"];
    let free = [
        &["abandon", "--force", &job, "--reason", "ada is ill"],
        &olga[..],
    ]
    .concat();
    run(stage, &free).succeeded();
    let expect_audit = |action: &str, reason: Option<&str>| {
        let shown = stage.env.show(&job);
        assert_eq!(shown["by"], "olga", "{shown}");
        assert_eq!(shown["action"], action, "{shown}");
        assert!(shown["action_on"].is_string(), "{shown}");
        assert_eq!(shown["reason"], json!(reason), "{shown}");
    };
    expect_audit("abandoned", Some("ada is ill"));
    let trash = [&["trash", "--force", &job], &olga[..]].concat();
    run(stage, &trash).succeeded();
    expect_audit("trashed", None);
    let purge = [&["purge", &job, "--reason", "no such volume"], &olga[..]].concat();
    run(stage, &purge).succeeded();
    expect_audit("purged", Some("no such volume"));
}

fn earlier_action_is_not_taken_for_the_cause_of_the_end(stage: &Stage) {
    let job = stage.env.post("resize");
    stage.env.claim(&job, "ada");
    let free = format!("abandon --force {job} --reason 'ada is ill' --yes --who olga");
    stage.env.ok(free);
    stage.env.claim(&job, "ben");
    stage.env.ok(format!("consume {job} --who ben"));
    let listed = stage.env.run("list --history -o table");
    let listed = listed.succeeded();
    assert!(
        !listed.contains("olga") && !listed.contains("ada is ill"),
        "{listed}"
    );
    let shown = stage.env.run(format!("show {job} -o table"));
    let shown = shown.succeeded();
    let earlier = shown.lines().find(|line| line.starts_with("earlier"));
    assert!(earlier.unwrap().contains("olga, abandoned "), "{shown}");
    let freed = words("--event abandoned --event consumed --count 2 --json");
    let events = run(stage, &[&["watch", "--since", "1h"], &freed[..]].concat()).values();
    let by: Vec<_> = events.iter().map(|it| (&it["event"], &it["by"])).collect();
    let (abandoned, consumed) = (json!("abandoned"), json!("consumed"));
    assert_eq!(
        by,
        [(&abandoned, &json!("olga")), (&consumed, &Value::Null)]
    );
    let wrong = stage.env.run("list --history --filter outcome=bogus");
    wrong.fails(2, "consumed, failed, purged");
}

fn job_consumed_as_failed_counts_as_failed(stage: &Stage) {
    let posting = stage.env.jobboard(&["post", "resize", "--wait"]).spawn();
    wait_until("it is posted", || !stage.env.names().is_empty());
    stage.env.ok("claim --next --who ada");
    let failed = [
        "consume", "--state", "CLAIMED", "--failed", "--who", "ada", "--yes",
    ];
    let words = [&failed[..], &["--reason", "no such volume", "--json"]].concat();
    let report = &run(stage, &words).values()[0];
    assert_eq!(members(report, "done outcome"), "consumed failed");
    let posted = posting.ended();
    let why = "resize was removed and recorded as failed; last failure: no such volume";
    posted.exits(9, why);
    let uuid = posted.stdout.trim();
    stage.env.run(format!("wait {uuid}")).exits(9, why);
    let shown = stage.env.show(uuid);
    assert_eq!(members(&shown, "outcome by"), "failed ada");
    assert_eq!(shown["failures"][0]["reason"], "no such volume");
    let other = stage.env.post("other");
    let force = ["consume", &other, "--failed", "--force", "--yes"];
    run(stage, &force).succeeded();
    let waited = stage.env.run(format!("wait {other}"));
    waited.warns("last failure: marked as failed by hand");
    assert_eq!(history(stage, &["--filter", "outcome=failed"]).len(), 2);
}

fn final_failure_is_reported_the_same_by_every_runner(stage: &Stage) {
    let fail = ["--on-failure", "consume", "--", "sh", "-c", "exit 7"];
    run(stage, &[&["run", "one"], &fail[..]].concat()).failed(7);
    stage.env.post("two");
    run(stage, &[&["claim", "--next"], &fail[..]].concat()).failed(7);
    stage.env.ok("post three -- sh -c 'exit 7'");
    let conduct = words("conduct --drain --allow-any --on-failure consume");
    run(stage, &conduct);
    let listed = history(stage, &[]);
    assert_eq!(listed.len(), 3);
    for job in listed {
        let waited = run(stage, &["wait", job["uuid"].as_str().unwrap()]);
        let why = "was removed and recorded as failed; last failure: exit 7";
        waited.exits(9, why);
    }
}

fn missing_job_does_not_prevent_waiting_for_others(stage: &Stage) {
    let gone = "00000000-0000-4000-8000-000000000001";
    let (job, trashed) = (stage.env.post("resize"), stage.env.post("trashed"));
    let waiting = stage.env.jobboard(&["wait", gone, "@99", &job]).spawn();
    stage.env.claim(&job, "ada");
    stage.env.ok(format!("consume {job} --who ada"));
    let waited = waiting.ended();
    assert_eq!(waited.code, 3, "{waited:?}");
    assert_eq!(waited.stdout, format!("{job}\tresize\tcomplete\n"));
    for shown in [
        "cannot wait for @99; waiting for the other jobs",
        "the job does not exist",
        "the job is unknown",
    ] {
        assert!(waited.stderr.contains(shown), "{shown}: {waited:?}");
    }
    let has_peers = waited.stderr.contains("a Python service ended it");
    assert_eq!(has_peers, stage.is_network(), "{waited:?}");
    stage.env.ok(format!("trash --force --yes {trashed}"));
    let waited = stage.env.run(format!("wait {gone} {trashed}"));
    waited.exits(9, "trashed ended in the trash");
    waited.warns("the job is unknown");
}

fn unrecorded_ends_of_peers_are_mentioned(stage: &Stage) {
    const UNSEEN: &str = "jobs that Python services end on this board are not in the history";
    let job = stage.env.post("resize");
    stage.env.ok(format!("consume --force --yes {job}"));
    let says = |shown: Outcome| shown.stderr.contains(UNSEEN);
    assert_eq!(says(stage.env.run("show @99")), stage.is_network());
    // A pipe gets no such note.
    for words in [&["list", "--history"][..], &["show", &job]] {
        assert!(!says(run(stage, words)));
    }
    need!(pane = Pane::open(&stage.env, &[]));
    pane.line(&format!("jobboard list --history; jobboard show {job}"));
    match stage.is_network() {
        true => pane.shows(&format!("(?s){UNSEEN}.*{UNSEEN}")),
        false => pane.shows("outcome +consumed"),
    };
    let has_warned = !pane.shows("(?s)^(.*)$").contains(UNSEEN);
    assert_eq!(has_warned, !stage.is_network());
}

fn conductors_write_history_that_filters_can_select(stage: &Stage) {
    for (name, script) in [("good", "true"), ("bad", "exit 4")] {
        run(stage, &["post", name, "--", "sh", "-c", script]).succeeded();
    }
    let words = words("conduct --drain --allow-any --on-failure consume -j2");
    run(stage, &words);
    let names = |filter: &str| column(&history(stage, &["--filter", filter]), "name");
    assert_eq!(names("outcome=failed"), ["bad"]);
    assert_eq!(names("exit_code=0"), ["good"]);
    assert_eq!(
        names("exit_code=4 and ended<1h and took<1h and waited<1h"),
        ["bad"]
    );
    assert_eq!(names("ended>1h"), [""; 0]);
    assert_eq!(stage.env.run("list --history --count").succeeded(), "2\n");
}

fn board_without_history_records_nothing(stage: &Stage) {
    let url = stage.url();
    let remember = |history: &str| {
        let board = format!("default = \"b\"\n[board.b]\nurl = {url}\n{history}");
        stage.env.configure(&board);
    };
    let job = stage.env.post("resize");
    remember("history = 0");
    stage.env.ok(format!("consume --force --yes {job}"));
    remember("");
    assert_eq!(history(stage, &[]), [Value::Null; 0]);
    stage.env.fails(3, format!("wait {job}"));
    let waited = stage.env.json(format!("wait {job} --gone-ok --json"));
    assert_eq!(members(&waited, "uuid done"), format!("{job} complete"));
}
