//! `jobboard list`.

use serde_json::json;

use crate::{
    conduct::{Stage, on_every_board, on_one_board},
    support::{Env, play, play_on, wait_until},
};

on_every_board!(job_beyond_a_lowered_limit_is_reported,);

fn job_beyond_a_lowered_limit_is_reported(stage: &Stage) {
    let text = format!("text={}", "x".repeat(5000));
    let large = stage.env.run(["post", "large", &text]).posted();
    let board = format!(
        "max_details = 2000\ndefault = \"b\"\n[board.b]\nurl = {}\n",
        stage.url()
    );
    stage.env.configure(&board);
    let show = |job: &str| format!("show {job} --json");
    for words in ["list --json".to_owned(), show(&large), show(&large[..8])] {
        let found = stage.env.json(&words);
        let job = found.get(0).unwrap_or(&found);
        let problem = job["problem"].as_str().unwrap_or_default();
        assert!(
            problem.contains("more than max_details (2000)"),
            "{words}: {found}"
        );
    }
}

/// Three jobs, of which `middle` is claimed.
fn three() -> Env {
    let env = Env::new();
    for (name, priority) in [
        ("late", "low"),
        ("middle", "normal"),
        ("first", "very_high"),
    ] {
        env.ok(["post", name, "--priority", priority]);
    }
    env.claim("@2", "ada");
    env
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
    assert_eq!(env.run("list -o uuid").succeeded(), format!("{uuid}\n"));
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
    let run = stage.env.run(words);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    run.succeeded().lines().map(words).collect()
}

fn problems_of_jobs_are_noted(stage: &Stage) {
    let jobs = ["stuck", "busy", "failing", "fresh"].map(|name| stage.env.post(name));
    stage.env.claim(&jobs[0], "ada");
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
    stage.env.fails(1, fail);
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
    let stuck = "list --columns note,+attempts --filter name=stuck";
    assert_eq!(stage.env.ok(stuck), "never expires\t0\n");
    assert_eq!(stage.env.ok("list --name fresh").split('\t').count(), 10);
    drop(holding);
}

fn jobs_can_be_sorted_by_any_field(stage: &Stage) {
    play_on(
        &stage.env,
        "jobs can be sorted by any field",
        r#"
        0 post a size:=10 --priority LOW
        0 post b size:=9 --priority HIGH
        0 post c x=1 --priority LOW
        0 claim --next --filter name=c
        0 list --columns name --sort details.size == b\na\nc
        0 list --columns name --sort -details.size == a\nb\nc
        0 list --columns name --sort -sequence == c\nb\na
        0 list --columns name --sort -priority == b\na\nc
        0 list --columns name --sort held == c\nb\na
        0 list --columns name --sort age --reverse == c\nb\na
        0 list --columns name --sort -name --limit 2 == c\nb
        "#,
    );
}

fn jobs_can_be_counted_by_any_field(stage: &Stage) {
    play_on(
        &stage.env,
        "jobs can be counted by any field",
        r#"
        0 post grow v=1 --unique claimed
        0 post grow v=2 --unique trashed
        0 post shrink v=2
        0 post grow w=1
        0 claim unique:claimed --who ada
        0 list --count --by state,owner == UNCLAIMED\t\t3\nCLAIMED\tada\t1
        0 list --count --by details.v -o jsonl == {"details.v":"2","count":2}\n{"details.v":"1","count":1}\n{"details.v":null,"count":1}
        0 list --count --by name --filter owner=none -o table == NAME    COUNT\ngrow        2\nshrink      1
        0 trash unique:trashed --force --yes
        0 list --count --by name --trash == grow\t1
        0 consume --filter=owner=none --force --yes --reason 'no more'
        0 list --count --by reason,outcome --history -o jsonl == {"reason":"no more","outcome":"consumed","count":2}
        0 list --count --by name --name nobody --json == []
        "#,
    );
}

fn trash_and_history_have_their_own_columns(stage: &Stage) {
    let [given_up, done] = ["given-up", "done"].map(|name| stage.env.post(name));
    let run = |words: &[&str]| stage.env.run(words);
    let because = "--force --yes --who olga --reason 'no such volume'";
    stage.env.ok(format!("trash {given_up} {because}"));
    stage.env.ok(format!("consume {done} {because}"));
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
    run(&["purge", "--all", "--dry-run", "-o", "table"]).prints("REASON");
    let trash = run(&["list", "--trash"]);
    let fields: Vec<_> = trash.succeeded().trim_end().split('\t').collect();
    assert_eq!(fields[..2], [&*given_up, "given-up"]);
    assert_eq!(fields[3..], ["0", "olga", "no such volume"]);
    let old = run(&["list", "--trash", "--filter", "trashed>1h", "--count"]);
    assert_eq!(old.succeeded(), "0\n");
}

#[test]
fn color_always_outweighs_no_color() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let words = ["--color", "always", "list", "-o", "table"];
    let run = env.jobboard(&words).env("NO_COLOR", "1").run();
    run.prints("\u{1b}[1m");
    run.shows("\u{1b}[94m");
}

#[test]
fn command_that_never_runs_is_noted() {
    let env = Env::new();
    env.load("wrong", &json!({"command": ["./x"]}));
    env.run(["list", "-o", "table"]).prints("invalid-command");
}

#[test]
fn ended_job_is_not_attributed_to_an_earlier_retry() {
    let stage = Stage::embedded().unwrap();
    let mended = stage.env.file("mended");
    let test = ["post", "a", "max_attempts:=1", "--", "test", "-e"];
    let post = [&test[..], &[mended.to_str().unwrap()]].concat();
    stage.env.ok(post);
    stage.env.fails(7, "conduct --drain");
    std::fs::write(&mended, "").unwrap();
    stage.env.ok("retry a --who olga");
    stage.env.ok("conduct --drain");
    // The conductor ended the job; the retry by olga did not.
    let past = stage.env.run("list --history --json").json();
    let owner = past[0]["by"].as_str().unwrap();
    let listed = shown(&stage, &["--history", "--columns", "name,action,by"]);
    assert_eq!(
        listed,
        ["NAME ACTION BY".to_owned(), format!("a - {owner}")]
    );
    let filter = format!("by=\"{owner}\"");
    let count = ["list", "--history", "--count", "--filter", &filter];
    assert_eq!(stage.env.ok(count), "1\n");
    assert!(
        stage
            .env
            .ok("show a")
            .contains(&format!("by            {owner}\n"))
    );
    assert_eq!(
        stage.env.ok("list --history --count --filter by=olga"),
        "0\n"
    );
    assert!(
        stage.env.ok("show a").contains("earlier"),
        "show keeps the retry"
    );
}

#[test]
fn choices_and_refusals_of_lists() {
    play(
        r#"
        # conditions and orders that are refused
        0 post resize
        0 post 'a, owner=none'
        0 claim @1 --who ada
        0 list --columns name --filter 'name=resize and owner=ada' == resize
        0 list --columns name --filter 'name=resize and owner=none' == (nothing)
        0 list --columns name --filter 'name="a, owner=none"' == a, owner=none
        2 list --filter 'name=a, owner=none' => after `name=a`
        4 list --sort taskflow --json => {"error":{"code":4,"kind":"unsupported"

        # columns need a format with columns
        2 list --columns name --json => needs -o table or -o tsv
        2 list --columns name -o uuid => needs -o table or -o tsv
        2 list --columns name,-name => must leave at least one column
        2 list --columns colour => the columns are uuid, name
        2 list --by state => --count
        2 list --count --by state -o uuid => cannot be used with -o uuid

        # names, counts and limits
        0 post backup-a
        0 post grow
        0 post none
        0 claim @2 --who ada
        0 list --columns name --name backup-* == backup-a
        0 list --columns name --name none == none
        0 list --count --json == 3
        0 list --count --filter owner=ada == 1
        0 list -n 0 == (nothing)

        # states, filters, orders and limits choose the jobs
        0 post late --priority low
        0 post middle
        0 post first --priority very_high
        0 claim @2 --who ada
        0 list -o table == UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES  TRIES  NOTE\n00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -  0  -\n00000002  middle  CLAIMED  NORMAL  AGE  ada  AGE  never  0  never expires\n00000003  late  UNCLAIMED  LOW  AGE  -  -  -  0  -
        0 list --limit 1 -o table == UUID  NAME  STATE  PRIORITY  AGE  OWNER  HELD  EXPIRES  TRIES  NOTE\n00000001  first  UNCLAIMED  VERY_HIGH  AGE  -  -  -  0  - => 2 more not shown (--limit)
        0 list --columns name --sort name == first\nlate\nmiddle
        0 list --columns name --sort age == late\nmiddle\nfirst
        0 list --columns name --sort owner --limit 1 == middle
        0 list --columns name --sort none -> late -> middle -> first
        0 list --columns name --reverse == late\nmiddle\nfirst
        0 trash @1 --force --yes
        0 list --columns name --state claimed == middle
        0 list --columns name --unclaimed == first
        0 list --columns name --trash == late
        0 list --columns name --state TRASHED == late
        0 list --columns name --filter owner=ada == middle
        0 list --columns name --filter name=f* == first
        0 list --columns name --filter priority>=NORMAL --filter owner=none == first
        "#,
    );
}

#[test]
fn empty_and_piped_lists() {
    play(
        r#"
        # an empty table has a note that skips the trash
        0 post resize
        0 trash @1 --force --yes
        0 list -o table => no jobs; 1 in the trash: `jobboard list --trash`
        0 list -o table resize => no job matches; 1 in the trash: `jobboard list --trash`
        0 list -o table --state CLAIMED => no job matches !> in the trash
        0 list -o table -q => (nothing)
        0 list => (nothing)
        0 list --json == []

        # a pipe gets the columns of the table, and their names on request
        0 post late --priority low
        0 post middle
        0 post first --priority very_high
        0 claim @2 --who ada
        0 list == 00000001-0000-0000-0000-000000000000\tfirst\tUNCLAIMED\tVERY_HIGH\tSECONDS\t\t\t\t0\n00000002-0000-0000-0000-000000000000\tmiddle\tCLAIMED\tNORMAL\tSECONDS\tada\tSECONDS\tnever\t0\tnever expires\n00000003-0000-0000-0000-000000000000\tlate\tUNCLAIMED\tLOW\tSECONDS\t\t\t\t0
        0 list --limit 1 -> \t0\t\n
        0 list --header -> uuid\tname\tstate\tpriority\tage\towner\theld\texpires\tattempts\tnote\n
        0 list --header --limit 0 == uuid\tname\tstate\tpriority\tage\towner\theld\texpires\tattempts\tnote
        0 list --header --columns name,key --limit 1 -> name\tkey\nfirst\t
        0 list --header --trash == uuid\tname\ttrashed\tattempts\tby\treason
        0 list --header -o table -> UUID  NAME
        0 list --header --json -> [\n{
        "#,
    );
}
