//! `jobboard ping`.

use crate::support::{Env, play};

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
    play(
        r#"
        # an unusable board is an error
        file text this is no database at all, and long enough
        1 ping --board sqlite:. => the path is a directory
        1 ping --board sqlite:text => not a database

        # a ping prints the server and the number of jobs
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 trash @1 --force --yes
        0 ping -o table == sqlite:ROOT/state/jobboard/board.db\nserver        SQLite VERSION\nround trip    SPAN\njobs          2\nin the trash  1
        "#,
    );
}
