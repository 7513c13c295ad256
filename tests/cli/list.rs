//! `jobboard list`.

use crate::support::env::{Env, names};

/// Three jobs, of which `middle` is claimed.
fn three() -> Env {
    let env = Env::new();
    for (name, priority) in [
        ("late", "low"),
        ("middle", "normal"),
        ("first", "very_high"),
    ] {
        let posted = env.jobboard(&["post", name, "--priority", priority]).run();
        posted.succeeded();
    }
    env.claim("@2", "ada");
    env
}

fn listed(env: &Env, arguments: &[&str]) -> Vec<String> {
    let arguments = [&["list", "--json"], arguments].concat();
    names(&env.jobboard(&arguments).run())
}

#[test]
fn people_see_a_table_of_the_jobs_best_first() {
    let run = three().jobboard(&["list", "-o", "table"]).run();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES
    00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -
    00000002  middle  CLAIMED  NORMAL  AGE  ada  AGE  never
    00000003  late  UNCLAIMED  LOW  AGE  -  -  -
    --- stderr
    ");
}

#[test]
fn in_a_pipe_each_job_is_a_line_of_nine_fields() {
    let run = three().jobboard(&["list"]).run();
    for line in run.succeeded().lines() {
        assert_eq!(line.split('\t').count(), 9, "{line}");
    }
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	first	UNCLAIMED	VERY_HIGH	SECONDS				00000001-0000-0000-0000-000000000000
    00000002-0000-0000-0000-000000000000	middle	CLAIMED	NORMAL	SECONDS	ada	SECONDS		00000002-0000-0000-0000-000000000000
    00000003-0000-0000-0000-000000000000	late	UNCLAIMED	LOW	SECONDS				00000003-0000-0000-0000-000000000000
    --- stderr
    ");
}

#[test]
fn json_has_every_key_of_a_job_and_null_for_what_is_absent() {
    let env = three();
    let jobs = env.jobboard(&["list", "--json"]).run().json();
    let keys: Vec<_> = jobs[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys.join(" "),
        "uuid key name state priority sequence created_on last_modified owner lease expires_in \
         claimed_on fence trashed_on ended_on outcome by reason waited took exit_code signal book \
         details attempts postponed not_before last_failure failures problem"
    );
    assert!(jobs[0]["owner"].is_null());
    assert_eq!(jobs[1]["owner"], "ada");
    assert_eq!(jobs[1]["lease"], "none");
    assert_eq!(jobs[1]["fence"], "1");
}

#[test]
fn uuids_alone_can_be_had() {
    let env = Env::new();
    let uuid = env.post("resize");
    let run = env.jobboard(&["list", "-o", "uuid"]).run();
    assert_eq!(run.succeeded(), format!("{uuid}\n"));
}

#[test]
fn states_and_filters_choose_the_jobs() {
    let env = three();
    env.trash("@1");
    assert_eq!(listed(&env, &["--state", "claimed"]), ["middle"]);
    assert_eq!(listed(&env, &["--unclaimed"]), ["first"]);
    assert_eq!(listed(&env, &["--trash"]), ["late"]);
    assert_eq!(listed(&env, &["--state", "TRASHED"]), ["late"]);
    assert_eq!(listed(&env, &["--filter", "owner=ada"]), ["middle"]);
    assert_eq!(listed(&env, &["--filter", "name=f*"]), ["first"]);
    let both = ["--filter", "priority>=NORMAL", "--filter", "owner=none"];
    assert_eq!(listed(&env, &both), ["first"]);
}

#[test]
fn the_order_can_be_chosen_and_turned_round() {
    let env = three();
    assert_eq!(
        listed(&env, &["--sort", "name"]),
        ["first", "late", "middle"]
    );
    assert_eq!(
        listed(&env, &["--sort", "age"]),
        ["late", "middle", "first"]
    );
    assert_eq!(listed(&env, &["--sort", "owner"])[0], "middle");
    assert_eq!(listed(&env, &["--sort", "none"]).len(), 3);
    assert_eq!(listed(&env, &["--reverse"]), ["late", "middle", "first"]);
}

#[test]
fn the_order_of_taskflow_is_unsupported_where_taskflow_never_looks() {
    let run = three()
        .jobboard(&["list", "--sort", "taskflow", "--json"])
        .run();
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "unsupported");
}

#[test]
fn a_limit_says_what_it_left_out() {
    let run = three()
        .jobboard(&["list", "--limit", "1", "-o", "table"])
        .run();
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES
    00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -
    --- stderr
    2 more not shown (--limit)
    ");
}

#[test]
fn a_count_is_a_number() {
    let env = three();
    let count = |arguments: &[&str]| env.jobboard(arguments).run().json();
    assert_eq!(count(&["list", "--count", "--json"]), 3);
    assert_eq!(count(&["list", "--count", "--filter", "owner=ada"]), 1);
}

#[test]
fn an_empty_board_says_so_to_people_only() {
    let env = Env::new();
    env.post("resize");
    env.trash("@1");
    let told = |arguments: &[&str]| env.jobboard(arguments).run();
    assert_eq!(told(&["list", "-o", "table"]).stderr, "no jobs\n");
    assert_eq!(told(&["list"]).stderr, "");
    assert_eq!(told(&["list", "--json"]).stdout, "[]\n");
}

#[test]
fn a_filter_has_several_parts_and_never_takes_one_for_text() {
    let env = Env::new();
    env.post("resize");
    env.post("a, owner=none");
    env.claim("@1", "ada");
    let names = |filter: &str| {
        crate::support::env::names(&env.jobboard(&["list", "--json", "--filter", filter]).run())
    };
    assert_eq!(names("name=resize and owner=ada"), ["resize"]);
    assert!(names("name=resize and owner=none").is_empty());
    assert_eq!(names("name=\"a, owner=none\""), ["a, owner=none"]);
    let run = env
        .jobboard(&["list", "--filter", "name=a, owner=none"])
        .run();
    assert!(
        run.failed(2).contains("is left over behind `name=a`"),
        "{run}"
    );
}

#[test]
fn only_the_jobs_of_a_name_are_listed() {
    let env = Env::new();
    for name in ["backup-a", "grow", "none"] {
        env.post(name);
    }
    let named = |name: &str| names(&env.jobboard(&["list", "--name", name, "--json"]).run());
    assert_eq!(named("backup-*"), ["backup-a"]);
    assert_eq!(named("none"), ["none"]);
}
