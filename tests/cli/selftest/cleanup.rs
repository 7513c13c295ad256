//! Scratch boards: created files are removed, and other files stay.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use super::{SURE, Scene, find_leftover, grades, selftest, selftest_whole};
use crate::support::{Authority, Env, Server, assert_contains, texts, wait_until};

/// The name of an old scratch board.
const OLD: &str = "selftest-20200101T000000Z-0123abcd";

impl Scene {
    /// Returns the URL of an unused board, as deep as possible.
    fn unused(&self) -> String {
        if let Some(server) = self.stage.redis_server() {
            return server.url("?namespace=nobody");
        }
        match self.stage.zookeeper_board() {
            Some(server) => {
                let (port, top) = (server.port(), server.top());
                format!("zk://127.0.0.1:{port}{top}/as/deep/jobs")
            }
            None => format!(
                "sqlite:{}",
                self.env().board().with_file_name("b.db").display()
            ),
        }
    }

    /// Returns the URL of a user's board with the name of a scratch board.
    fn alike(&self) -> String {
        if let Some(server) = self.stage.redis_server() {
            return server.url(&format!("?namespace=taskflow:{OLD}"));
        }
        match self.stage.zookeeper_board() {
            Some(server) => {
                let (port, top) = (server.port(), server.top());
                format!("zk://127.0.0.1:{port}{top}/.{OLD}/of-0123abcd")
            }
            None => format!("sqlite:{}.{OLD}", self.env().board().display()),
        }
    }
}

#[test]
fn test_board_is_removed_completely() {
    for mut scene in Scene::each() {
        let (stored, url) = (scene.stored(), scene.unused());
        let run = selftest(scene.env(), &["--for", "2s", "--board", &url]);
        assert_eq!(run.values().pop().unwrap()["left"], json!(null), "{run}");
        assert_eq!(scene.stored(), stored);
        // Only the next selftest cleans up after a killed one.
        let words = ["selftest", "--yes", "--for", "10m", "--board", &url];
        let run = scene.env().jobboard(&words).spawn();
        wait_until("it is at work", || scene.is_posted_to());
        run.kill();
        find_leftover(scene.env(), &["--clean", "--board", &url], "removed");
        assert_eq!(scene.stored(), stored);
    }
}

#[test]
fn existing_directories_stay_and_new_ones_are_removed() {
    let env = Env::new();
    let state = env.root().join("state");
    let run = selftest(&env, &["--for", "2s"]);
    assert_eq!(run.values().len(), 1, "{run}");
    assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    fs::create_dir(state.join("jobboard")).unwrap();
    let run = selftest(&env, &["--for", "2s"]);
    assert_eq!(run.values().len(), 1, "{run}");
    assert_eq!(fs::read_dir(state.join("jobboard")).unwrap().count(), 0);
    // Including those in created directories.
    fs::remove_dir_all(&state).unwrap();
    let run = selftest(&env, &["--for", "2s"]);
    assert_eq!(run.values().len(), 1, "{run}");
    assert!(!state.exists());
}

#[test]
fn user_board_is_kept_whatever_its_name() {
    for mut scene in Scene::each() {
        let url = scene.alike();
        let post = format!("post mine --board {url}");
        scene.env().ok(post);
        let stored = scene.stored();
        let shown = selftest(scene.env(), &["--dry-run"]).json();
        assert_eq!(shown["left"], json!([]), "{shown}");
        let report = selftest(scene.env(), &["--clean"]).json();
        assert_eq!(report["removed"], json!([]), "{report}");
        selftest(scene.env(), &["--for", "2s"]).values();
        assert_eq!(scene.stored(), stored);
        let list = scene.env().jobboard(&["list", "--json", "--board", &url]);
        assert_eq!(list.run().json()[0]["name"], "mine");
    }
}

#[test]
fn linked_board_is_tested_next_to_its_file() {
    let env = Env::new();
    env.post("resize");
    let (link, file) = (env.file("link.db"), env.board());
    symlink(&file, &link).unwrap();
    let url = format!("sqlite:{}", link.display());
    let shown = selftest(&env, &["--dry-run", "--board", &url]).json();
    let place = shown["place"].as_str().unwrap();
    let beside = format!(
        "sqlite:{}.selftest-",
        file.canonicalize().unwrap().display()
    );
    assert!(place.starts_with(&beside), "{shown}");
}

#[test]
fn too_long_name_for_a_test_board_is_an_error() {
    let env = Env::new();
    let file = env.file(&"x".repeat(240));
    let url = format!("sqlite:{}", file.display());
    let post = format!("post resize --board {url}");
    env.ok(post);
    for words in [&[][..], &["--dry-run"]] {
        let run = selftest(&env, &[words, &["--board", &url]].concat());
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
        let error = run.error();
        assert_eq!(error["kind"], "usage", "{run}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("28 characters too long"), "{run}");
    }
    let report = selftest(&env, &["--clean", "--board", &url]).json();
    assert_eq!(report["removed"], json!([]), "{report}");
}

#[test]
fn tls_board_is_tested_with_the_same_certificates() {
    need!(authority = Authority::new());
    let theirs = authority.issue("IP:127.0.0.1", 2);
    need!(server = Server::start_tls(&theirs, &authority));
    let (ours, ca) = (authority.issue("DNS:us", 2), authority.ca());
    let (ca, cert, key) = (ca.display(), ours.cert.display(), ours.key.display());
    let url = format!("rediss://{}?ca={ca}&cert={cert}&key={key}", server.host());
    let env = Env::new();
    env.uses(&url);
    is_sound(&env, &server);
    let command = &persists(&env);
    assert_contains(
        command,
        format!("--cacert {ca} --cert {cert} --key {key} CONFIG SET"),
    );
    in_shell(&env, command);
    assert_eq!(
        server.run(&["CONFIG", "GET", "appendonly"]),
        "appendonly\nyes"
    );
}

#[test]
fn sentinel_board_is_tested_at_the_master() {
    need!(master = Server::start());
    let sentinel = Server::start_sentinel(&master, 1).unwrap();
    let env = Env::new();
    let url = format!("redis-sentinel://{}/mymaster", sentinel.host());
    env.uses(&url);
    is_sound(&env, &master);
    let command = persists(&env);
    in_shell(&env, &command);
    assert_eq!(
        master.run(&["CONFIG", "GET", "appendonly"]),
        "appendonly\nyes"
    );
}

/// Tests a board with a user's job; its only problem is the missing persistence.
fn is_sound(env: &Env, server: &Server) {
    // A busy machine may be too slow to connect.
    wait_until("it is posted", || env.run("post resize").code == 0);
    let stored = server.everything();
    let report = selftest_whole(env).json();
    let grades = grades(&report);
    for promise in SURE {
        assert_eq!(grades[promise], "ok", "{report:#}");
    }
    assert_eq!(report["left"], json!(null));
    assert_eq!(server.everything(), stored);
}

/// Returns the suggested command for persistence.
fn persists(env: &Env) -> String {
    let run = env.run("doctor --json");
    let report = run.values().pop().unwrap();
    let problems = report["problems"].as_array().unwrap().iter();
    let mut found = problems.filter(|it| it["code"] == "not-persistent");
    let words = texts(&found.next().unwrap()["fix"]["command"]);
    words.join(" ")
}

fn in_shell(env: &Env, command: &str) {
    let run = env.program("sh".as_ref(), &["-c", command]).run();
    run.prints("OK");
}
