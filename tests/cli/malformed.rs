//! Records that cannot be read, as no release of ours would write them.

use crate::env::Env;

/// Makes the details of some jobs unreadable.
fn break_details(env: &Env, which: &str) {
    let change = format!(
        "PRAGMA ignore_check_constraints = on;
         UPDATE job SET details = 'nonsense' WHERE {which}"
    );
    env.database().execute_batch(&change).unwrap();
}

#[test]
fn a_job_whose_record_cannot_be_read_harms_no_other() {
    let env = Env::new();
    env.post_many(3);
    break_details(&env, "sequence = 1");
    let next = || env.jobboard(&["claim", "--next", "--json"]).run();
    assert_eq!(next().json()["name"], "job-1");
    assert_eq!(next().json()["name"], "job-2");
    let listed = env.jobboard(&["list", "--json"]).run().json();
    assert_eq!(listed[0]["state"], "MALFORMED");
}

#[test]
fn many_such_records_hide_no_job_behind_them() {
    let env = Env::new();
    env.post_many(40);
    break_details(&env, "sequence < 40");
    let next = env.jobboard(&["claim", "--next", "--json"]).run();
    assert_eq!(next.json()["name"], "job-39");
}

#[test]
fn where_all_records_are_such_there_is_nothing_to_claim() {
    let env = Env::new();
    env.post("resize");
    break_details(&env, "true");
    env.jobboard(&["claim", "--next"]).run().failed(6);
    let any = env.jobboard(&["wait", "--any", "--timeout", "50ms"]).run();
    any.failed(124);
}

#[test]
fn such_a_record_has_the_same_state_in_every_format() {
    let env = Env::new();
    env.post("resize");
    break_details(&env, "true");
    for format in ["table", "tsv", "json"] {
        let run = env.jobboard(&["list", "-o", format]).run();
        assert!(run.succeeded().contains("MALFORMED"), "{run}");
    }
}
