//! Words that newcomers type: each works, or is answered with the command to type.

use crate::support::env::Env;

/// Returns an environment with a failed job in the trash, and one job on the board.
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
    let _ = env.jobboard(&["conduct", "--drain"]).run();
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
        ("failures", "disk full"),
        ("list --failed", "disk full"),
        ("history", ""),
        ("list --past", ""),
        ("list -n 1", ""),
        ("list deploy", "deploy"),
        ("list --filter DEPL", "deploy"),
        ("jobs", "deploy"),
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
    for line in ["why deploy", "explain deploy", "status deploy"] {
        let words: Vec<_> = line.split(' ').collect();
        env.post("deploy");
        let run = env.jobboard(&words).run();
        assert_eq!(run.code, 4, "{line}: {run}");
        assert!(run.stdout.contains("no-conductor"), "{line}: {run}");
        let deploy = env.jobboard(&["list", "deploy", "-o", "uuid"]).run();
        let trash = ["trash", "--force", "--yes", deploy.succeeded().trim()];
        env.jobboard(&trash).run().succeeded();
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
        ("boards", "`jobboard config`"),
        ("clear", "`jobboard purge --all`"),
        ("stop", "`jobboard pause '*'`"),
        ("ack 3f9a", "`jobboard consume 3f9a`"),
        ("release 3f9a", "`jobboard abandon 3f9a`"),
        ("mv", "copy --move"),
        ("rename", "change JOB --name NAME"),
        ("schedule", "cron"),
        ("--board localhost:6379 list", "redis://localhost:6379"),
        ("--board zk1:2181/taskflow list", "zk://zk1:2181/taskflow"),
    ] {
        let words: Vec<_> = line.split(' ').collect();
        let run = env.jobboard(&words).run();
        assert!(run.failed(2).contains(answer), "{line}: {run}");
    }
}

#[test]
fn typing_errors_never_suggest_a_destructive_command() {
    let env = Env::new();
    for word in ["trsh", "purg", "consum", "abandn", "conduc", "claer"] {
        let run = env.jobboard(&[word]).run();
        let answer = run.failed(2);
        for command in ["trash", "purge", "consume", "abandon", "conduct"] {
            assert!(!answer.contains(command), "{word}: {run}");
        }
    }
}

#[test]
fn post_of_a_command_line_as_a_name_shows_how_to_post_a_command() {
    let env = Env::new();
    let run = env.jobboard(&["post", "echo hi"]).run();
    run.succeeded();
    assert!(
        run.stderr.contains("`jobboard post echo -- echo hi`"),
        "{run}"
    );
    let run = env.jobboard(&["post", "echo hi", "--", "echo", "hi"]).run();
    run.succeeded();
    assert_eq!(run.stderr, "");
}

#[test]
fn ambiguous_name_lists_its_jobs() {
    let env = Env::new();
    let uuids = [env.post("twin"), env.post("twin")];
    let run = env.jobboard(&["show", "twin"]).run();
    let answer = run.failed(3);
    assert!(
        uuids.iter().all(|uuid| answer.contains(&uuid.to_string())),
        "{run}"
    );
}
