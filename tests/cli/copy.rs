//! `jobboard copy`, and `copy --move`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    time::Duration,
};

use serde_json::{Value, json};

use crate::{
    dump::{OF_THE_BOARD, OF_THE_KIND, are_alike, boards::Boards, fill},
    support::{
        Host, Outcome, Proxy, ProxyMode, Server, ZooKeeper, column, play, texts, wait_until, words,
    },
};

/// The audit entry, which names the move.
const OF_THE_MOVE: [&str; 4] = ["by", "action", "action_on", "reason"];

fn copy(boards: &Boards, from: &str, to: &str, words: &[&str]) -> Outcome {
    let to = boards.url(to);
    let all = [&["copy", "--to", &to, "-o", "jsonl", "--yes"][..], words].concat();
    boards.run(from, &all)
}

/// Returns the uuids on a board, or in its trash.
fn uuids(boards: &Boards, board: &str, words: &[&str]) -> BTreeSet<String> {
    let all = [&["list", "-o", "uuid"][..], words].concat();
    let listed = boards.run(board, &all);
    listed.succeeded().lines().map(str::to_owned).collect()
}

#[test]
fn copy_is_identical_and_repeatable() {
    let boards = Boards::new();
    let alike = boards.kinds().into_iter().map(|kind| [kind, kind]);
    for [from, to] in alike.chain(boards.pairs()) {
        let (one, other) = (boards.another(from), boards.another(to));
        fill(&boards, &one);
        let would = copy(&boards, &one, &other, &["--dry-run", "--read-only"]);
        assert_eq!(would.each("done"), ["would-copy"; 8]);
        copy(&boards, &one, &other, &["--filter", "name=rich"]).succeeded();
        assert_eq!(boards.dumped(&other).len(), 1);
        let copied = copy(&boards, &one, &other, &[]);
        let done = copied.each("done");
        assert_eq!((done.len(), &*done[0], &*done[1]), (8, "exists", "copied"));
        let but = [&OF_THE_BOARD[..], &OF_THE_KIND].concat();
        let (before, mut after) = (boards.dumped(&one), boards.dumped(&other));
        are_alike(&before, &after, &but);
        if from == to {
            assert_eq!(column(&before, "raw"), column(&after, "raw"), "{from}");
        }
        // A copy restores a deleted job.
        let gone = after.remove(1)["uuid"].as_str().unwrap().to_owned();
        boards.ok(&other, format!("consume {gone} --force --yes"));
        copy(&boards, &one, &other, &["--fresh"]).succeeded();
        assert_eq!(boards.dumped(&other).len(), 8);
    }
}

#[test]
fn different_job_with_the_same_uuid_is_reported_on_both_boards() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    let (one, other) = (boards.another("embedded"), boards.another("embedded"));
    for (board, size) in [(&one, "n:=1"), (&other, "n:=2")] {
        boards.ok(board, format!("post a --uuid {uuid} {size}"));
    }
    for words in [&[][..], &["--move"]] {
        let copied = copy(&boards, &one, &other, words);
        assert_eq!(copied.code, 7, "{copied:?}");
        let taken =
            format!("the target already has a job with the uuid {uuid}; both jobs are unchanged");
        let why = match words {
            [] => "the target has a different job with this uuid",
            _ => &taken,
        };
        copied.warns(why);
        copied.warns(format!(
            "`jobboard --board {} show {uuid}`",
            boards.url(&other)
        ));
    }
    for (board, size) in [(&one, 1), (&other, 2)] {
        let job = boards.run(board, &["show", uuid, "--json"]).json();
        let facts = (&job["details"], &job["state"], &job["attempts"]);
        assert_eq!(facts, (&json!({"n": size}), &json!("UNCLAIMED"), &json!(0)));
    }
}

#[test]
fn move_takes_unclaimed_jobs_and_reports_the_others() {
    let boards = Boards::new();
    for [from, to] in boards.pairs() {
        let (one, other) = (boards.another(from), boards.another(to));
        fill(&boards, &one);
        let before = boards.dumped(&one);
        let moved = copy(&boards, &one, &other, &["--move"]);
        moved.exits(7, "claimed by ada");
        let there = boards.dumped(&other);
        let but = [&OF_THE_BOARD[..], &OF_THE_KIND, &OF_THE_MOVE].concat();
        let free: Vec<_> = before
            .iter()
            .filter(|it| it["owner"].is_null())
            .cloned()
            .collect();
        are_alike(&free, &there, &but);
        for job in there.iter().filter(|it| it["kind"] == "job") {
            let reason = job["reason"].as_str().unwrap();
            assert_eq!(job["action"], "received", "{job}");
            assert!(reason.starts_with("moved from "), "{job}");
        }
        let names = column(&boards.dumped(&one), "name");
        assert_eq!(names, ["claimed", "thrown", "thrown-too"], "{from} {to}");
        let past = boards.run(&one, &["list", "--history", "--json"]).json();
        let reason = past[0]["reason"].as_str().unwrap();
        assert!(reason.starts_with("moved to "), "{reason}");
        // It was moved, not completed: `wait` must not continue.
        let waited = boards.run(&one, &["wait", past[0]["uuid"].as_str().unwrap()]);
        waited.exits(9, "continues on another board, by ");
    }
}

#[test]
fn board_is_not_moved_to_itself_under_another_name() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        boards.ok(&board, "post a");
        let url = boards.url(&board);
        let other = match kind {
            "embedded" => {
                let link = boards.env.file("link");
                std::os::unix::fs::symlink(boards.env.file(&board), &link).unwrap();
                format!("sqlite:{}", link.display())
            }
            _ => url.replace("127.0.0.1", "localhost"),
        };
        let before = uuids(&boards, &board, &[]);
        for to in [&url, &other] {
            let moved = boards.run(&board, &["copy", "--move", "--yes", "--to", to]);
            // SQLite itself may refuse a file with two names.
            assert!(moved.code != 0, "{moved:?}");
            assert!(
                moved.stderr.contains("the same board") || kind == "embedded",
                "{moved:?}"
            );
            assert_eq!(
                uuids(&boards, &board, &["--unclaimed"]),
                before,
                "{moved:?}"
            );
        }
    }
}

#[test]
fn killed_move_can_be_repeated_without_loss_or_duplicates() {
    const JOBS: usize = 450;
    let boards = Boards::new();
    for kind in boards.kinds() {
        let (one, other) = (boards.another(kind), boards.another("embedded"));
        boards.post_many(&one, JOBS);
        let all = uuids(&boards, &one, &[]);
        assert_eq!(all.len(), JOBS);
        let to = boards.url(&other);
        for (printed, late) in [(0, 0), (0, 60), (1, 0), (1, 15), (201, 5), (1, 30)] {
            let mut run = boards
                .on(&one, &["copy", "--move", "--yes", "--to", &to])
                .spawn();
            wait_until("it has come so far", || {
                run.has_ended() || run.stdout().lines().count() >= printed
            });
            // Anywhere between two exchanges.
            std::thread::sleep(Duration::from_millis(late));
            run.kill();
            let (here, there) = (uuids(&boards, &one, &[]), uuids(&boards, &other, &[]));
            let either: BTreeSet<_> = here.union(&there).cloned().collect();
            assert_eq!(either, all, "{kind}");
            let free = uuids(&boards, &one, &["--unclaimed"]);
            let free_there = uuids(&boards, &other, &["--unclaimed"]);
            assert_eq!(free.intersection(&free_there).count(), 0, "{kind}");
        }
        let again = || copy(&boards, &one, &other, &["--move"]).code == 0;
        match kind {
            // The server drops pending transactions when it learns of the kill.
            "zookeeper" => wait_until("all of it is moved", again),
            _ => assert!(again(), "{kind}"),
        }
        assert_eq!(uuids(&boards, &one, &[]), BTreeSet::new());
        assert_eq!(uuids(&boards, &other, &[]), all);
        assert_eq!(
            boards.run(&other, &["list", "--count"]).succeeded(),
            format!("{JOBS}\n")
        );
    }
}

#[test]
fn preview_of_a_move_reports_the_jobs_that_stay() {
    let boards = Boards::new();
    let (one, other) = (boards.another("embedded"), boards.another("embedded"));
    fill(&boards, &one);
    let would = copy(&boards, &one, &other, &["--move", "--dry-run"]);
    would.exits(7, "claimed by ada");
    let done = [["would-move"; 5].as_slice(), &["would-copy"; 2]].concat();
    assert_eq!(column(&would.values(), "done"), done);
    assert_eq!(boards.dumped(&other).len(), 0);
}

#[test]
fn move_from_an_empty_board_needs_confirmation() {
    let boards = Boards::new();
    let (one, other) = (boards.another("embedded"), boards.another("embedded"));
    boards.ok(&one, "post a");
    boards.ok(&one, "consume --name a --force --yes");
    let to = boards.url(&other);
    let words = ["copy", "--move", "--to", &to];
    let refused = boards.run(&one, &words);
    refused.exits(8, "add `--yes` to confirm");
    boards
        .run(&one, &[&words[..], &["--dry-run"]].concat())
        .succeeded();
    boards
        .run(&one, &[&words[..], &["--yes"]].concat())
        .succeeded();
}

#[test]
fn record_under_a_foreign_name_is_copied_and_not_moved() {
    need!(boards = Boards::with_redis());
    let (one, other) = (boards.another("redis"), boards.another("redis"));
    let job = boards.run(&one, &["post", "a"]).posted();
    let listings = format!("{one}:listings");
    let move_it = "redis.call('HSET', KEYS[1], 'stray', redis.call('HGET', KEYS[1], ARGV[1])) \
                   redis.call('HDEL', KEYS[1], ARGV[1])";
    boards.redis().run(&["EVAL", move_it, "1", &listings, &job]);
    for words in [&["--move"][..], &["--move", "--dry-run"]] {
        let refused = copy(&boards, &one, &other, words);
        refused.exits(7, "the uuid of the posting does not identify this record");
        refused.warns("explain key:stray");
    }
    boards
        .run(&one, &["explain", "key:stray"])
        .shows("uuid-mismatch");
    copy(&boards, &one, &other, &[]).succeeded();
}

fn plan(boards: &Boards, from: &str, to: &str) -> Outcome {
    copy(boards, from, to, &["--move", "--plan", "plan"])
}

/// Returns the result for each name.
fn apply(boards: &Boards, from: &str) -> BTreeMap<String, String> {
    let applied = boards.run(from, &["apply", "plan", "--yes", "-o", "jsonl"]);
    applied.succeeded();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let results = applied.values();
    let results = results
        .iter()
        .map(|it| (text(&it["name"]), text(&it["done"])));
    results.collect()
}

#[test]
fn plan_moves_unchanged_jobs_and_lists_the_others() {
    let boards = Boards::new();
    for [from, to] in boards.pairs() {
        let (one, other) = (boards.another(from), boards.another(to));
        let post = |name| boards.run(&one, &["post", name]).posted();
        let [same, claimed, edited, gone, held, thrown] =
            ["same", "claimed", "edited", "gone", "held", "thrown"].map(post);
        let run = |words: &[&str]| boards.run(&one, words).succeeded().to_owned();
        run(&["claim", &held, "--who", "ada"]);
        run(&["trash", &thrown, "--force", "--yes"]);
        let before = boards.dumped(&one);
        plan(&boards, &one, &other).exits(7, "claimed by ada");
        assert_eq!(
            (boards.dumped(&one), boards.dumped(&other)),
            (before, Vec::new())
        );
        run(&["claim", &claimed, "--who", "bob"]);
        run(&["change", &edited, "--priority", "LOW"]);
        run(&["consume", &gone, "--force", "--yes"]);
        post("new");
        let would = boards.run(&one, &["apply", "plan", "--dry-run", "-o", "jsonl"]);
        assert_eq!(would.values()[0]["done"], "would-move", "{would:?}");
        let skipped = ["claimed", "edited", "gone"].map(|it| (it, "skipped"));
        let expected = [&[("same", "moved")][..], &skipped].concat();
        let expected = expected
            .into_iter()
            .map(|(a, b)| (a.to_owned(), b.to_owned()));
        let mut expected: BTreeMap<_, _> = expected.collect();
        assert_eq!(apply(&boards, &one), expected, "{from} {to}");
        let history = boards.run(
            &one,
            &[
                "list",
                "--history",
                "--filter",
                "outcome=moved",
                "-o",
                "uuid",
            ],
        );
        assert_eq!(history.succeeded().trim(), same, "{from} {to}");
        expected.insert("same".to_owned(), "skipped".to_owned());
        assert_eq!(apply(&boards, &one), expected, "{from} {to}");
        assert_eq!(
            uuids(&boards, &other, &["--unclaimed"]),
            BTreeSet::from([same])
        );
    }
}

#[test]
fn killed_move_of_a_plan_is_completed_by_applying_the_plan_again() {
    const JOBS: usize = 500;
    need!(boards = Boards::with_redis());
    let (one, other) = (boards.another("redis"), boards.another("embedded"));
    boards.post_many(&one, JOBS);
    let all = uuids(&boards, &one, &[]);
    plan(&boards, &one, &other).succeeded();
    let new = boards.run(&one, &["post", "new"]).posted();
    for (printed, late) in [(0, 30), (1, 0), (201, 5)] {
        let mut run = boards.on(&one, &["apply", "plan", "--yes"]).spawn();
        wait_until("the move has come so far", || {
            run.has_ended() || run.stdout().lines().count() >= printed
        });
        // Anywhere between two exchanges.
        std::thread::sleep(Duration::from_millis(late));
        run.kill();
    }
    wait_until("all planned jobs are moved", || {
        apply(&boards, &one);
        uuids(&boards, &one, &[]).len() == 1
    });
    assert_eq!(uuids(&boards, &one, &[]), BTreeSet::from([new]));
    assert_eq!(uuids(&boards, &other, &["--unclaimed"]), all);
}

#[test]
fn plan_of_a_move_names_its_target() {
    let boards = Boards::new();
    let (one, other) = (boards.another("embedded"), boards.another("embedded"));
    boards.ok(&one, "post a");
    plan(&boards, &one, &other).succeeded();
    let rate = boards.run(&one, &["apply", "plan", "--yes", "--rate", "1/s"]);
    rate.fails(2, "--rate does not apply");
    let header = fs::read_to_string(boards.env.file("plan")).unwrap();
    let header: Value = serde_json::from_str(header.lines().next().unwrap()).unwrap();
    let url = boards.url(&other);
    let action = json!({"move": {"to": url, "target": url, "fresh": false}});
    assert_eq!(header["action"], action);
}

#[test]
fn each_board_has_its_own_password() {
    let boards = Boards::new();
    need!(server = Server::start());
    server.run(&["CONFIG", "SET", "requirepass", "hush"]);
    let one = boards.another("redis");
    boards.ok(&one, "post a");
    fs::write(boards.env.file("hush"), "hush\n").unwrap();
    let url = server.url("");
    let words = ["copy", "--to", &url];
    let refused = boards
        .on(&one, &words)
        .env("JOBBOARD_PASSWORD", "hush")
        .run();
    assert_eq!(refused.code, 5, "{refused:?}");
    let words = ["copy", "--to", &url, "--to-password-file", "hush"];
    boards.run(&one, &words).succeeded();
}

/// Creates a board, and makes its server cache the scripts of a move, so that the proxy meets the real request.
fn learn(boards: &Boards, board: &str) {
    let from = boards.another(board.split('-').next().unwrap());
    boards.ok(&from, "post a");
    copy(boards, &from, board, &["--move"]).succeeded();
    let consume = ["consume", "--filter", "name=a", "--force", "--yes"];
    boards.run(board, &consume).succeeded();
}

pub(crate) fn behind_a_proxy(boards: &Boards, board: &str) -> (Proxy, String) {
    let url = boards.url(board);
    let start = url.find("127.0.0.1:").unwrap() + "127.0.0.1:".len();
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let end = start + url.bytes().skip(start).take_while(is_digit).count();
    let proxy = Proxy::start(url[start..end].parse().unwrap());
    let url = format!("{}{}{}", &url[..start], proxy.port, &url[end..]);
    (proxy, url)
}

#[test]
fn move_with_a_lost_reply_is_completed() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        if kind == "embedded" {
            continue;
        }
        for (is_posted, word) in [(true, "lost-7"), (false, "moved to")] {
            let (one, other) = match is_posted {
                true => (boards.another("embedded"), boards.another(kind)),
                false => (boards.another(kind), boards.another("embedded")),
            };
            learn(&boards, if is_posted { &other } else { &one });
            for name in ["a", "lost-7", "b"] {
                boards.ok(&one, format!("post {name}"));
            }
            let all = uuids(&boards, &one, &[]);
            let (proxy, url) = behind_a_proxy(&boards, if is_posted { &other } else { &one });
            let (from, to) = match is_posted {
                true => (boards.url(&one), url),
                false => (url, boards.url(&other)),
            };
            proxy.set_at(word, ProxyMode::HangUpOnce);
            let moved = copy(&boards, &from, &to, &["--move"]);
            assert!(proxy.has_sprung());
            assert_eq!((moved.code, moved.values().len()), (0, 3), "{moved:?}");
            assert_eq!(uuids(&boards, &one, &[]), BTreeSet::new());
            assert_eq!(uuids(&boards, &other, &["--unclaimed"]), all);
        }
    }
}

#[test]
fn copy_with_an_unanswered_post_stays_claimed_until_the_move_is_resumed() {
    let boards = Boards::new();
    for kind in boards.kinds().into_iter().filter(|it| *it != "embedded") {
        let (one, other) = (boards.another("embedded"), boards.another(kind));
        learn(&boards, &other);
        let job = boards.run(&one, &["post", "lost-7"]).posted();
        let (proxy, to) = behind_a_proxy(&boards, &other);
        proxy.set_at("lost-7", ProxyMode::HangUp);
        let moved = copy(&boards, &one, &to, &["--move"]);
        assert!(proxy.has_sprung());
        assert_ne!(moved.code, 0, "{moved:?}");
        moved.warns("copy --resume --to");
        // The job is free on the source, and no client can claim its copy.
        assert_eq!(uuids(&boards, &one, &["--unclaimed"]).len(), 1);
        assert_eq!(uuids(&boards, &other, &[]).len(), 1);
        assert_eq!(uuids(&boards, &other, &["--unclaimed"]).len(), 0);
        let explained = boards.run(&other, &["explain", &job]);
        explained.shows("unfinished-move");
        explained.shows("copy --resume --from");
        let resumed = copy(&boards, &one, &other, &["--resume"]);
        resumed.succeeded();
        assert_eq!(resumed.json()["done"], "returned", "{resumed:?}");
        assert_eq!(uuids(&boards, &other, &[]).len(), 0);
        assert_eq!(boards.run(&other, &["wait", &job]).code, 9, "{kind}");
        copy(&boards, &one, &other, &["--move"]).succeeded();
        assert_eq!(uuids(&boards, &one, &[]).len(), 0);
        assert_eq!(uuids(&boards, &other, &["--unclaimed"]).len(), 1);
    }
}

/// A killed move, the proxy of its server, and the two board addresses.
struct Killed {
    _proxy: Proxy,
    from: String,
    to: String,
}

/// Kills a move at this request to a server.
fn killed_at(boards: &Boards, word: &'static str, is_target: bool) -> Killed {
    let (one, other) = match is_target {
        true => (boards.another("embedded"), boards.another("redis")),
        false => (boards.another("redis"), boards.another("embedded")),
    };
    learn(boards, if is_target { &other } else { &one });
    boards.ok(&one, "post lost-7");
    let (proxy, url) = behind_a_proxy(boards, if is_target { &other } else { &one });
    let (from, to) = match is_target {
        true => (boards.url(&one), url),
        false => (url, boards.url(&other)),
    };
    proxy.set_at(word, ProxyMode::Stall);
    let words = ["--board", &from, "copy", "--move", "--yes", "--to", &to];
    let run = boards.env.jobboard(&words).spawn();
    wait_until("the request is there", || proxy.has_sprung());
    run.kill();
    proxy.set(ProxyMode::PassOn);
    let _proxy = proxy;
    Killed { _proxy, from, to }
}

#[test]
fn doctor_on_either_board_suggests_how_to_finish_a_move() {
    need!(boards = Boards::with_redis());
    let run = |words: &[&str]| boards.env.run(words);
    let doctor = |board: &str| {
        run(&words(&format!(
            "--board {board} doctor --only unfinished-move --json"
        )))
    };
    for (word, is_target, moved) in [("lost-7", true, false), ("moved to", false, true)] {
        for is_asked_there in [false, true] {
            let Killed { _proxy, from, to } = killed_at(&boards, word, is_target);
            let asked = if is_asked_there { &to } else { &from };
            let found = doctor(asked);
            assert_eq!(found.code, 7, "{found:?}");
            let report = found.value();
            let fix = &report["problems"][0]["fix"];
            // A peer may have written the address, so `--fix` does not run the command.
            assert_eq!(fix["risk"], Value::Null, "{report}");
            let words = texts(&fix["command"]);
            let resumed = run(&[&words[1..], &["--yes", "-o", "jsonl"]].concat());
            resumed.succeeded();
            let done = if moved { "moved" } else { "returned" };
            assert_eq!(resumed.json()["done"], done, "{resumed:?}");
            for (board, count) in [(&from, u8::from(!moved)), (&to, u8::from(moved))] {
                let free = run(&["--board", board, "list", "--unclaimed", "--count"]);
                assert_eq!(free.stdout, format!("{count}\n"));
                let report: Value = serde_json::from_str(&doctor(board).stdout).unwrap();
                assert_eq!(report["problems"], json!([]), "{report}");
            }
        }
    }
}

/// Deletes the commit records on the source of a move.
fn delete_commits(boards: &Boards, namespace: &str) {
    let moves = format!("{namespace}:moves");
    let records = boards.redis().run(&["HKEYS", &moves]);
    let commits: Vec<_> = records
        .lines()
        .filter(|it| !it.starts_with("move:"))
        .collect();
    assert_eq!(commits.len(), 1, "{records}");
    boards.redis().run(&["HDEL", &moves, commits[0]]);
}

#[test]
fn copy_without_a_commit_record_is_released_by_history_or_by_an_operator() {
    need!(boards = Boards::with_redis());
    for has_history in [true, false] {
        let Killed { _proxy, from, to } = killed_at(&boards, "moved to", false);
        let namespace = from.rsplit_once("namespace=").unwrap().1;
        delete_commits(&boards, namespace);
        if !has_history {
            let past = format!("{namespace}:past");
            boards.redis().run(&["DEL", &past]);
        }
        let free = || boards.run(&to, &["list", "--unclaimed", "--count"]).stdout;
        let resumed = copy(&boards, &from, &to, &["--resume"]);
        if has_history {
            resumed.succeeded();
            assert_eq!(resumed.json()["done"], "moved", "{resumed:?}");
        } else {
            assert_eq!((resumed.code, &*resumed.stdout), (7, ""), "{resumed:?}");
            let report: Value =
                serde_json::from_str(resumed.stderr.lines().next().unwrap()).unwrap();
            let (message, commands) = (&report["error"]["message"], &report["error"]["commands"]);
            let why = "has neither the job nor a record of its end";
            assert!(message.as_str().unwrap().contains(why), "{resumed:?}");
            assert_eq!((&*free(), uuids(&boards, &to, &[]).len()), ("0\n", 1));
            let release = [&texts(&commands[0])[1..], &["--yes"]].concat();
            boards.env.ok(release);
        }
        assert_eq!(free(), "1\n");
    }
}

#[test]
fn copy_is_removed_if_history_shows_that_the_job_ran_on_the_source() {
    let boards = Boards::new();
    for kind in boards.kinds().into_iter().filter(|it| *it != "embedded") {
        let (one, other) = (boards.another(kind), boards.another(kind));
        learn(&boards, &other);
        let job = boards.run(&one, &["post", "lost-7"]).posted();
        let (proxy, to) = behind_a_proxy(&boards, &other);
        proxy.set_at("lost-7", ProxyMode::HangUp);
        assert_ne!(copy(&boards, &one, &to, &["--move"]).code, 0);
        boards.ok(&one, format!("consume {job} --force --yes"));
        let resumed = copy(&boards, &one, &other, &["--resume"]);
        resumed.succeeded();
        assert_eq!(resumed.json()["done"], "returned", "{resumed:?}");
        assert_eq!(uuids(&boards, &other, &[]).len(), 0);
    }
}

#[test]
fn forged_move_record_ends_no_claim_on_the_target() {
    need!(boards = Boards::with_redis());
    let (one, other) = (boards.another("redis"), boards.another("embedded"));
    boards.ok(&one, "post a");
    let mover = "move:a@far:far:7:c0ffee01";
    for who in ["alice", mover] {
        let job = boards.run(&other, &["post", "b"]).posted();
        boards.ok(&other, format!("claim {job} --who {who}"));
    }
    let begun = format!("2026-01-01T00:00:00Z {}", boards.url(&other));
    let moves = format!("{one}:moves");
    let claim = format!("x {mover}");
    let records = [mover, &begun, "x alice", "", &claim, ""];
    boards
        .redis()
        .run(&[&["HSET", &moves], &records[..]].concat());
    let resumed = copy(&boards, &one, &other, &["--resume"]);
    assert_eq!((resumed.code, &*resumed.stdout), (7, ""), "{resumed:?}");
    assert_eq!(uuids(&boards, &other, &[]).len(), 2);
    assert_eq!(uuids(&boards, &other, &["--unclaimed"]).len(), 0);
}

/// A peer of the source may write any record there.
#[test]
fn commit_record_of_a_job_that_is_still_there_releases_no_copy() {
    need!(boards = Boards::with_redis());
    let Killed { _proxy, from, to } = killed_at(&boards, "lost-7", true);
    let file = rusqlite::Connection::open(from.strip_prefix("sqlite:").unwrap()).unwrap();
    let forged = "INSERT INTO moves SELECT (SELECT uuid FROM job) || ' ' || key, '' FROM moves";
    assert_eq!(file.execute(forged, []).unwrap(), 1);
    // It hides no other record.
    let unreadable = "INSERT INTO moves VALUES (CAST(x'ff' AS TEXT), CAST(x'ff' AS TEXT))";
    assert_eq!(file.execute(unreadable, []).unwrap(), 1);
    drop(file);
    let resumed = copy(&boards, &from, &to, &["--resume"]);
    assert_eq!((resumed.code, &*resumed.stdout), (7, ""), "{resumed:?}");
    resumed.warns("but still has the job");
    let free = |board: &str| {
        boards
            .run(board, &["list", "--unclaimed", "--count"])
            .stdout
    };
    assert_eq!((&*free(&from), &*free(&to)), ("1\n", "0\n"));
}

#[test]
fn copies_without_a_source_record_are_kept() {
    need!(boards = Boards::with_redis());
    let Killed { _proxy, from, to } = killed_at(&boards, "lost-7", true);
    let run = |words: &[&str]| boards.env.run([&["--board", &to], words].concat());
    let stranger = boards.another("embedded");
    boards.ok(&stranger, "post a");
    copy(&boards, &stranger, &to, &["--resume"]).succeeded();
    assert_eq!(run(&["list", "--count"]).stdout, "1\n");
    // The claim is not released as that of a dead process either.
    run(&["doctor", "--fix", "--yes", "--only", "owner-dead"]);
    assert_eq!(run(&["list", "--unclaimed", "--count"]).stdout, "0\n");
    copy(&boards, &from, &to, &["--resume"]).succeeded();
    assert_eq!(run(&["list", "--count"]).stdout, "0\n");
}

#[test]
fn trashed_copy_on_the_target_keeps_a_job_and_an_earlier_end_does_not() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    for kind in boards.kinds() {
        for (verb, code) in [("consume", 0), ("trash", 7)] {
            let (one, other) = (boards.another("embedded"), boards.another(kind));
            for board in [&one, &other] {
                let post = ["post", "a", "--uuid", uuid];
                boards.run(board, &post).succeeded();
            }
            let end = [verb, uuid, "--force", "--yes"];
            boards.run(&other, &end).succeeded();
            let moved = copy(&boards, &one, &other, &["--move"]);
            assert_eq!(moved.code, code, "{moved:?}");
            let why = "in its trash; both jobs are unchanged";
            assert_eq!(moved.stderr.contains(why), verb == "trash", "{moved:?}");
            let count = |board: &str, which: &str| uuids(&boards, board, &[which]).len();
            let left = [
                (&one, "--unclaimed"),
                (&other, "--unclaimed"),
                (&other, "--trash"),
            ];
            let left = left.map(|(board, which)| count(board, which));
            let expected = if verb == "trash" {
                [1, 0, 1]
            } else {
                [0, 1, 0]
            };
            assert_eq!(left, expected, "{kind} {verb}");
        }
    }
}

#[test]
fn trash_of_a_sibling_board_does_not_count_as_trash_of_the_target() {
    let boards = Boards::new();
    need!(server = <ZooKeeper as Host>::start());
    let from = boards.another("embedded");
    let job = boards.run(&from, &["post", "a"]).posted();
    boards.ok(&from, format!("trash {job} --force --yes"));
    // So that both boards number their jobs differently.
    boards.run(&server.beside(), &["post", "b"]).succeeded();
    for to in [server.board(), server.beside()] {
        let copied = copy(&boards, &from, &to, &[]);
        copied.succeeded();
        assert_eq!(copied.json()["done"], "copied", "{copied:?}");
        let trashed = boards.run(&to, &["list", "--trash", "--json"]).json();
        assert_eq!(
            (&trashed[0]["uuid"], &trashed[1]),
            (&json!(job), &json!(null))
        );
        let again = copy(&boards, &from, &to, &[]);
        assert_eq!(again.json()["done"], "exists", "{again:?}");
    }
}

#[test]
fn protected_boards_need_their_names() {
    play(
        r#"
        # a move between protected boards needs both names
        config default = "a"\n[board.a]\nurl = "sqlite:a.db"\nprotected = true\n[board.b]\nurl = "sqlite:b.db"\nprotected = true\n
        0 post a
        8 copy --move --to b --confirm a
        8 copy --move --to b --confirm b
        0 list --count == 1
        0 copy --move --to b --confirm a --confirm b
        0 list --count == 0

        # a copy, a move or a load onto a protected board needs its name
        config default = "a"\n[board.a]\nurl = "sqlite:a.db"\n[board.b]\nurl = "sqlite:b.db"\nprotected = true\n
        0 post a
        0 dump it
        8 --board b load it --create --yes
        8 --board b load it --create --confirm a
        8 copy --to b --yes
        8 copy --to b --confirm a
        8 copy --to b --move --yes
        8 copy --to b --move --confirm a
        8 copy --to b => --confirm b
        0 copy --to sqlite:c.db --filter name=z => no job matches; nothing changed
        0 copy --to sqlite:c.db --filter name=z -q => (nothing)
        0 --board b list --count == 0
        0 copy --to b --dry-run
        0 copy --to b --move --confirm b
        0 --board b list --count == 1
        0 --board b load it --create --confirm b

        # a move needs confirmation
        config default = "b"\n[board.b]\nurl = "sqlite:b.db"\n
        0 post a
        8 copy --move --to sqlite:other.db => move up to 1 job
        0 list --unclaimed --count == 1
        0 copy --move --to sqlite:other.db --dry-run
        0 copy --move --to sqlite:other.db --yes --verbose

        # a move from a protected board needs its name
        config default = "b"\n[board.b]\nurl = "sqlite:b.db"\nprotected = true\n
        0 post a
        8 copy --move --to sqlite:other.db --yes => move up to 1 job
        0 list --unclaimed --count == 1
        0 copy --move --to sqlite:other.db --dry-run --yes
        0 copy --move --to sqlite:other.db --confirm b

        # a failed move leaves no job claimed
        0 post a
        5 copy --move --yes --to redis://127.0.0.1:1 => 127.0.0.1:1 => `jobboard --board redis://127.0.0.1:1 config` shows where it is set
        5 copy --to redis://127.0.0.1:1 => `jobboard --board redis://127.0.0.1:1 config` shows where it is set
        0 list --unclaimed --count == 1
        "#,
    );
}
