//! `jobboard list`.

use serde_json::json;

use crate::{
    conduct::{Stage, on_one_board},
    support::env::{Env, names, wait_until},
};

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
fn table_lists_the_best_jobs_first() {
    let run = three().run("list -o table");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES  TRIES  NOTE
    00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -  0  -
    00000002  middle  CLAIMED  NORMAL  AGE  ada  AGE  never  0  never expires
    00000003  late  UNCLAIMED  LOW  AGE  -  -  -  0  -
    --- stderr
    ");
}

#[test]
fn pipe_gets_the_columns_of_the_table() {
    let run = three().run("list");
    for line in run.succeeded().lines() {
        assert_eq!(line.split('\t').count(), 10, "{line}");
    }
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    00000001-0000-0000-0000-000000000000	first	UNCLAIMED	VERY_HIGH	SECONDS				0
    00000002-0000-0000-0000-000000000000	middle	CLAIMED	NORMAL	SECONDS	ada	SECONDS	never	0	never expires
    00000003-0000-0000-0000-000000000000	late	UNCLAIMED	LOW	SECONDS				0
    --- stderr
    ");
}

#[test]
fn header_names_the_columns_of_tab_separated_lines() {
    let env = three();
    let list = |words: &[&str]| {
        let words = [&["list", "--header"], words].concat();
        env.jobboard(&words).run().succeeded().to_owned()
    };
    let titles = "uuid\tname\tstate\tpriority\tage\towner\theld\texpires\tattempts\tnote\n";
    assert!(list(&[]).starts_with(titles));
    assert_eq!(list(&["--limit", "0"]), titles);
    let narrow = list(&["--columns", "name,key", "--limit", "1"]);
    assert!(narrow.starts_with("name\tkey\nfirst\t"), "{narrow}");
    assert_eq!(
        list(&["--trash"]),
        "uuid\tname\ttrashed\tattempts\tby\treason\n"
    );
    assert!(list(&["-o", "table"]).starts_with("UUID "));
    assert!(list(&["--json"]).starts_with("[\n{"));
}

#[test]
fn json_has_every_key_and_null_for_absent_values() {
    let env = three();
    let jobs = env.json("list --json");
    let keys: Vec<_> = jobs[0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys.join(" "),
        "uuid key name state priority sequence created_on last_modified owner lease expires_in \
         claimed_on fence trashed_on ended_on outcome by action action_on reason waited took exit_code signal book \
         details attempts postponed not_before last_failure failures problem"
    );
    assert!(jobs[0]["owner"].is_null());
    assert_eq!(jobs[1]["owner"], "ada");
    assert_eq!(jobs[1]["lease"], "none");
    assert_eq!(jobs[1]["fence"], "1");
}

#[test]
fn uuid_format_prints_uuids_only() {
    let env = Env::new();
    let uuid = env.post("resize");
    let run = env.run("list -o uuid");
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
fn order_can_be_chosen_and_reversed() {
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
fn taskflow_order_is_unsupported_on_embedded_boards() {
    let run = three().run("list --sort taskflow --json");
    assert_eq!(run.code, 4);
    assert_eq!(run.error()["kind"], "unsupported");
}

#[test]
fn limit_reports_the_number_of_omitted_jobs() {
    let run = three().run("list --limit 1 -o table");
    insta::assert_snapshot!(run, @"
    exit code 0
    --- stdout
    UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES  TRIES  NOTE
    00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -  0  -
    --- stderr
    2 more not shown (--limit)
    ");
}

#[test]
fn count_is_a_number() {
    let env = three();
    let count = |arguments: &[&str]| env.jobboard(arguments).run().json();
    assert_eq!(count(&["list", "--count", "--json"]), 3);
    assert_eq!(count(&["list", "--count", "--filter", "owner=ada"]), 1);
}

#[test]
fn empty_table_has_a_note_that_skips_the_trash() {
    let env = Env::new();
    env.post("resize");
    env.trash("@1");
    let outcome = |arguments: &[&str]| env.jobboard(arguments).run();
    let noted = |words: &[&str]| outcome(&[&["list", "-o", "table"], words].concat()).stderr;
    let trash = "1 in the trash: `jobboard list --trash`";
    assert_eq!(noted(&[]), format!("no jobs; {trash}\n"));
    assert_eq!(noted(&["resize"]), format!("no job matches; {trash}\n"));
    assert_eq!(noted(&["--state", "CLAIMED"]), "no job matches\n");
    assert_eq!(noted(&["-q"]), "");
    assert_eq!(outcome(&["list"]).stderr, "");
    assert_eq!(outcome(&["list", "--json"]).stdout, "[]\n");
}

#[test]
fn and_joins_conditions_and_is_never_part_of_a_text() {
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
    let run = env.run("list --filter 'name=a, owner=none'");
    assert!(run.failed(2).contains("after `name=a`"), "{run}");
}

#[test]
fn name_option_selects_by_pattern() {
    let env = Env::new();
    for name in ["backup-a", "grow", "none"] {
        env.post(name);
    }
    let named = |name: &str| names(&env.run(format!("list --name {name} --json")));
    assert_eq!(named("backup-*"), ["backup-a"]);
    assert_eq!(named("none"), ["none"]);
}

on_one_board!(
    problems_of_jobs_are_noted,
    jobs_can_be_sorted_by_any_field,
    jobs_can_be_counted_by_any_field,
    trash_and_history_have_their_own_columns,
);

/// Returns a listing without the padding of its columns.
fn shown(stage: &Stage, words: &[&str]) -> Vec<String> {
    let words = [&["list", "-o", "table"], words].concat();
    let run = stage.env.jobboard(&words).run();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    run.succeeded().lines().map(words).collect()
}

fn problems_of_jobs_are_noted(stage: &Stage) {
    let jobs = ["stuck", "busy", "failing", "fresh"].map(|name| stage.env.post(name));
    stage.env.claim(&jobs[0], "ada");
    let run = |words: &[&str]| stage.env.jobboard(words).run();
    let fail = [
        "claim",
        &jobs[2],
        "--retry-delay",
        "1d",
        "--retry-max",
        "1d",
        "--",
        "false",
    ];
    run(&fail).failed(1);
    let holding = stage.env.jobboard(&["claim", &jobs[1], "--hold"]).spawn();
    wait_until("it is held", || stage.env.state(&jobs[1]) == "CLAIMED");
    let rows = shown(
        stage,
        &["--columns", "name,tries,note", "--sort", "sequence"],
    );
    assert_eq!(
        rows[..3],
        ["NAME TRIES NOTE", "stuck 0 never expires", "busy 0 -"]
    );
    assert!(rows[3].starts_with("failing 1 retry in "), "{rows:?}");
    assert_eq!(rows[4..], ["fresh 0 -"]);
    // Other formats get the same, with the usual fields unless fields are requested.
    let stuck = run(&[
        "list",
        "--columns",
        "note,+attempts",
        "--filter",
        "name=stuck",
    ]);
    assert_eq!(stuck.succeeded(), "never expires\t0\n");
    assert_eq!(
        run(&["list", "--name", "fresh"])
            .succeeded()
            .split('\t')
            .count(),
        10
    );
    drop(holding);
}

fn jobs_can_be_sorted_by_any_field(stage: &Stage) {
    for (name, size, priority) in [
        ("a", "size:=10", "LOW"),
        ("b", "size:=9", "HIGH"),
        ("c", "x=1", "LOW"),
    ] {
        let post = ["post", name, size, "--priority", priority];
        stage.env.jobboard(&post).run().succeeded();
    }
    stage.env.ok("claim --next --filter name=c");
    let sorted = |words: &[&str]| {
        let words = [&["list", "--json", "--sort"], words].concat();
        names(&stage.env.jobboard(&words).run()).concat()
    };
    assert_eq!(sorted(&["details.size"]), "bac");
    assert_eq!(sorted(&["-details.size"]), "abc");
    assert_eq!(sorted(&["-sequence"]), "cba");
    assert_eq!(sorted(&["-priority"]), "bac");
    assert_eq!(sorted(&["held"]), "cba");
    assert_eq!(sorted(&["age", "--reverse"]), "cba");
    assert_eq!(sorted(&["-name", "--limit", "2"]), "cb");
}

fn jobs_can_be_counted_by_any_field(stage: &Stage) {
    let post = |name, detail| stage.env.jobboard(&["post", name, detail]).run().posted();
    let [claimed, trashed, ..] = [
        post("grow", "v=1"),
        post("grow", "v=2"),
        post("shrink", "v=2"),
        post("grow", "w=1"),
    ];
    stage.env.claim(&claimed, "ada");
    let count = |words: &[&str]| {
        let words = [&["list", "--count", "--by"], words].concat();
        stage.env.jobboard(&words).run()
    };
    assert_eq!(
        count(&["state,owner"]).succeeded(),
        "UNCLAIMED\t\t3\nCLAIMED\tada\t1\n"
    );
    let counted = count(&["details.v", "--json"]).json();
    let expected = json!([
        {"details.v": "2", "count": 2},
        {"details.v": "1", "count": 1},
        {"details.v": null, "count": 1},
    ]);
    assert_eq!(counted, expected);
    let filtered = count(&["name", "--filter", "owner=none", "-o", "table"]);
    let table = "NAME    COUNT\ngrow        2\nshrink      1\n";
    assert_eq!(filtered.succeeded(), table);
    stage.env.trash(&trashed);
    assert_eq!(count(&["name", "--trash"]).succeeded(), "grow\t1\n");
    let rest = "--filter=owner=none";
    let consume = ["consume", rest, "--force", "--yes", "--reason", "no more"];
    stage.env.jobboard(&consume).run().succeeded();
    let past = count(&["reason,outcome", "--history", "-o", "jsonl"]);
    let expected = "{\"reason\":\"no more\",\"outcome\":\"consumed\",\"count\":2}\n";
    assert_eq!(past.succeeded(), expected);
    let none = count(&["name", "--name", "nobody", "--json"]);
    assert_eq!(none.succeeded(), "[]\n");
}

fn trash_and_history_have_their_own_columns(stage: &Stage) {
    let [given_up, done] = ["given-up", "done"].map(|name| stage.env.post(name));
    let run = |words: &[&str]| stage.env.jobboard(words).run();
    let because = [
        "--force",
        "--yes",
        "--who",
        "olga",
        "--reason",
        "no such volume",
    ];
    run(&[&["trash", &given_up], &because[..]].concat()).succeeded();
    run(&[&["consume", &done], &because[..]].concat()).succeeded();
    let trash = shown(stage, &["--trash"]);
    assert_eq!(trash[0], "UUID NAME TRASHED TRIES BY REASON");
    assert!(trash[1].ends_with(" 0 olga no such volume"), "{trash:?}");
    let past = shown(stage, &["--history", "--columns", "-ended"]);
    assert_eq!(past[0], "UUID NAME OUTCOME WAITED TOOK BY REASON");
    assert!(
        past[1].ends_with(" done consumed - - olga no such volume"),
        "{past:?}"
    );
    // The plan for the trash is shown like the trash.
    let purge = run(&["purge", "--all", "--dry-run", "-o", "table"]);
    assert!(purge.succeeded().contains("REASON"), "{purge}");
    let trash = run(&["list", "--trash"]);
    let fields: Vec<_> = trash.succeeded().trim_end().split('\t').collect();
    assert_eq!(fields[..2], [&*given_up, "given-up"]);
    assert_eq!(fields[3..], ["0", "olga", "no such volume"]);
    let old = run(&["list", "--trash", "--filter", "trashed>1h", "--count"]);
    assert_eq!(old.succeeded(), "0\n");
}

#[test]
fn columns_need_a_format_with_columns() {
    let env = three();
    let refused = |words: &[&str]| {
        let run = env.jobboard(&[&["list"], words].concat()).run();
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run}");
        run.stderr
    };
    assert!(refused(&["--columns", "name", "--json"]).contains("needs -o table or -o tsv"));
    assert!(refused(&["--columns", "name", "-o", "uuid"]).contains("needs -o table or -o tsv"));
    assert!(refused(&["--columns", "name,-name"]).contains("must leave at least one column"));
    assert!(refused(&["--columns", "colour"]).contains("the columns are uuid, name"));
    assert!(refused(&["--by", "state"]).contains("--count"));
    assert!(
        refused(&["--count", "--by", "state", "-o", "uuid"])
            .contains("cannot be used with -o uuid")
    );
}

#[test]
fn color_always_outweighs_no_color() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let words = ["--color", "always", "list", "-o", "table"];
    let run = env.jobboard(&words).env("NO_COLOR", "1").run();
    assert!(run.succeeded().contains("\u{1b}[1m"), "{run}");
    assert!(run.stdout.contains("\u{1b}[94m"), "{run}");
}

#[test]
fn limit_of_zero_lists_nothing_without_a_note() {
    let env = Env::new();
    env.post("resize");
    let run = env.jobboard(&["list", "-n", "0"]).run();
    assert_eq!((run.succeeded(), run.stderr.as_str()), ("", ""));
}

#[test]
fn command_that_never_runs_is_noted() {
    let env = Env::new();
    env.load("wrong", &json!({"command": ["./x"]}));
    let run = env.jobboard(&["list", "-o", "table"]).run();
    assert!(run.succeeded().contains("invalid-command"), "{run}");
}

#[test]
fn ended_job_is_not_attributed_to_an_earlier_retry() {
    let stage = Stage::embedded().unwrap();
    let mended = stage.env.file("mended");
    let test = ["post", "a", "max_attempts:=1", "--", "test", "-e"];
    let post = [&test[..], &[mended.to_str().unwrap()]].concat();
    stage.env.jobboard(&post).run().succeeded();
    stage.env.run("conduct --drain").failed(7);
    std::fs::write(&mended, "").unwrap();
    stage.env.ok("retry a --who olga");
    stage.env.ok("conduct --drain");
    let past = shown(&stage, &["--history", "--columns", "name,action,by"]);
    assert_eq!(past, ["NAME ACTION BY", "a - -"]);
    let past = stage.env.run("list --history --json").json();
    assert_eq!(past[0]["by"], json!(null));
    assert_eq!(
        stage.env.ok("list --history --count --filter by=olga"),
        "0\n"
    );
    assert!(
        stage.env.ok("show a").contains("earlier"),
        "show keeps the retry"
    );
}
