//! Unreadable records, which no release of ours writes.

use crate::support::env::Env;

/// Makes the details of some jobs unreadable.
fn break_details(env: &Env, which: &str) {
    let change = format!(
        "PRAGMA ignore_check_constraints = on;
         UPDATE job SET details = 'nonsense' WHERE {which}"
    );
    env.database().execute_batch(&change).unwrap();
}

#[test]
fn unreadable_record_affects_no_other_job() {
    let env = Env::new();
    env.post_many(3);
    break_details(&env, "sequence = 1");
    let next = || env.run("claim --next --json");
    assert_eq!(next().json()["name"], "job-1");
    assert_eq!(next().json()["name"], "job-2");
    let listed = env.json("list --json");
    assert_eq!(listed[0]["state"], "MALFORMED");
}

#[test]
fn many_unreadable_records_hide_no_job() {
    let env = Env::new();
    env.post_many(40);
    break_details(&env, "sequence < 40");
    let next = env.run("claim --next --json");
    assert_eq!(next.json()["name"], "job-39");
}

#[test]
fn only_unreadable_records_leave_no_job_to_claim() {
    let env = Env::new();
    env.post("resize");
    break_details(&env, "true");
    env.fails(6, "claim --next");
    let any = env.run("wait --any --timeout 50ms");
    any.failed(124);
}

#[test]
fn unreadable_record_is_malformed_in_every_format() {
    let env = Env::new();
    env.post("resize");
    break_details(&env, "true");
    for format in ["table", "tsv", "json"] {
        let run = env.run(format!("list -o {format}"));
        assert!(run.succeeded().contains("MALFORMED"), "{run}");
    }
}

#[test]
fn claimed_unreadable_record_shows_its_owner_and_can_be_forced() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    break_details(&env, "true");
    let owner = env.run("owner @1");
    assert_eq!(owner.succeeded(), "ada\n");
    let freed = env.run("abandon @1 --force --yes");
    freed.succeeded();
    // After the release, the unreadable record has no owner.
    for call in [&["owner", "@1"][..], &["abandon", "@1", "--force", "--yes"]] {
        let run = env.jobboard(call).run();
        assert!(run.failed(4).contains("is unreadable: "), "{run}");
        assert!(run.stderr.contains("`jobboard trash --force key:"), "{run}");
    }
    let trashed = env.run("trash @1 --force --yes");
    trashed.succeeded();
}

#[test]
fn unreadable_details_are_masked_completely() {
    let env = Env::new();
    env.post("resize");
    let secret = "PRAGMA ignore_check_constraints = on;
                  UPDATE job SET details = '{\"password\": \"hunter2\"'";
    env.database().execute_batch(secret).unwrap();
    let shown = env.run("show @1 -o table");
    assert!(!shown.succeeded().contains("hunter2"), "{shown}");
    let revealed = env.run("show @1 -o table --reveal");
    assert!(revealed.succeeded().contains("hunter2"), "{revealed}");
}

#[test]
fn result_for_an_unreadable_record_names_its_key() {
    let env = Env::new();
    let uuid = env.post("resize");
    break_details(&env, "true");
    let printed = env.ok("trash @1 --force --yes");
    assert_eq!(printed, format!("key:{uuid}\t\ttrashed\n"));
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
    let expected = "line 2: the record key:";
    assert!(run.stderr.contains(expected), "{run}");
    assert!(
        run.stderr
            .contains(" is malformed and holds no readable job"),
        "{run}"
    );
}
