//! `jobboard claim`.

use crate::support::env::Env;

#[test]
fn job_is_claimed_under_a_name() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("claim @1 --who ada");
    assert_eq!(env.show("@1")["owner"], "ada");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	claimed
    --- stderr
    ");
}

#[test]
fn default_owner_is_user_at_host() {
    let env = Env::new();
    env.post("resize");
    let claimed = env.json("claim @1 --json");
    let host = rustix::system::uname();
    let host = host.nodename().to_str().unwrap();
    let owner = claimed["owner"].as_str().unwrap();
    assert!(owner.ends_with(&format!("@{host}")), "{owner}");
}

#[test]
fn claimed_job_cannot_be_claimed_again() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let own = env.run("claim @1 --who ada --json");
    let error = own.error();
    assert_eq!(error["kind"], "already-claimed");
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("you already hold the claim"),
        "{own}"
    );
    // The suggested command works.
    let hint = error["hint"].as_str().unwrap();
    for command in hint.split('`').filter(|part| part.starts_with("jobboard ")) {
        let words: Vec<_> = command.split(' ').skip(1).collect();
        let verb = words[0];
        assert!(["extend", "consume"].contains(&verb), "{own}");
        let dry: &[&str] = if verb == "consume" {
            &["--dry-run"]
        } else {
            &[]
        };
        env.jobboard(&[&words[..], dry].concat()).run().succeeded();
    }
    let before = env.show("@1")["owner"].clone();
    let other = env.run("claim @1 --who bob");
    assert_eq!(env.show("@1")["owner"], before);
    insta::assert_snapshot!(other, @"
    exit code 4
    --- stdout
    --- stderr
    error: cannot claim resize on sqlite:ROOT/state/jobboard/board.db: the job is claimed by ada
    hint: `jobboard claim --next` claims another job; if the owner of this one is gone, `jobboard abandon --force 00000001-0000-0000-0000-000000000000` releases the claim
    ");
}

#[test]
fn next_job_is_the_most_urgent_then_the_oldest() {
    let env = Env::new();
    for (name, priority) in [("c", "low"), ("a", "high"), ("b", "high")] {
        let posted = env.jobboard(&["post", name, "--priority", priority]).run();
        posted.succeeded();
    }
    let next = || env.json("claim --next --json")["name"].clone();
    assert_eq!([next(), next(), next()], ["a", "b", "c"]);
    let none = env.run("claim --next");
    none.failed(6);
    insta::assert_snapshot!(none, @"
    exit code 6
    --- stdout
    --- stderr
    error: cannot claim the next job on sqlite:ROOT/state/jobboard/board.db: no job is claimable
    hint: add `--wait 1m` to wait for a job
    ");
}

#[test]
fn next_job_matches_the_filters() {
    let env = Env::new();
    for lb in ["1", "2"] {
        env.jobboard(&["post", "resize", &format!("lb={lb}")])
            .run()
            .succeeded();
    }
    let claim = || env.jobboard(&["claim", "--next", "--filter", "details.lb=2"]);
    claim().run().succeeded();
    assert_eq!([env.state("@1"), env.state("@2")], ["UNCLAIMED", "CLAIMED"]);
    claim().run().failed(6);
}

#[test]
fn next_job_has_a_matching_name() {
    let env = Env::new();
    let _ = ["nap", "backup-1"].map(|name| env.post(name));
    let claim = |words: &[&str]| env.jobboard(&[&["claim", "--next", "--name"], words].concat());
    claim(&["nap", "--filter", "name=backup-1"]).run().failed(6);
    claim(&["backup-*"]).run().succeeded();
    assert_eq!([env.state("@1"), env.state("@2")], ["UNCLAIMED", "CLAIMED"]);
    claim(&["backup-*"]).run().failed(6);
    env.fails(2, "claim @1 --name nap");
}

#[test]
fn fences_increase() {
    let env = Env::new();
    env.post("resize");
    let fence = || {
        let claimed = env.json("claim @1 --json");
        env.ok("abandon @1");
        claimed["fence"].as_str().unwrap().parse::<u64>().unwrap()
    };
    let (first, second) = (fence(), fence());
    assert!(second > first, "{first} {second}");
}

#[test]
fn claim_expiry_is_printed_and_applied() {
    let env = Env::new();
    env.post("resize");
    let claim = env.jobboard(&["claim", "@1", "--expiry", "1h30m", "--json"]);
    assert_eq!(claim.run().json()["expires_in"], 5400.0);
    let job = env.show("@1");
    assert_eq!(job["lease"], "timed");
    let left = job["expires_in"].as_f64().unwrap();
    assert!((5300.0..=5400.0).contains(&left), "{left}");
}

#[test]
fn manual_claims_count_no_attempt() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    assert_eq!(env.show("@1")["attempts"], 0);
}

#[test]
fn postponed_job_is_claimed_only_by_name() {
    let env = Env::new();
    env.post("resize");
    let database = env.database();
    database
        .execute("UPDATE job SET not_before = 4102444800000000", [])
        .unwrap();
    env.fails(6, "claim --next");
    env.ok("claim @1");
}

#[test]
fn waiting_for_a_job_ends_at_the_timeout() {
    let env = Env::new();
    let run = env.run("claim --next --wait 50ms");
    run.failed(124);
    assert!(!env.board().exists());
    insta::assert_snapshot!(run, @"
    exit code 124
    --- stdout
    --- stderr
    error: cannot claim the next job on sqlite:ROOT/state/jobboard/board.db: no job was claimable within 50ms
    hint: `jobboard list` shows the jobs on the board
    ");
}

#[test]
fn claim_requires_exactly_one_way_to_name_the_job() {
    let env = Env::new();
    assert_eq!(env.run("claim").code, 2);
    assert_eq!(env.run("claim @1 --next").code, 2);
}

#[test]
fn missing_command_after_the_dashes_is_a_usage_error() {
    let env = Env::new();
    env.post("resize");
    env.fails(2, "claim --next --");
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn no_job_to_run_for_differs_from_an_unreachable_board() {
    let env = Env::new();
    let claim = ["claim", "--next", "--json", "--", "true"];
    let run = env.jobboard(&claim).run();
    run.failed(6);
    assert_eq!(run.error()["kind"], "not-found");
    let filtered = ["claim", "--next", "--filter", "name=x", "--", "true"];
    env.post("resize");
    env.jobboard(&filtered).run().failed(6);
    env.fails(124, "claim --next --wait 50ms --filter name=x -- true");
    let run = env
        .jobboard(&claim)
        .env("JOBBOARD_URL", "redis://127.0.0.1:1")
        .run();
    run.failed(125);
    assert_eq!(run.error()["kind"], "unreachable");
}

#[test]
fn nothing_to_claim_counts_the_paused_and_the_postponed_jobs() {
    let env = Env::new();
    env.post("deploy");
    env.jobboard(&["run", "backup", "--", "false"])
        .run()
        .failed(1);
    env.jobboard(&["pause", "deploy"]).run().succeeded();
    let run = env.jobboard(&["claim", "--next"]).run();
    assert!(
        run.failed(6)
            .contains("no job is claimable (1 paused, 1 backing off)"),
        "{run}"
    );
}
