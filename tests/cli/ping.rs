//! `jobboard ping`.

use crate::support::env::Env;

#[test]
fn ping_prints_the_server_and_the_number_of_jobs() {
    let env = Env::new();
    env.post_many(3);
    env.trash("@1");
    let run = env.run("ping -o table");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    sqlite:ROOT/state/jobboard/board.db
    server        SQLite VERSION
    round trip    SPAN
    jobs          2
    in the trash  1
    --- stderr
    ");
}

#[test]
fn ping_json_has_numbers() {
    let env = Env::new();
    env.post("resize");
    let pong = env.json("ping --json");
    assert_eq!(pong["jobs"], 1);
    assert_eq!(pong["trashed"], 0);
    assert_eq!(pong["history_problem"], serde_json::Value::Null);
    assert!(pong["round_trip"].as_f64().unwrap() > 0.0);
}

#[test]
fn unusable_board_is_an_error() {
    let env = Env::new();
    std::fs::create_dir(env.file("folder")).unwrap();
    let run = env.run("ping --board sqlite:folder");
    assert!(run.failed(1).contains("the path is a directory"), "{run}");
}
