//! `jobboard trash`.

use crate::env::Env;

#[test]
fn the_owner_moves_a_job_to_the_trash() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let run = env.jobboard(&["trash", "@1", "--who", "ada"]).run();
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
fn nobody_else_can_without_force() {
    let env = Env::new();
    env.post("resize");
    let run = env.jobboard(&["trash", "@1", "--json"]).run();
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "not-claimed");
    assert_eq!(env.state("@1"), "UNCLAIMED");
    env.trash("@1");
    assert_eq!(env.state("@1"), "TRASHED");
}

#[test]
fn a_namesake_in_the_trash_gives_way() {
    let env = Env::new();
    let uuid = env.post("resize");
    env.trash("@1");
    env.jobboard(&["post", "again", "--uuid", &uuid])
        .run()
        .succeeded();
    let run = env
        .jobboard(&["trash", &uuid, "--force", "--yes", "-o", "table"])
        .run();
    assert_eq!(env.show(&uuid)["name"], "again");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    trashed 00000001 again
    --- stderr
      00000001 again
    a job of the same uuid was in the trash and has been replaced
    ");
}

#[test]
fn a_record_that_cannot_be_read_is_trashed_by_force_alone() {
    let env = Env::new();
    let uuid = env.post("resize");
    let broken = "PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense'";
    env.database().execute_batch(broken).unwrap();
    let key = format!("key:{uuid}");
    let refused = env.jobboard(&["trash", &key, "--json"]).run();
    assert_eq!(refused.error()["kind"], "malformed");
    env.jobboard(&["trash", &key, "--force", "--yes"])
        .run()
        .succeeded();
    assert!(env.names().is_empty());
}
