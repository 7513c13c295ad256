//! Unreadable records, which no release of ours writes.

use crate::support::{Env, play};

/// Makes the details of some jobs unreadable.
fn break_details(env: &Env, which: &str) {
    let change = format!(
        "PRAGMA ignore_check_constraints = on;
         UPDATE job SET details = 'nonsense' WHERE {which}"
    );
    env.database().execute_batch(&change).unwrap();
}

#[test]
fn many_unreadable_records_hide_no_job() {
    let env = Env::new();
    env.post_many(40);
    break_details(&env, "sequence < 40");
    assert_eq!(env.run("claim --next --json").json()["name"], "job-39");
}

#[test]
fn piped_listing_includes_unreadable_records() {
    let env = Env::new();
    let uuids = env.post_many(2);
    break_details(&env, "sequence = 1");
    let listed = env.run("list -o uuid");
    let references: Vec<_> = listed.succeeded().lines().collect();
    assert_eq!(references, [&format!("key:{}", uuids[0]), &uuids[1]]);
    let trash = ["trash", "-", "--force", "--yes", "-o", "uuid"];
    let trashed = env.jobboard(&trash).stdin(listed.succeeded()).run();
    assert_eq!(trashed.succeeded(), listed.stdout);
    assert!(env.names().is_empty());
    let restore = env.jobboard(&["restore", "-"]).stdin(trashed.stdout).run();
    assert_eq!(restore.succeeded().lines().count(), 2);
}

#[test]
fn listed_unreadable_record_is_a_bad_line_of_a_bulk_post() {
    let env = Env::new();
    env.post_many(3);
    break_details(&env, "sequence = 2");
    let listed = env.run("list -o jsonl");
    let post = ["post", "--from", "-", "--board", "sqlite:other.db"];
    let run = env.jobboard(&post).stdin(listed.succeeded()).run();
    assert_eq!((run.code, run.stdout.lines().count()), (7, 2), "{run}");
    run.warns("line 2: the record key:");
    run.warns(" is malformed and holds no readable job");
}

#[test]
fn unreadable_records_affect_no_other_job() {
    play(
        r#"
        # an unreadable record affects no other job
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense' WHERE sequence = 1
        0 claim --next -> \tjob-1\tclaimed
        0 claim --next -> \tjob-2\tclaimed
        0 list --state malformed --count == 1

        # an unreadable record is MALFORMED in every format, and no job to claim
        0 post resize
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense'
        6 claim --next
        124 wait --any --timeout 50ms
        0 list -o table -> MALFORMED
        0 list -o tsv -> MALFORMED
        0 list -o json -> MALFORMED
        0 trash @1 --force --yes == key:00000001-0000-0000-0000-000000000000\t\ttrashed

        # a claimed unreadable record shows its owner and can be forced
        0 post resize
        0 claim @1 --who ada
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense'
        0 owner @1 == ada
        0 abandon @1 --force --yes
        4 owner @1 => is unreadable:  => `jobboard trash --force key:
        4 abandon @1 --force --yes => is unreadable:  => `jobboard trash --force key:
        0 trash @1 --force --yes

        # unreadable details are masked completely
        0 post resize
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = '{"password": "hunter2"'
        0 show @1 -o table !> hunter2
        0 show @1 -o table --reveal -> hunter2
        "#,
    );
}
