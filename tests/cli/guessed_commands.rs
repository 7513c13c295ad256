//! Words that newcomers type: each works, or suggests the right command.

use crate::support::{Env, play};

fn stocked() -> Env {
    let env = Env::new();
    env.ok("post backup max_attempts:=1 -- sh -c 'echo disk full >&2; exit 3'");
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
        let run = env.run(words);
        assert!(run.succeeded().contains(expected), "{line}: {run}");
    }
    let purge = "purge --all --yes";
    env.ok(purge);
    for line in ["why deploy", "explain deploy", "status deploy"] {
        let words: Vec<_> = line.split(' ').collect();
        env.post("deploy");
        let run = env.run(words);
        assert_eq!(run.code, 4, "{line}: {run}");
        assert!(run.stdout.contains("no-conductor"), "{line}: {run}");
        let deploy = env.run("list deploy -o uuid");
        let trash = ["trash", "--force", "--yes", deploy.succeeded().trim()];
        env.ok(trash);
        env.ok(purge);
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
    let run = env.run(words);
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
fn post_of_a_command_line_as_a_name_shows_how_to_post_a_command() {
    let env = Env::new();
    let run = env.run("post 'echo hi'");
    run.exits(0, "`jobboard post echo -- echo hi`");
    let (_, remove) = run
        .stderr
        .split_once("to remove this job: `jobboard ")
        .unwrap();
    env.ok(format!("{} --yes", remove.trim_end().trim_matches('`')));
    assert_eq!(env.run("list").succeeded(), "");
    let run = env.run("post 'echo hi' -- echo hi");
    run.succeeded();
    assert_eq!(run.stderr, "");
}

#[test]
fn commands_that_can_be_undone_take_the_name_of_a_single_job() {
    let env = Env::new();
    let uuid = env.post("deploy");
    let waiting = env.jobboard(&["wait", "deploy"]).spawn();
    env.ok("claim --name deploy --next");
    env.ok(format!("trash {uuid} --failed"));
    waiting.ended().has_code(9);
    for (verb, done) in [("retry", "retried"), ("restore", "restored")] {
        let run = env.run("change --priority HIGH deploy");
        run.prints("changed");
        run.warns("still in the trash");
        let run = env.run(format!("{verb} deploy"));
        run.prints(done);
        let run = env.run("trash --force --yes deploy");
        run.prints(&uuid);
    }
    let _ = env.post("deploy");
    let _ = env.post("cafe");
    assert_eq!(env.run("retry cafe").code, 4);
    env.ok("claim --next --name cafe");
    env.ok("consume --force --name cafe --yes");
    env.ok("wait cafe");
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
fn names_and_typing_errors_are_answered() {
    play(
        r#"
        # a bare word is no filter of a check
        3 check --filter report -> write name=report

        # typing errors never suggest a destructive command
        2 trsh !> trash !> purge !> consume !> abandon !> conduct
        2 purg !> trash !> purge !> consume !> abandon !> conduct
        2 consum !> trash !> purge !> consume !> abandon !> conduct
        2 abandn !> trash !> purge !> consume !> abandon !> conduct
        2 conduc !> trash !> purge !> consume !> abandon !> conduct
        2 claer !> trash !> purge !> consume !> abandon !> conduct

        # an ambiguous name lists its jobs
        0 post twin --uuid 5f3a0000-0000-4000-8000-000000000001
        0 post twin --uuid 5f3a0000-0000-4000-8000-000000000002
        3 show twin => 5f3a0000-0000-4000-8000-000000000001 => 5f3a0000-0000-4000-8000-000000000002

        # the name of a unique job means the one on the board
        0 post nightly --unique night
        0 trash --force --yes nightly
        0 post nightly --unique night
        0 show nightly -> UNCLAIMED
        0 change --priority HIGH nightly -> changed !> in the trash
        0 trash --force --yes nightly => replaced a job

        # a name of hex digits is found, and unknown names hide no other
        0 post beef
        0 post deploy
        0 show beef -> beef
        4 explain deploy nosuch beef -> deploy -> beef => has the uuid or name nosuch
        3 explain dead -> dead  unknown-job
        "#,
    );
}

#[test]
fn forgotten_dashes_and_states_are_answered() {
    play(
        r#"
        # forgotten dashes are answered with the corrected line
        2 post ls -la => `jobboard post ls -- ls -la`
        2 list --name -lead => write `--name=-lead`
        2 list --limit -5 => -5 !> write
        2 post -- -lead => NAME is missing => `jobboard post --from -` also posts a job whose name begins with `-`
        2 add ls -la => `jobboard post ls -- ls -la`
        2 post x --- ls => `jobboard post x -- ls`
        2 post x k=v --priority HIGH --- ls => `jobboard post x k=v --priority HIGH -- ls`
        2 post head -5 /etc/hosts => `jobboard post head -- head -5 /etc/hosts`
        2 post x --who ada ls -l => `jobboard post x --who ada -- ls -l`
        2 run tail -f log => `jobboard run tail -- tail -f log`
        2 run echo hi => `jobboard run echo -- echo hi`
        2 -q --who ada post ls -l => `jobboard -q --who ada post ls -- ls -l`
        2 claim 3f9a ls -l => `jobboard claim 3f9a -- ls -l`
        2 claim 3f9a ls => `jobboard claim 3f9a -- ls`
        2 claim --next ls -l => `jobboard claim --next -- ls -l`
        2 change 3f9a ls /tmp => `jobboard change 3f9a -- ls /tmp`
        2 change 3f9a priority=HIGH size:=2 => `jobboard change 3f9a --priority HIGH --set size:=2`
        2 change 3f9a @2 ls -l => `jobboard change 3f9a @2 -- ls -l`
        2 change 3f9a --command 'ls /tmp' => `jobboard change 3f9a -- ls /tmp`
        2 change 3f9a --command 'ls *' => `jobboard change 3f9a -- sh -c 'ls *'`
        2 post x --priorty LOW !> after `--`
        2 claim 3f9a --bogus !> after `--`
        2 post a --bogus -- true !> after `--`
        2 post mysql --password x !> after `--`

        # a list of a state as a name is answered
        0 post deploy
        0 list failed == (nothing) => `jobboard list --failed`
        0 list trash == (nothing) => `jobboard list --trash`
        0 list running == (nothing) => `jobboard list --state claimed`
        0 list waiting == (nothing) => `jobboard list --unclaimed`
        0 list history == (nothing) => `jobboard list --history`
        0 post failed
        0 list failed -> failed !> `

        # the name of several jobs is ambiguous, wherever they are
        0 post backup max_attempts:=1 -- sh -c 'echo disk full >&2; exit 3'
        7 conduct --drain
        0 post backup
        3 show backup => 2 jobs are named backup:  => (UNCLAIMED) => (TRASHED)
        3 explain backup => 2 jobs are named backup:  => (UNCLAIMED) => (TRASHED)
        3 status backup => 2 jobs are named backup:  => (UNCLAIMED) => (TRASHED)
        0 logs backup -> disk full
        6 owner backup => not claimed

        # commands that end claims answer a name with the uuid of the job
        0 post deploy --uuid 5f3a0000-0000-4000-8000-000000000001
        0 post backup
        0 trash @2 --force --yes
        2 consume --force deploy => requires a uuid; the job named deploy has the uuid 5f3a0000 => `jobboard consume --force 5f3a0000`
        2 claim deploy => requires a uuid; the job named deploy has the uuid 5f3a0000 => `jobboard claim 5f3a0000`
        2 consume deploy => requires a uuid; the job named deploy has the uuid 5f3a0000 => `jobboard consume 5f3a0000`
        2 abandon deploy => requires a uuid; the job named deploy has the uuid 5f3a0000 => `jobboard abandon 5f3a0000`
        2 extend --expiry 5m deploy => requires a uuid; the job named deploy has the uuid 5f3a0000 => repeat the command with 5f3a0000 in place of deploy
        2 purge backup => the job named backup has the uuid
        0 post deploy
        2 abandon deploy => 2 jobs are named deploy:  => `jobboard abandon --name deploy`
        2 abandon nosuch => is not a job reference

        # ended jobs are found by name
        0 post deploy --uuid 5f3a0000-0000-4000-8000-000000000001
        0 consume @1 --force --yes
        0 post deploy --uuid 5f3b0000-0000-4000-8000-000000000001
        0 consume @2 --force --yes
        0 show deploy -> 5f3b0000 !> 5f3a0000 => the last of 2 jobs named deploy that ended
        0 explain deploy -> 5f3b0000 !> 5f3a0000 => the last of 2 jobs named deploy that ended
        0 post deploy --uuid 5f3c0000-0000-4000-8000-000000000001
        0 show deploy -> 5f3c0000-0000-4000-8000-000000000001 => (nothing)
        "#,
    );
}
