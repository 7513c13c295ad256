//! `jobboard trash`.

use crate::support::env::Env;

#[test]
fn job_named_twice_is_trashed_once() {
    let env = Env::new();
    let uuid = env.post("resize");
    let trash = ["trash", &uuid, "@1", &uuid[..8], "--force", "--yes"];
    let outcome = env.jobboard(&trash).run();
    assert_eq!(outcome.succeeded().lines().count(), 1, "{outcome}");
    env.ok(format!("restore {uuid} {uuid}"));
    env.fails(4, format!("trash {uuid} {uuid}"));
}

#[test]
fn owner_trashes_a_job() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let run = env.run("trash @1 --who ada");
    assert_eq!(env.state("@1"), "TRASHED");
    assert!(env.names().is_empty());
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	resize	trashed
    --- stderr
    ");
}

#[test]
fn job_that_its_worker_gives_up_counts_as_failed() {
    let env = Env::new();
    for (name, reason, cause) in [
        ("a", &["--reason", "no disk"][..], "no disk"),
        ("b", &[], "marked as failed by hand"),
    ] {
        let job = env.post(name);
        env.claim(&job, "ada");
        let trash = ["trash", "--failed", "--who", "ada", &job];
        env.jobboard(&[&trash[..], reason].concat())
            .run()
            .succeeded();
        let listed = env.ok("list --failed -o uuid");
        assert!(listed.contains(&job), "{listed}");
        assert!(env.run("doctor").stdout.contains(cause), "{cause}");
        env.ok(format!("retry --yes --problem 'failed={cause}'"));
        assert_eq!(env.state(&job), "UNCLAIMED");
    }
    // Without --failed, trashing is a decision and no failure.
    let job = env.post("c");
    env.claim(&job, "ada");
    env.ok(format!("trash {job} --who ada --reason unwanted"));
    assert!(!env.ok("list --failed -o uuid").contains(&job));
}

#[test]
fn other_users_need_force() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("trash @1 --json");
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "not-claimed");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    env.trash("@1");
    assert_eq!(env.state("@1"), "TRASHED");
}

#[test]
fn same_uuid_in_the_trash_is_replaced() {
    let env = Env::new();
    let uuid = env.post("resize");
    env.trash("@1");
    env.ok(format!("post again --uuid {uuid}"));
    let run = env.run(format!("trash {uuid} --force --yes -o table"));
    assert_eq!(env.show(&uuid)["name"], "again");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    trashed 00000001 again
    --- stderr
      00000001 again
    replaced a job with the same uuid in the trash
    ");
}

#[test]
fn unreadable_record_is_trashed_by_force_only() {
    let env = Env::new();
    let uuid = env.post("resize");
    let broken = "PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense'";
    env.database().execute_batch(broken).unwrap();
    let key = format!("key:{uuid}");
    let refused = env.run(format!("trash {key} --json"));
    assert_eq!(refused.error()["kind"], "malformed");
    env.ok(format!("trash {key} --force --yes"));
    assert!(env.names().is_empty());
}

#[test]
fn jobs_are_selected_by_name_state_and_limit() {
    let env = Env::new();
    for name in ["backup-a", "grow", "backup-b", "backup-c", "none"] {
        env.post(name);
    }
    env.claim("@3", "ada");
    let trash = |words: &[&str]| {
        let always = ["trash", "--force", "--yes"];
        env.jobboard(&[&always, words].concat()).run()
    };
    let run = trash(&["--name", "backup-*", "--limit", "2"]);
    assert_eq!(env.names(), ["grow", "backup-c", "none"]);
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	backup-a	trashed
    00000002-0000-0000-0000-000000000000	backup-b	trashed
    --- stderr
    skipped (--limit): 1 job
      00000001 backup-a
      00000002 backup-b (claimed by ada)
    ");
    env.claim("@2", "ada");
    trash(&["--state", "claimed"]).succeeded();
    assert_eq!(env.names(), ["backup-c", "none"]);
    // In `--name`, `none` is an ordinary name.
    trash(&["--name", "none"]).succeeded();
    assert_eq!(env.names(), ["backup-c"]);
    env.ok("restore --name backup-* --limit 1 --yes");
    assert_eq!(env.names(), ["backup-a", "backup-c"]);
    for words in [
        &["trash", "--limit", "1"][..],
        &["trash", "@1", "--limit", "1"],
    ] {
        assert_eq!(env.jobboard(words).run().code, 2, "{words:?}");
    }
}

#[test]
fn hint_names_the_board_and_the_job() {
    let env = Env::new();
    let board = ["--board", "sqlite:it's.db"];
    let on = |words: &[&str]| env.jobboard(&[words, &board].concat()).run();
    on(&["post", "resize"]).succeeded();
    let run = on(&["trash", "@1"]);
    insta::assert_snapshot!(run, @r#"
    exit code 4
    --- stdout
    --- stderr
    error: cannot trash @1 on sqlite:it's.db: the job is not claimed
    hint: `jobboard --board 'sqlite:it'"'"'s.db' trash --force --yes @1` also works on an unclaimed job
    "#);
}
