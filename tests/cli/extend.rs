//! `jobboard extend`.

use crate::{dump::boards::Boards, support::env::Env};

fn claimed_for_a_minute() -> Env {
    let env = Env::new();
    env.post("resize");
    let claim = env.jobboard(&["claim", "@1", "--expiry", "1m", "--who", "ada"]);
    claim.run().succeeded();
    env
}

#[test]
fn new_expiry_counts_from_now() {
    let env = claimed_for_a_minute();
    let extend = env.jobboard(&["extend", "@1", "--expiry", "2h", "--who", "ada", "--json"]);
    let report = extend.run().json();
    assert_eq!(report["done"], "extended");
    assert_eq!(report["expires_in"], 7200.0);
    let left = env.show("@1")["expires_in"].as_f64().unwrap();
    assert!((7100.0..=7200.0).contains(&left), "{left}");
}

#[test]
fn claim_of_another_user_is_not_extended() {
    let env = claimed_for_a_minute();
    let run = env.run("extend @1 --expiry 2h --who bob");
    assert!(env.show("@1")["expires_in"].as_f64().unwrap() <= 60.0);
    insta::assert_snapshot!(run, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot extend @1 on sqlite:ROOT/state/jobboard/board.db: the job belongs to ada, not to bob
    hint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, `jobboard abandon --force @1` releases the claim
    ");
}

#[test]
fn unclaimed_job_cannot_be_extended() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("extend @1 --expiry 2h --json");
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "not-claimed");
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn extend_requires_an_expiry() {
    assert_eq!(Env::new().run("extend @1").code, 2);
}

#[test]
fn several_extensions_are_reported_separately() {
    let env = claimed_for_a_minute();
    env.post("other");
    let run = env.run("extend @1 @2 --expiry 2h --who ada --json");
    assert_eq!(run.code, 7, "{run}");
    assert_eq!(run.values()[0]["done"], "extended");
    assert_eq!(run.values()[0]["expires_in"], 7200.0);
    assert!(env.show("@1")["expires_in"].as_f64().unwrap() > 60.0);
    assert!(run.stderr.contains("not-claimed"), "{run}");
}

#[test]
fn operator_can_extend_the_claim_of_a_live_owner() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        let job = boards.run(&board, &["post", "resize"]).posted();
        if kind == "zookeeper" {
            boards
                .run(&board, &["claim", &job, "--who", "ada"])
                .succeeded();
            let extend = [
                "extend", &job, "--force", "--owner", "ada", "--expiry", "2h", "-y",
            ];
            let refused = boards.run(&board, &extend);
            assert!(refused.failed(4).contains("ZooKeeper"), "{refused}");
            continue;
        }
        let claim = ["claim", &job, "--expiry", "1m", "--who", "ada"];
        boards.run(&board, &claim).succeeded();
        let extend = |owner: &str, more: &[&str]| {
            let words = [
                "extend", &job, "--expiry", "2h", "--force", "--owner", owner,
            ];
            boards.run(&board, &[&words[..], more].concat())
        };
        let unasked = extend("ada", &[]);
        assert!(
            unasked.failed(8).contains("confirmation is required"),
            "{unasked}"
        );
        let other = extend("bob", &["--yes"]);
        assert!(other.failed(4).contains("not claimed by bob"), "{other}");
        let left = |words: &[&str]| {
            let job = boards.run(&board, words).json();
            assert_eq!(job["owner"], "ada");
            job["expires_in"].as_f64().unwrap()
        };
        let show = ["show", &job, "--json"];
        assert!(left(&show) <= 60.0);
        extend("ada", &["--yes"]).succeeded();
        assert!(left(&show) > 7000.0);
        boards
            .run(&board, &["abandon", &job, "--who", "ada"])
            .succeeded();
        assert!(
            extend("ada", &["--yes"])
                .failed(4)
                .contains("is not claimed")
        );
    }
    let alone = Env::new();
    for words in [
        &["extend", "@1", "--expiry", "2h", "--force"][..],
        &["extend", "@1", "--expiry", "2h", "--owner", "ada"],
    ] {
        alone.jobboard(words).run().failed(2);
    }
}
