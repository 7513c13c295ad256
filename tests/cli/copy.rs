//! `jobboard copy`, and `copy --move`.

use std::{collections::BTreeSet, fs, time::Duration};

use serde_json::json;

use crate::{
    dump::{OF_THE_BOARD, OF_THE_KIND, are_alike, boards::Boards, fill},
    support::{
        env::{Env, Outcome, wait_until},
        proxy::{Mood, Proxy},
        servers::Server,
    },
};

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
fn a_copy_is_what_was_copied_and_can_be_made_again() {
    let boards = Boards::new();
    for from in boards.kinds() {
        let one = boards.another(from);
        fill(&boards, &one);
        for to in boards.kinds() {
            let other = boards.another(to);
            let would = copy(&boards, &one, &other, &["--dry-run", "--read-only"]);
            would.succeeded();
            assert!(
                would.values().iter().all(|it| it["done"] == "would-copy"),
                "{would:?}"
            );
            copy(&boards, &one, &other, &["--filter", "name=rich"]).succeeded();
            assert_eq!(boards.dumped(&other).len(), 1);
            let copied = copy(&boards, &one, &other, &[]);
            copied.succeeded();
            let done: Vec<_> = copied
                .values()
                .iter()
                .map(|it| it["done"].clone())
                .collect();
            assert_eq!(
                (done.len(), &done[0], &done[1]),
                (8, &json!("exists"), &json!("copied"))
            );
            let but = [&OF_THE_BOARD[..], &OF_THE_KIND].concat();
            let (before, mut after) = (boards.dumped(&one), boards.dumped(&other));
            are_alike(&before, &after, &but);
            if from == to {
                let raw = |all: &[serde_json::Value]| -> Vec<_> {
                    all.iter().map(|it| it["raw"].clone()).collect()
                };
                assert_eq!(raw(&before), raw(&after), "{from}");
            }
            // What is gone from there comes back.
            let gone = after.remove(1)["uuid"].as_str().unwrap().to_owned();
            boards
                .run(&other, &["consume", &gone, "--force", "--yes"])
                .succeeded();
            copy(&boards, &one, &other, &["--fresh"]).succeeded();
            assert_eq!(boards.dumped(&other).len(), 8);
        }
    }
}

#[test]
fn another_job_of_the_same_uuid_is_told_and_left_on_both_boards() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    for kind in boards.kinds() {
        let (one, other) = (boards.another("embedded"), boards.another(kind));
        for (board, size) in [(&one, "n:=1"), (&other, "n:=2")] {
            boards
                .run(board, &["post", "a", "--uuid", uuid, size])
                .succeeded();
        }
        for words in [&[][..], &["--move"]] {
            let copied = copy(&boards, &one, &other, words);
            assert_eq!(copied.code, 7, "{copied:?}");
            assert!(
                copied.stderr.contains("another job of this uuid"),
                "{copied:?}"
            );
        }
        for (board, size) in [(&one, 1), (&other, 2)] {
            let job = boards.run(board, &["show", uuid, "--json"]).json();
            let facts = (&job["details"], &job["state"], &job["attempts"]);
            assert_eq!(facts, (&json!({"n": size}), &json!("UNCLAIMED"), &json!(0)));
        }
    }
}

#[test]
fn what_nobody_has_is_moved_and_the_rest_is_left_and_told() {
    let boards = Boards::new();
    for from in boards.kinds() {
        for to in boards.kinds() {
            let (one, other) = (boards.another(from), boards.another(to));
            fill(&boards, &one);
            let before = boards.dumped(&one);
            let moved = copy(&boards, &one, &other, &["--move"]);
            assert_eq!(moved.code, 7, "{moved:?}");
            assert!(moved.stderr.contains("claimed by ada"), "{moved:?}");
            let there = boards.dumped(&other);
            let but = [&OF_THE_BOARD[..], &OF_THE_KIND].concat();
            let free: Vec<_> = before
                .iter()
                .filter(|it| it["owner"].is_null())
                .cloned()
                .collect();
            are_alike(&free, &there, &but);
            let names: Vec<_> = boards
                .dumped(&one)
                .iter()
                .map(|it| it["name"].clone())
                .collect();
            assert_eq!(names, ["claimed", "thrown", "thrown-too"], "{from} {to}");
            let past = boards.run(&one, &["list", "--past", "--json"]).json();
            let reason = past[0]["reason"].as_str().unwrap();
            assert!(reason.starts_with("moved to "), "{reason}");
            // It is not done: whoever waits for it must not go on.
            let waited = boards.run(&one, &["wait", past[0]["uuid"].as_str().unwrap()]);
            let why = "goes on elsewhere, by ";
            assert!(
                waited.code == 9 && waited.stderr.contains(why),
                "{waited:?}"
            );
        }
    }
}

#[test]
fn one_board_under_two_names_is_not_moved_to_itself() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        boards.run(&board, &["post", "a"]).succeeded();
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
            // SQLite may well refuse a file under two names by itself.
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
fn a_move_that_is_killed_and_done_again_loses_and_doubles_nothing() {
    const JOBS: usize = 900;
    let boards = Boards::new();
    for kind in boards.kinds() {
        let (one, other) = (boards.another(kind), boards.another("embedded"));
        let url = boards.url(&one);
        let lines: String = (0..JOBS)
            .map(|n| format!("{{\"name\":\"job-{n}\"}}\n"))
            .collect();
        let post = ["--board", &url, "post", "--from", "-"];
        boards.env.jobboard(&post).stdin(lines).run().succeeded();
        let all = uuids(&boards, &one, &[]);
        assert_eq!(all.len(), JOBS);
        let to = boards.url(&other);
        for (told, late) in [(0, 0), (0, 60), (1, 0), (1, 15), (201, 5), (1, 30)] {
            let mut run = boards
                .on(&one, &["copy", "--move", "--yes", "--to", &to])
                .spawn();
            wait_until("it has come so far", || {
                run.has_ended() || run.stdout().lines().count() >= told
            });
            // Anywhere between two exchanges.
            std::thread::sleep(Duration::from_millis(late));
            run.kill();
            let (here, there) = (uuids(&boards, &one, &[]), uuids(&boards, &other, &[]));
            let either: BTreeSet<_> = here.union(&there).cloned().collect();
            assert_eq!(either, all, "{kind}");
            let both: Vec<_> = here.intersection(&there).collect();
            let free = uuids(&boards, &one, &["--unclaimed"]);
            assert!(kind == "zookeeper" || both.iter().all(|it| !free.contains(*it)));
        }
        let again = || copy(&boards, &one, &other, &["--move"]).code == 0;
        match kind {
            // The server lets go of what was on its way when it has heard of the end.
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
fn nothing_stays_claimed_where_the_other_board_is_gone() {
    let boards = Boards::new();
    let one = boards.another("embedded");
    boards.run(&one, &["post", "a"]).succeeded();
    let gone = boards.run(
        &one,
        &["copy", "--move", "--yes", "--to", "redis://127.0.0.1:1"],
    );
    assert_eq!(gone.code, 5, "{gone:?}");
    assert!(gone.stderr.contains("127.0.0.1:1"), "{gone:?}");
    assert_eq!(uuids(&boards, &one, &["--unclaimed"]).len(), 1);
}

#[test]
fn each_board_has_a_password_of_its_own() {
    let boards = Boards::new();
    let Some(server) = Server::start() else {
        return;
    };
    server.run(&["CONFIG", "SET", "requirepass", "hush"]);
    let one = boards.another("redis");
    boards.run(&one, &["post", "a"]).succeeded();
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

/// Has a board be made, and its server learn what it is to do when jobs are moved, lest that comes
/// before it.
fn learn(boards: &Boards, board: &str) {
    let from = boards.another(board.split('-').next().unwrap());
    boards.run(&from, &["post", "a"]).succeeded();
    copy(boards, &from, board, &["--move"]).succeeded();
    let consume = ["consume", "--filter", "name=a", "--force", "--yes"];
    boards.run(board, &consume).succeeded();
}

/// Returns the URL of a board with a proxy before its server.
fn behind_a_proxy(boards: &Boards, board: &str) -> (Proxy, String) {
    let url = boards.url(board);
    let start = url.find("127.0.0.1:").unwrap() + "127.0.0.1:".len();
    let is_digit = |byte: &u8| byte.is_ascii_digit();
    let end = start + url.bytes().skip(start).take_while(is_digit).count();
    let proxy = Proxy::start(url[start..end].parse().unwrap());
    let url = format!("{}{}{}", &url[..start], proxy.port, &url[end..]);
    (proxy, url)
}

#[test]
fn a_move_of_which_an_answer_is_lost_is_made_nevertheless() {
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
                boards.run(&one, &["post", name]).succeeded();
            }
            let all = uuids(&boards, &one, &[]);
            let (proxy, url) = behind_a_proxy(&boards, if is_posted { &other } else { &one });
            let (from, to) = match is_posted {
                true => (boards.url(&one), url),
                false => (url, boards.url(&other)),
            };
            proxy.set_at(word, Mood::HangUpOnce);
            let moved = copy(&boards, &from, &to, &["--move"]);
            assert!(proxy.has_sprung());
            assert_eq!((moved.code, moved.values().len()), (0, 3), "{moved:?}");
            assert_eq!(uuids(&boards, &one, &[]), BTreeSet::new());
            assert_eq!(uuids(&boards, &other, &["--unclaimed"]), all);
        }
    }
}

#[test]
fn what_may_be_on_both_boards_is_told_and_not_freed_and_the_move_goes_on_with_it() {
    let boards = Boards::new();
    let kinds = boards.kinds().into_iter().filter(|it| *it != "embedded");
    for (kind, is_done) in kinds.flat_map(|it| [(it, false), (it, true)]) {
        let (one, other) = (boards.another("embedded"), boards.another(kind));
        learn(&boards, &other);
        boards.run(&one, &["post", "lost-7"]).succeeded();
        let (proxy, to) = behind_a_proxy(&boards, &other);
        proxy.set_at("lost-7", Mood::HangUp);
        let moved = copy(&boards, &one, &to, &["--move"]);
        assert!(proxy.has_sprung());
        assert_ne!(moved.code, 0, "{moved:?}");
        assert!(
            moved.stderr.contains("lost-7") && moved.stderr.contains("may be on both boards"),
            "{moved:?}"
        );
        assert_eq!(uuids(&boards, &other, &[]).len(), 1);
        assert_eq!(uuids(&boards, &one, &["--unclaimed"]).len(), 0);
        let explained = boards.run(&one, &["explain", "@1"]);
        assert!(explained.stdout.contains("was broken off"), "{explained:?}");
        if is_done {
            let run = ["claim", "--next", "--", "true"];
            boards.run(&other, &run).succeeded();
        }
        copy(&boards, &one, &other, &["--move"]).succeeded();
        assert_eq!(uuids(&boards, &one, &[]).len(), 0);
        // It is not posted there a second time.
        assert_eq!(uuids(&boards, &other, &[]).len(), usize::from(!is_done));
    }
}

#[test]
fn a_job_is_not_taken_off_the_board_for_one_in_the_trash_of_the_other() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    for kind in boards.kinds() {
        let (one, other) = (boards.another("embedded"), boards.another(kind));
        for board in [&one, &other] {
            boards
                .run(board, &["post", "a", "--uuid", uuid])
                .succeeded();
        }
        boards
            .run(&other, &["trash", uuid, "--force", "--yes"])
            .succeeded();
        let moved = copy(&boards, &one, &other, &["--move"]);
        assert_eq!(moved.code, 7, "{moved:?}");
        assert!(moved.stderr.contains("in the trash there"), "{moved:?}");
        assert_eq!(uuids(&boards, &one, &["--unclaimed"]).len(), 1, "{kind}");
        assert_eq!(uuids(&boards, &other, &["--trash"]).len(), 1, "{kind}");
    }
}

#[test]
fn a_move_is_to_be_agreed_to_and_a_protected_board_to_be_named() {
    let env = Env::new();
    let move_to = |words: &[&str]| {
        let to = ["copy", "--move", "--to", "sqlite:other.db"];
        env.jobboard(&[&to, words].concat()).run()
    };
    for is_protected in [false, true] {
        env.configure(&format!(
            "default = \"b\"\n[board.b]\nurl = \"sqlite:b.db\"\nprotected = {is_protected}\n"
        ));
        env.post("a");
        let (least, most) = match is_protected {
            true => (&["--yes"][..], ["--confirm", "b"]),
            false => (&[][..], ["--yes", "--verbose"]),
        };
        let refused = move_to(least);
        assert_eq!(refused.code, 8, "{refused:?}");
        assert!(refused.stderr.contains("move up to 1 job"), "{refused:?}");
        let left = env.jobboard(&["list", "--unclaimed", "--count"]).run();
        assert_eq!(left.succeeded(), "1\n");
        move_to(&[&["--dry-run"], least].concat()).succeeded();
        move_to(&most).succeeded();
    }
}
