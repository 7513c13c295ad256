//! `jobboard dump` and `jobboard load`: jobs move between boards of all kinds.

pub(crate) mod boards;
mod broken;
pub(crate) mod hostile;
mod lines;

use serde_json::{Value, json};

use self::boards::{Boards, KINDS, records};
use crate::support::{Host, Peer, Server, ZooKeeper, column};

/// Members of claims and moves, which are not copied between boards.
pub(crate) const OF_THE_BOARD: [&str; 8] = [
    "state",
    "owner",
    "lease",
    "claimed_on",
    "fence",
    "last_modified",
    "expires_in",
    "waited",
];

/// Members that differ between boards of two kinds.
pub(crate) const OF_THE_KIND: [&str; 4] = ["key", "raw", "size", "sequence"];

/// Fills a board with jobs that differ in every respect.
pub(crate) fn fill(boards: &Boards, board: &str) {
    let run = |words: &[&str]| boards.run(board, words);
    let details = json!({
        "text": "héllo ☃", "none": null, "deep": [{"a": [1, -2, 3.5]}], "exact": 95.590_019_048_695_07,
        "large": u64::MAX, "small": i64::MIN, "long": "x".repeat(3000),
    });
    let details = details.to_string();
    let rich = ["post", "rich", "--priority", "VERY_HIGH"];
    run(&[&rich[..], &["--details", &details]].concat()).succeeded();
    run(&["post", "low", "--priority", "LOW"]).succeeded();
    let book = "bóok:00000000-0000-4000-8000-000000000001";
    run(&["post", "with-book", "--book", book, "--unique", "once"]).succeeded();
    let failed = run(&["post", "failed"]).posted();
    let claim = ["claim", &failed, "--retry-delay", "1h"];
    run(&[&claim[..], &["--", "sh", "-c", "exit 3"]].concat()).failed(3);
    let claimed = run(&["post", "claimed"]).posted();
    run(&["claim", &claimed, "--who", "ada"]).succeeded();
    for name in ["thrown", "thrown-too"] {
        let job = run(&["post", name, "n:=1"]).posted();
        run(&["trash", &job, "--force", "--yes", "--reason", "no use"]).succeeded();
    }
    run(&["post", "last"]).succeeded();
}

/// Requires that two dumps have the same records, except for these members.
#[track_caller]
pub(crate) fn are_alike(one: &[Value], other: &[Value], but: &[&str]) {
    assert_eq!(column(one, "name"), column(other, "name"));
    for (one, other) in one.iter().zip(other) {
        for (member, value) in one.as_object().unwrap() {
            let is_free = but.contains(&member.as_str());
            assert!(
                is_free || other[member] == *value,
                "{member}: {one}\n{other}"
            );
        }
    }
}

#[test]
fn dump_and_load_preserve_jobs_between_all_boards() {
    let boards = Boards::new();
    for from in boards.kinds() {
        fill(&boards, &format!("{from}-from"));
        boards
            .run(&format!("{from}-from"), &["dump", "it"])
            .succeeded();
        let before = records(&boards.env, "it");
        assert_eq!(before.len(), 8, "{before:?}");
        for to in boards.kinds() {
            let board = boards.another(to);
            let loaded = boards.run(&board, &["load", "it"]);
            loaded.exits(0, "posted: 6, to the trash: 2, already there: 0");
            let after = boards.dumped(&board);
            let kinds = &OF_THE_KIND[..];
            let but = match from == to {
                // The servers number the nodes.
                true if to == "zookeeper" => &["key", "sequence"][..],
                true => &[],
                false => kinds,
            };
            are_alike(&before, &after, &[&OF_THE_BOARD[..], but].concat());
            let failed = boards
                .run(
                    &board,
                    &["show", before[3]["uuid"].as_str().unwrap(), "--json"],
                )
                .json();
            assert_eq!(failed["attempts"], 1);
            assert_eq!(failed["failures"][0]["exit_code"], 3);
            let again = boards.run(&board, &["load", "it", "-o", "jsonl"]);
            assert_eq!(again.each("done"), ["exists"; 8]);
            assert_eq!(boards.dumped(&board), after);
            // And back to a board of the first kind.
            let back = boards.another(from);
            boards.ok(&board, "dump back");
            boards.ok(&back, "load back");
            are_alike(
                &before,
                &boards.dumped(&back),
                &[&OF_THE_BOARD[..], &OF_THE_KIND].concat(),
            );
        }
    }
}

#[test]
fn loaded_jobs_can_be_performed_and_restored() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let from = boards.another(KINDS[0]);
        fill(&boards, &from);
        boards.ok(&from, "dump it");
        let board = boards.another(kind);
        boards.ok(&board, "load it");
        // The copies are unclaimed, and failed jobs are still delayed.
        for name in ["rich", "with-book", "claimed", "last", "low"] {
            let next = ["claim", "--next", "--", "sh", "-c", "echo $JOBBOARD_NAME"];
            assert_eq!(boards.run(&board, &next).succeeded(), format!("{name}\n"));
        }
        assert_eq!(boards.run(&board, &["claim", "--next"]).code, 6);
        boards.ok(&board, "restore --name thrown* --yes");
        let new = boards.run(&board, &["post", "new"]).posted();
        let names = boards
            .run(&board, &["list", "-o", "jsonl", "--sort", "sequence"])
            .values();
        let last = names.last().unwrap();
        assert_eq!(
            (&last["name"], names.len()),
            (&json!("new"), 4),
            "{new}: {names:?}"
        );
        let numbers: Vec<_> = names.iter().map(|it| it["sequence"].to_string()).collect();
        let mut distinct = numbers.clone();
        distinct.dedup();
        assert_eq!(numbers, distinct);
    }
}

/// Requires that TaskFlow lists and finishes loaded jobs, and that a later post gets its place.
fn taskflow_reads_loaded_jobs_from<H: Host>(server: Option<H>) {
    let boards = Boards::new();
    need!(server = server);
    need!(mut peer = Peer::on(&server));
    for kind in boards.kinds() {
        let from = boards.another(kind);
        fill(&boards, &from);
        boards.ok(&from, "dump it");
        let board = server.board();
        boards.ok(&board, "load it");
        let before = records(&boards.env, "it");
        let listed = peer.request(&json!({"do": "list"}));
        let listed = listed.as_array().unwrap();
        assert_eq!(listed.len(), 6, "{listed:?}");
        for job in &before[..6] {
            let found = listed.iter().find(|it| it["uuid"] == job["uuid"]).unwrap();
            for member in ["name", "priority", "details"] {
                assert_eq!(found[member], job[member], "{found}");
            }
        }
        let posted = peer.request(&json!({"do": "post", "name": "peers"}));
        for job in before[..6].iter().map(|job| &job["uuid"]).chain([&posted]) {
            peer.request(&json!({"do": "claim", "uuid": job, "who": "py"}));
            peer.request(&json!({"do": "consume", "uuid": job, "who": "py"}));
        }
        boards.ok(&board, "purge --name * --yes");
        assert_eq!(boards.run(&board, &["list", "--count"]).succeeded(), "0\n");
    }
}

#[test]
fn taskflow_on_redis_reads_loaded_jobs() {
    taskflow_reads_loaded_jobs_from(<Server as Host>::start());
}

#[test]
fn taskflow_on_zookeeper_reads_loaded_jobs() {
    taskflow_reads_loaded_jobs_from(<ZooKeeper as Host>::start());
}

#[test]
fn fresh_load_resets_attempts() {
    let boards = Boards::new();
    let (from, to) = (boards.another("embedded"), boards.another("embedded"));
    fill(&boards, &from);
    boards.ok(&from, "dump it");
    boards.ok(&to, "load it --fresh --filter attempts>0");
    let jobs = boards.run(&to, &["list", "--json"]).json();
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    let job = &jobs[0];
    let facts = (&job["name"], &job["attempts"], &job["not_before"]);
    assert_eq!(facts, (&json!("failed"), &json!(0), &Value::Null));
    assert_eq!(job["failures"][0]["exit_code"], 3);
}

#[test]
fn repeated_load_skips_jobs_that_ended_meanwhile() {
    let boards = Boards::new();
    let (from, to) = (boards.another("embedded"), boards.another("embedded"));
    for name in ["done", "purged", "waiting"] {
        boards.ok(&from, format!("post {name}"));
    }
    boards.ok(&from, "dump it");
    boards.ok(&to, "load it");
    boards.ok(&to, "consume --name done --force --yes");
    boards.ok(&to, "trash --name purged --force --yes");
    boards.ok(&to, "purge --name purged --yes");
    let again = boards.run(&to, &["load", "it"]);
    again.succeeded();
    again.warns("1 job already ended on this board; skipped (--again loads them)");
    again.warns("posted: 1, to the trash: 0, already there: 1");
    boards.ok(&to, "load it --again");
    assert_eq!(boards.dumped(&to).len(), 3);
}

#[test]
fn written_file_is_named_as_given() {
    let boards = Boards::new();
    let board = boards.another("embedded");
    for _ in 0..2 {
        let dump = boards.run(&board, &["dump", "it", "--json"]);
        assert_eq!(dump.json()["file"], "it");
    }
}

#[test]
fn jobs_with_details_too_large_to_read_keep_their_bytes() {
    let boards = Boards::new();
    let kinds = boards.kinds();
    let sources: Vec<_> = kinds.iter().map(|kind| boards.another(kind)).collect();
    let details = json!({ "long": "x".repeat(5000) }).to_string();
    for board in &sources {
        boards
            .run(board, &["post", "large", "--details", &details])
            .succeeded();
    }
    boards.env.configure("max_details = \"2KiB\"\n");
    for (kind, from) in kinds.into_iter().zip(&sources) {
        let [loaded, copied, moved] = [(); 3].map(|()| boards.another(kind));
        let before = boards.dumped(from);
        boards.ok(from, "dump it");
        for done in ["posted", "exists"] {
            let run = boards.run(&loaded, &["load", "it", "-o", "jsonl"]);
            assert_eq!(run.each("done"), [done], "{kind}");
        }
        let [copied_url, moved_url] = [&copied, &moved].map(|it| boards.url(it));
        for _ in 0..2 {
            let copy = ["copy", "--to", &copied_url];
            boards.run(from, &copy).succeeded();
        }
        for to in [&loaded, &copied] {
            are_alike(&before, &boards.dumped(to), &OF_THE_BOARD);
            assert_eq!(column(&before, "raw"), column(&boards.dumped(to), "raw"));
        }
        for last in ["--dry-run", "--yes"] {
            let run = boards.run(from, &["copy", "--move", "--to", &moved_url, last]);
            run.exits(7, "more than max_details (2048)");
        }
    }
}

#[test]
fn longer_history_in_a_dump_is_cut_to_what_boards_keep() {
    let boards = Boards::new();
    let long = "x".repeat(100_000);
    let failure = |number: usize| {
        json!({
            "exit_code": number, "signal": null, "reason": long, "stderr": long, "stdout": long,
            "conductor": long, "time": "2026-01-01T00:00:00Z",
        })
    };
    let line = json!({
        "uuid": "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b", "name": "a", "attempts": 5,
        "failures": (1..=5).map(failure).collect::<Vec<_>>(), "by": long, "action": "retried", "reason": long,
    });
    for kind in boards.kinds() {
        let board = boards.another(kind);
        let load = boards.on(&board, &["load", "-"]).stdin(line.to_string());
        load.run().succeeded();
        let [job] = boards.dumped(&board).try_into().unwrap();
        assert_eq!(job["problem"], Value::Null, "{kind}");
        let codes: Vec<_> = (job["failures"].as_array().unwrap().iter())
            .map(|it| it["exit_code"].as_u64().unwrap())
            .collect();
        assert_eq!(codes, [3, 4, 5], "{kind}");
        boards.ok(&board, "claim --next");
    }
}

#[test]
fn uuid_on_the_board_and_in_the_trash_means_two_jobs() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    for kind in boards.kinds() {
        let [from, loaded, copied] = [(); 3].map(|()| boards.another(kind));
        boards.ok(&from, format!("post old --uuid {uuid}"));
        boards.ok(&from, format!("trash {uuid} --force --yes"));
        boards.ok(&from, format!("post new --uuid {uuid}"));
        boards.ok(&from, "dump it");
        let again = boards.run(&from, &["load", "it", "-o", "jsonl"]);
        again.succeeded();
        assert_eq!(again.each("done"), ["exists"; 2], "{kind}");
        let to = boards.url(&copied);
        for (run, owner) in [
            (boards.run(&loaded, &["load", "it"]), "board"),
            (boards.run(&from, &["copy", "--to", &to]), "target"),
        ] {
            assert_eq!(run.code, 7, "{run}");
            run.warns(format!(
                "the {owner} has a different live job with this uuid; the trashed job is skipped"
            ));
            run.warns("failed for 1 of 2 jobs");
            assert!(!run.stderr.contains("missing"), "{run}");
        }
        for board in [&loaded, &copied] {
            assert_eq!(column(&boards.dumped(board), "name"), ["new"], "{kind}");
        }
    }
}

#[test]
fn each_batch_reads_only_the_new_ends_of_the_history() {
    need!(boards = Boards::with_redis());
    let (from, to) = (boards.another("redis"), boards.another("redis"));
    boards.post_many(&to, 4000);
    boards.ok(&to, "dump ended");
    boards.ok(&to, "consume --name job-* --force --yes");
    boards.post_many(&from, 4000);
    boards.ok(&from, "dump it");
    let pages = || {
        let stats = boards.redis().run(&["INFO", "commandstats"]);
        let line = stats
            .lines()
            .find_map(|it| it.strip_prefix("cmdstat_xrevrange:calls="));
        let calls = line.and_then(|it| it.split(',').next()?.parse::<u32>().ok());
        calls.unwrap_or_default()
    };
    boards.ok(&to, "list --history --count");
    let once = pages();
    boards.ok(&to, "load it");
    let (batches, read) = (4000 / 500, pages() - once);
    assert!(
        read <= once + 2 * batches,
        "{read} pages, {once} of the history"
    );
    let again = boards.run(&to, &["load", "ended"]);
    again.warns("4000 jobs already ended on this board");
}

#[test]
fn dry_run_prints_the_plan_without_effect() {
    let boards = Boards::new();
    let (from, to) = (boards.another("embedded"), boards.another("embedded"));
    fill(&boards, &from);
    boards.ok(&from, "dump it");
    let dry = ["load", "it", "--dry-run", "--read-only", "-o", "jsonl"];
    let outcome = boards.run(&to, &dry);
    assert_eq!(outcome.each("done"), ["would-post"; 8]);
    assert_eq!(boards.dumped(&to).len(), 0);
    assert_eq!(boards.run(&to, &["load", "it", "--read-only"]).code, 8);
}

#[test]
fn different_job_with_the_same_uuid_is_kept_and_reported() {
    let boards = Boards::new();
    for [from, to] in boards.pairs() {
        let (one, other) = (boards.another(from), boards.another(to));
        let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
        boards.ok(&one, format!("post a --uuid {uuid} n:=1"));
        boards.ok(&one, "post b");
        boards.ok(&other, format!("post a --uuid {uuid} n:=2"));
        boards.ok(&one, "dump it");
        for location in ["board", "trash"] {
            if location == "trash" {
                boards.ok(&other, format!("trash {uuid} --force --yes"));
            }
            let loaded = boards.run(&other, &["load", "it"]);
            loaded.exits(7, "a different job with this uuid");
            let job = boards.run(&other, &["show", uuid, "--json"]).json();
            assert_eq!(job["details"], json!({"n": 2}));
        }
        assert_eq!(boards.dumped(&other).len(), 2);
    }
}
