//! `jobboard doctor --fix`: what it does, what it leaves, and that it asks.

use serde_json::{Value, json};

use super::{Stage, doctor, findings, on_every_board, use_it};
use crate::support::{env::Env, tmux::Pane};

on_every_board!(what_can_be_mended_is_and_all_else_stays);

fn what_can_be_mended_is_and_all_else_stays(stage: &Stage) {
    use_it(stage);
    let env = &stage.env;
    let dead = env.post("dead");
    let kept = env.post("kept");
    env.claim(&dead, "night:elsewhere.:7:c0ffee01");
    env.claim(&kept, "ada");
    let before = of(&dead, &env.everything());
    let dry = env.jobboard(&["doctor", "--fix", "--dry-run"]).run();
    assert!(dry.succeeded().contains("abandon --force"), "{dry}");
    assert_eq!(of(&dead, &env.everything()), before);
    assert_eq!(env.state(&dead), "CLAIMED");
    // Nobody can be asked.
    assert_eq!(doctor(env, &["--fix"]).code, 8);
    let fixed = env
        .jobboard(&["doctor", "--fix", "--yes", "--skip", "server"])
        .run();
    assert_eq!(fixed.code, 0, "{fixed}");
    assert_eq!(env.state(&dead), "UNCLAIMED");
    assert_eq!(env.state(&kept), "CLAIMED");
    assert_eq!(findings(env, "held-by-dead"), [json!(null); 0]);
    // All but that one claim is as it was.
    assert_eq!(of(&dead, &env.everything()), before);
    let nothing = env.jobboard(&["doctor", "--fix", "--skip", "server"]).run();
    assert!(
        nothing.stderr.contains("nothing that jobboard can mend"),
        "{nothing}"
    );
    env.claim(&dead, "night:elsewhere.:7:c0ffee01");
    let refused = env
        .jobboard(&["doctor", "--fix", "--yes", "--read-only"])
        .run();
    assert_eq!(refused.code, 8, "{refused}");
}

/// Returns what there is beside one job.
fn of(job: &str, everything: &[Value; 2]) -> (Vec<Vec<Value>>, usize) {
    let keys = ["uuid", "state", "owner", "attempts", "not_before"];
    let jobs = everything[0].as_array().unwrap().iter();
    let others = jobs.filter(|other| other["uuid"] != job);
    let others = others.map(|other| keys.map(|key| other[key].clone()).to_vec());
    (others.collect(), everything[1].as_array().unwrap().len())
}

#[test]
fn what_cannot_be_read_is_put_away() {
    let env = Env::new();
    env.post_many(4);
    let change = "PRAGMA ignore_check_constraints = on;
        UPDATE job SET details = 'nonsense' WHERE sequence = 1;
        UPDATE job SET failures = 'nonsense' WHERE sequence = 2";
    env.database().execute_batch(change).unwrap();
    let words = ["doctor", "--fix", "--yes", "--reason", "a bad night"];
    let fixed = env.jobboard(&words).run();
    assert_eq!(fixed.code, 0, "{fixed}");
    assert_eq!(env.names(), ["job-2", "job-3"]);
    let trash = env.jobboard(&["list", "--trash", "--json"]).run().json();
    assert_eq!(trash.as_array().unwrap().len(), 2);
}

#[test]
fn a_protected_board_asks_for_its_name_once() {
    let env = Env::new();
    env.configure("default = \"b\"\n[board.b]\nurl = \"sqlite:b.db\"\nprotected = true\n");
    env.post("resize");
    env.claim("@1", "ada:elsewhere.:7:c0ffee01");
    let fix = |words: &[&str]| env.jobboard(&[&["doctor", "--fix"], words].concat()).run();
    assert_eq!(fix(&["--yes"]).code, 8);
    assert_eq!(env.state("@1"), "CLAIMED");
    assert_eq!(fix(&["--confirm", "b"]).code, 0);
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn on_a_terminal_it_asks() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada:elsewhere.:7:c0ffee01");
    let Some(screen) = Pane::open(&env, &[]) else {
        return;
    };
    screen.line("jobboard doctor --fix");
    screen.shows(r"do this step\? \[y/N\]");
    screen.line("n");
    screen.shows("not confirmed, and nothing was done");
    assert_eq!(env.state("@1"), "CLAIMED");
    screen.line("jobboard doctor --fix");
    screen.shows(r"(?s)nothing was done.*do this step\? \[y/N\]");
    screen.line("y");
    screen.shows("abandoned ");
    screen.shows("The board is sound");
    assert_eq!(env.state("@1"), "UNCLAIMED");
}
