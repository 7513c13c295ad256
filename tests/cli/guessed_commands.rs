//! Words that newcomers type: each works, or suggests the right command.

use crate::support::env::Env;

fn stocked() -> Env {
    let env = Env::new();
    let fail = [
        "post",
        "backup",
        "max_attempts:=1",
        "--",
        "sh",
        "-c",
        "echo disk full >&2; exit 3",
    ];
    env.jobboard(&fail).run().succeeded();
    let _ = env.run("conduct --drain");
    env.post("deploy");
    env
}

#[test]
fn guessed_commands_act_as_their_names_suggest() {
    let env = stocked();
    for (line, expected) in [
        ("add resize", ""),
        ("enqueue resize", ""),
        ("submit resize -- true", ""),
        ("describe deploy", "deploy"),
        ("get deploy", "deploy"),
        ("info deploy", "deploy"),
        ("inspect deploy", "deploy"),
        ("show deploy", "deploy"),
        ("logs backup", "disk full"),
        ("ps", ""),
        ("workers", ""),
        ("failed", "disk full"),
        ("find deploy", "deploy"),
        ("cat deploy", "deploy"),
        ("completion bash", "jobboard"),
        ("dlq", "backup"),
        ("dead-letter", "backup"),
        ("stats", "unclaimed"),
        ("dead", "disk full"),
        ("errors", "disk full"),
        ("failures", "disk full"),
        ("list --failed", "disk full"),
        ("history", ""),
        ("list --past", ""),
        ("list -n 1", ""),
        ("list deploy", "deploy"),
        ("list --filter DEPL", "deploy"),
        ("jobs", "deploy"),
        ("get jobs", "deploy"),
        ("queue", "deploy"),
        ("count", ""),
        ("output backup", "disk full"),
        ("backup", "deploy"),
        ("suspend", ""),
        ("top --once", "deploy"),
        ("ui --once", "deploy"),
        ("tail --timeout 10ms", ""),
        ("follow --timeout 10ms", ""),
        ("events --timeout 10ms", ""),
        ("version", "jobboard "),
        ("export", "deploy"),
        ("pause", ""),
        ("rm --force --yes @2", ""),
        ("work --drain --max-jobs 1", ""),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let run = env.jobboard(&words).run();
        assert!(run.succeeded().contains(expected), "{line}: {run}");
    }
    let purge = ["purge", "--all", "--yes"];
    env.jobboard(&purge).run().succeeded();
    for line in ["why deploy", "explain deploy", "status deploy"] {
        let words: Vec<_> = line.split(' ').collect();
        env.post("deploy");
        let run = env.jobboard(&words).run();
        assert_eq!(run.code, 4, "{line}: {run}");
        assert!(run.stdout.contains("no-conductor"), "{line}: {run}");
        let deploy = env.run("list deploy -o uuid");
        let trash = ["trash", "--force", "--yes", deploy.succeeded().trim()];
        env.jobboard(&trash).run().succeeded();
        env.jobboard(&purge).run().succeeded();
    }
}

#[test]
fn guessed_words_without_a_command_are_answered() {
    let env = stocked();
    for (line, answer) in [
        ("init", "`jobboard post "),
        ("use redis://host", "--board redis://host "),
        ("use localhost:6379", "--board redis://localhost:6379 "),
        ("kill 3f9a", "trash --force 3f9a"),
        ("kill nap", "`jobboard trash --force nap`"),
        ("reset nap", "`jobboard retry nap`"),
        ("drain", "`jobboard pause '*'`"),
        ("purge --failed", "`jobboard purge --problem failed`"),
        ("boards", "`jobboard config`"),
        ("clear", "`jobboard purge --all`"),
        ("stop", "`jobboard pause '*'`"),
        ("ack 3f9a", "`jobboard consume 3f9a`"),
        ("release 3f9a", "`jobboard abandon 3f9a`"),
        ("mv", "copy --move"),
        ("rename", "change JOB --name NAME"),
        ("schedule", "cron"),
        ("cron", "cron"),
        ("unclaim 3f9a", "`jobboard abandon 3f9a`"),
        ("nack 3f9a", "`jobboard trash --failed 3f9a`"),
        ("pop", "`jobboard claim --next`"),
        ("next", "`jobboard claim --next`"),
        ("board", "`jobboard help boards`"),
        ("abort 3f9a", "trash --force 3f9a"),
        ("empty", "`jobboard list --trash`"),
        ("clear", "`jobboard list --trash`"),
        ("filters", "`jobboard help filters`"),
        ("exit-codes", "`jobboard help exit-codes`"),
        ("launch", "`jobboard run NAME -- COMMAND`"),
        ("daemon", "`jobboard conduct`"),
        ("lock 3f9a", "`jobboard claim 3f9a`"),
        ("whoami", "`jobboard config`"),
        ("retry failed", "`jobboard retry --problem failed`"),
        ("purge all", "`jobboard purge --all`"),
        ("trash failed", "`jobboard list --failed`"),
        ("exec -- echo hi", "`jobboard run NAME -- COMMAND`"),
        ("exec bad", "`jobboard claim JOB -- COMMAND`"),
        ("connect localhost:6379", "--board redis://localhost:6379 "),
        ("help redis", "`jobboard help boards`"),
    ] {
        is_answered(&env, line, answer);
    }
}

fn is_answered(env: &Env, line: &str, answer: &str) {
    let words: Vec<_> = line.split(' ').collect();
    let run = env.jobboard(&words).run();
    assert!(run.failed(2).contains(answer), "{line}: {run}");
}

#[test]
fn guessed_options_are_answered() {
    let env = stocked();
    for (line, answer) in [
        ("list --prio x", "--priority"),
        ("list -b x", "--board"),
        ("status --watch", "jobboard dash"),
        ("conduct --daemon", "systemd"),
        ("list --claimed", "`jobboard list --state claimed`"),
        ("list --running", "`jobboard list --state claimed`"),
        ("list --pending", "`jobboard list --unclaimed`"),
        ("list --done", "`jobboard list --history`"),
        ("list --state failed", "`jobboard list --failed`"),
        ("retry --all", "`jobboard retry --problem failed`"),
        ("trash --list", "`jobboard list --trash`"),
        ("retry-all", "`jobboard retry --problem failed`"),
        ("run-all", "`jobboard conduct --drain`"),
        ("fix", "`jobboard doctor --fix`"),
        ("hold 3f9a", "`jobboard claim 3f9a --hold`"),
        ("failover", "`jobboard drill`"),
        ("octavia", "`jobboard help octavia`"),
        ("tutorial", "docs/tutorial.md"),
        ("scripting", "`jobboard help output`"),
        ("list --dead", "`jobboard list --failed`"),
        ("show --logs a", "--output"),
        ("purge --trash", "`jobboard purge --all`"),
        ("pause --all", "`jobboard pause '*'`"),
        ("conduct -c 2", "`jobboard conduct --jobs 2`"),
        ("conduct --concurrency 2", "`jobboard conduct --jobs 2`"),
        ("cancel --all", "`jobboard trash --force --name '*'`"),
        ("wait --all", "`jobboard wait --empty`"),
        ("conduct -n 2", "`jobboard conduct --jobs 2`"),
        ("conduct -p 2", "`jobboard conduct --jobs 2`"),
        ("retry", "`jobboard retry --problem failed`"),
        ("retry --dry-run", "`jobboard retry --problem failed`"),
        ("conduct --workers", "`jobboard conduct --jobs N`"),
        ("conduct --once", "`jobboard conduct --drain`"),
        ("post a --delay 5m", "cron"),
        ("post a --max-attempts 2", "`max_attempts:=N`"),
        ("post a --env A=b", "env:="),
    ] {
        is_answered(&env, line, answer);
    }
}

#[test]
fn options_of_other_programs_are_answered() {
    let env = stocked();
    for (line, answer) in [
        ("post a --depends-on b", "after `jobboard wait`"),
        ("post a --payload {}", "`jobboard post NAME KEY=TEXT`"),
        ("run a --retry 3 -- true", "`jobboard post NAME -- COMMAND`"),
        ("doctor --repair", "`--fix`"),
        ("conduct backup", "`jobboard conduct --filter name=NAME`"),
        ("conduct --shell", "sh -c"),
        ("conductors stop night", "`kill -TERM PID`"),
        ("list --page 2", "`jobboard list --limit N`"),
        ("list --state completed", "`jobboard list --history`"),
        ("list --state ready", "`jobboard list --unclaimed`"),
        ("show deploy -o yaml", "did you mean `-o json`?"),
        ("show deploy --format yaml", "`--format json`"),
        ("wait --until-done", "`jobboard wait --empty`"),
        ("post a -e A=b", "env:="),
        ("post --cmd 'echo hi'", "`jobboard post NAME -- COMMAND`"),
        ("post a --queue q", "`jobboard post NAME queue=a`"),
        ("status --all", "`jobboard list`"),
        ("ps -a", "`jobboard conductors`"),
        ("conduct --until-empty", "`jobboard conduct --drain`"),
        ("conduct --retry 0", "`jobboard conduct --max-attempts "),
        ("conduct --limit 5", "`--max-jobs`"),
        ("conduct --threads 2", "`jobboard conduct --jobs 2`"),
        ("ls -l", "`jobboard show UUID`"),
        ("ls -a", "`--history`"),
        ("list --sort-by name", "`--sort`"),
        ("list --grep x", "`--filter`"),
        ("list --fields name", "`--columns`"),
        ("list --queue q", "`jobboard list --filter name=NAME`"),
        ("top -n 1", "`jobboard dash --once`"),
        ("tail -n 5", "`jobboard watch --count"),
        ("config list", "`jobboard config`"),
        ("watch deploy", "`jobboard watch --filter name=deploy`"),
        ("add echo hi", "`jobboard post echo -- echo hi`"),
        ("run hi", "`jobboard run hi -- COMMAND`"),
        (
            "list -n -1",
            "-n: invalid value `-1`: use a number, 0 or more",
        ),
        ("wait --empty --timeout -1s", "`-1s`: use a duration"),
        ("post a --timeout 10m", "--timeout needs --wait"),
        ("doctor --dry-run", "--dry-run needs --fix"),
        ("list --by state", "--by needs --count"),
        ("trash --force --filter report", "write name=report"),
        ("claim --next --filter report", "write name=report"),
        ("--board localhost:6379 list", "redis://localhost:6379"),
        ("--board zk1:2181/taskflow list", "zk://zk1:2181/taskflow"),
    ] {
        is_answered(&env, line, answer);
    }
}

#[test]
fn forgotten_dashes_are_answered_with_the_corrected_line() {
    let env = Env::new();
    for (line, answer) in [
        ("post ls -la", "`jobboard post ls -- ls -la`"),
        ("add ls -la", "`jobboard post ls -- ls -la`"),
        ("post x --- ls", "`jobboard post x -- ls`"),
        (
            "post x k=v --priority HIGH --- ls",
            "`jobboard post x k=v --priority HIGH -- ls`",
        ),
        (
            "post head -5 /etc/hosts",
            "`jobboard post head -- head -5 /etc/hosts`",
        ),
        (
            "post x --who ada ls -l",
            "`jobboard post x --who ada -- ls -l`",
        ),
        ("run tail -f log", "`jobboard run tail -- tail -f log`"),
        ("run echo hi", "`jobboard run echo -- echo hi`"),
        (
            "-q --who ada post ls -l",
            "`jobboard -q --who ada post ls -- ls -l`",
        ),
        ("claim 3f9a ls -l", "`jobboard claim 3f9a -- ls -l`"),
        ("claim 3f9a ls", "`jobboard claim 3f9a -- ls`"),
        ("claim --next ls -l", "`jobboard claim --next -- ls -l`"),
        ("change 3f9a ls /tmp", "`jobboard change 3f9a -- ls /tmp`"),
        (
            "change 3f9a priority=HIGH size:=2",
            "`jobboard change 3f9a --priority HIGH --set size:=2`",
        ),
        ("change 3f9a @2 ls -l", "`jobboard change 3f9a @2 -- ls -l`"),
        (
            "change 3f9a --command 'ls /tmp'",
            "`jobboard change 3f9a -- ls /tmp`",
        ),
        (
            "change 3f9a --command 'ls *'",
            "`jobboard change 3f9a -- sh -c 'ls *'`",
        ),
    ] {
        let run = env.run(line);
        assert!(run.failed(2).contains(answer), "{line}: {run}");
    }
    for line in [
        "post x --priorty LOW",
        "claim 3f9a --bogus",
        "post a --bogus -- true",
        "post mysql --password x",
    ] {
        let run = env.run(line);
        assert!(!run.failed(2).contains("after `--`"), "{line}: {run}");
    }
}

#[test]
fn list_of_a_state_as_a_name_is_answered() {
    let env = stocked();
    for (word, answer) in [
        ("failed", "`jobboard list --failed`"),
        ("trash", "`jobboard list --trash`"),
        ("running", "`jobboard list --state claimed`"),
        ("waiting", "`jobboard list --unclaimed`"),
        ("history", "`jobboard list --history`"),
    ] {
        let run = env.jobboard(&["list", word]).run();
        assert_eq!(run.succeeded(), "", "{word}");
        assert!(run.stderr.contains(answer), "{word}: {run}");
    }
    // A job may have such a name.
    env.post("failed");
    let run = env.run("list failed");
    assert!(
        run.succeeded().contains("failed") && run.stderr.is_empty(),
        "{run}"
    );
}

#[test]
fn bare_word_is_no_filter_of_a_check() {
    let env = Env::new();
    let run = env.jobboard(&["check", "--filter", "report"]).run();
    assert_eq!(run.code, 3, "{run}");
    assert!(run.stdout.contains("write name=report"), "{run}");
}

#[test]
fn typing_errors_never_suggest_a_destructive_command() {
    let env = Env::new();
    for word in ["trsh", "purg", "consum", "abandn", "conduc", "claer"] {
        let run = env.run(word);
        let answer = run.failed(2);
        for command in ["trash", "purge", "consume", "abandon", "conduct"] {
            assert!(!answer.contains(command), "{word}: {run}");
        }
    }
}

#[test]
fn post_of_a_command_line_as_a_name_shows_how_to_post_a_command() {
    let env = Env::new();
    let run = env.run("post 'echo hi'");
    run.succeeded();
    assert!(
        run.stderr.contains("`jobboard post echo -- echo hi`"),
        "{run}"
    );
    let (_, remove) = run
        .stderr
        .split_once("to remove this job: `jobboard ")
        .unwrap();
    env.run(format!("{} --yes", remove.trim_end().trim_matches('`')))
        .succeeded();
    assert_eq!(env.run("list").succeeded(), "");
    let run = env.run("post 'echo hi' -- echo hi");
    run.succeeded();
    assert_eq!(run.stderr, "");
}

#[test]
fn ambiguous_name_lists_its_jobs() {
    let env = Env::new();
    let uuids = [env.post("twin"), env.post("twin")];
    let run = env.run("show twin");
    let answer = run.failed(3);
    assert!(
        uuids.iter().all(|uuid| answer.contains(&uuid.to_string())),
        "{run}"
    );
}

#[test]
fn commands_that_can_be_undone_take_the_name_of_a_single_job() {
    let env = Env::new();
    let uuid = env.post("deploy");
    let waiting = env.jobboard(&["wait", "deploy"]).spawn();
    env.run("claim --name deploy --next").succeeded();
    env.run(format!("trash {uuid} --failed")).succeeded();
    let waited = waiting.ended();
    assert_eq!(waited.code, 9, "{waited}");
    for (verb, done) in [("retry", "retried"), ("restore", "restored")] {
        let run = env.run("change --priority HIGH deploy");
        assert!(run.succeeded().contains("changed"), "{run}");
        assert!(run.stderr.contains("still in the trash"), "{run}");
        let run = env.run(format!("{verb} deploy"));
        assert!(run.succeeded().contains(done), "{run}");
        let run = env.run("trash --force --yes deploy");
        assert!(run.succeeded().contains(&uuid.to_string()), "{run}");
    }
    let _ = env.post("deploy");
    let _ = env.post("cafe");
    assert_eq!(env.run("retry cafe").code, 4);
    env.run("claim --next --name cafe").succeeded();
    env.run("consume --force --name cafe --yes").succeeded();
    env.run("wait cafe").succeeded();
    assert_eq!(env.run("--board redis://127.0.0.1:1/0 wait deploy").code, 5);
    for (line, hint) in [
        ("retry", "as in `jobboard retry "),
        ("change --priority LOW", "as in `jobboard change "),
        ("trash", "`jobboard trash --force --name deploy` for all"),
        (
            "trash --force",
            "`jobboard trash --force --name deploy` for all",
        ),
    ] {
        let run = env.run(format!("{line} deploy"));
        let answer = run.failed(3);
        assert!(
            answer.contains("2 jobs are named deploy") && answer.contains(hint),
            "{run}"
        );
    }
}

#[test]
fn name_of_a_unique_job_means_the_one_on_the_board() {
    let env = Env::new();
    let post = "post nightly --unique night";
    env.run(post).succeeded();
    env.run("trash --force --yes nightly").succeeded();
    env.run(post).succeeded();
    let run = env.run("show nightly");
    assert!(run.succeeded().contains("UNCLAIMED"), "{run}");
    let run = env.run("change --priority HIGH nightly");
    assert!(run.succeeded().contains("changed"), "{run}");
    assert!(!run.stderr.contains("in the trash"), "{run}");
    let run = env.run("trash --force --yes nightly");
    assert!(run.stderr.contains("replaced a job"), "{run}");
}

#[test]
fn ended_jobs_are_found_by_name() {
    let env = Env::new();
    let end = || {
        let uuid = env.post("deploy");
        env.run(format!("claim {uuid}")).succeeded();
        env.run(format!("consume {uuid}")).succeeded();
        uuid.to_string()
    };
    let (first, last) = (end(), end());
    for command in ["show deploy", "explain deploy"] {
        let run = env.run(command);
        let answer = run.succeeded();
        assert!(
            answer.contains(&last[..8]) && !answer.contains(&first[..8]),
            "{run}"
        );
        assert!(
            run.stderr
                .contains("the last of 2 jobs named deploy that ended"),
            "{run}"
        );
    }
    let posted = env.post("deploy").to_string();
    let run = env.run("show deploy");
    assert!(
        run.succeeded().contains(&posted) && run.stderr.is_empty(),
        "{run}"
    );
}

#[test]
fn commands_that_end_claims_answer_a_name_with_the_uuid_of_the_job() {
    let env = stocked();
    let deploy = env.jobboard(&["list", "deploy", "-o", "uuid"]).run();
    let uuid = deploy.succeeded().trim()[..8].to_owned();
    for verb in [
        "consume --force",
        "claim",
        "consume",
        "abandon",
        "extend --expiry 5m",
    ] {
        let words: Vec<_> = verb.split(' ').chain(["deploy"]).collect();
        let run = env.jobboard(&words).run();
        let answer = run.failed(2);
        assert!(
            answer.contains(&format!(
                "requires a uuid; the job named deploy has the uuid {uuid}"
            )),
            "{run}"
        );
        let expected = match verb.ends_with("5m") {
            true => format!("repeat the command with {uuid} in place of deploy"),
            false => format!("`jobboard {verb} {uuid}`"),
        };
        assert!(answer.contains(&expected), "{run}");
    }
    let purge = env.jobboard(&["purge", "backup"]).run();
    assert!(
        purge
            .failed(2)
            .contains("the job named backup has the uuid "),
        "{purge}"
    );
    let _ = env.post("deploy");
    let run = env.jobboard(&["abandon", "deploy"]).run();
    let answer = run.failed(2);
    assert!(answer.contains("2 jobs are named deploy: "), "{run}");
    assert!(answer.contains("`jobboard abandon --name deploy`"), "{run}");
    let unknown = env.jobboard(&["abandon", "nosuch"]).run();
    assert!(
        unknown.failed(2).contains("is not a job reference"),
        "{unknown}"
    );
}

#[test]
fn name_of_several_jobs_is_ambiguous_wherever_they_are() {
    let env = stocked();
    env.post("backup");
    for line in ["show backup", "explain backup", "status backup"] {
        let words: Vec<_> = line.split(' ').collect();
        let run = env.jobboard(&words).run();
        let answer = run.failed(3);
        assert!(answer.contains("2 jobs are named backup: "), "{run}");
        assert!(
            answer.contains("(UNCLAIMED)") && answer.contains("(TRASHED)"),
            "{run}"
        );
    }
    let logs = env.jobboard(&["logs", "backup"]).run();
    assert!(logs.succeeded().contains("disk full"), "{logs}");
    let owner = env.jobboard(&["owner", "backup"]).run();
    assert!(owner.failed(6).contains("not claimed"), "{owner}");
}

#[test]
fn name_of_hex_digits_is_found_and_unknown_names_hide_no_other() {
    let env = Env::new();
    env.post("beef");
    env.post("deploy");
    let run = env.jobboard(&["show", "beef"]).run();
    assert!(run.succeeded().contains("beef"), "{run}");
    let run = env.jobboard(&["explain", "deploy", "nosuch", "beef"]).run();
    assert!(
        run.stdout.contains("deploy") && run.stdout.contains("beef"),
        "{run}"
    );
    assert!(run.stderr.contains("has the uuid or name nosuch"), "{run}");
    let run = env.jobboard(&["explain", "dead"]).run();
    assert!(run.stdout.starts_with("dead  unknown-job"), "{run}");
}
