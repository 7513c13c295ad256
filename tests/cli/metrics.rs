//! `jobboard metrics`.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _};

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{
    check::post_jobs_of_all_kinds,
    conduct::{Stage, on_every_board},
    support::{Env, Outcome, needs},
};

on_every_board!(metrics_equal_status);

fn metrics(env: &Env, words: &[&str]) -> Outcome {
    env.run([&["metrics"], words].concat())
}

/// Returns the value of a number, given with its labels except that of the board.
fn figure(text: &str, name: &str) -> Option<f64> {
    figure_of(text, name, &[])
}

/// Returns the value of a number, given with its labels except that of the board and these.
pub(crate) fn figure_of(text: &str, name: &str, but: &[&str]) -> Option<f64> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.find_map(|line| {
        let (labels, value) = line.rsplit_once(' ')?;
        let (start, mut rest) = labels.split_once('{')?;
        for own in [&["board"], but].concat() {
            let (_, behind) = rest
                .strip_prefix(own)?
                .strip_prefix("=\"")?
                .split_once('"')?;
            rest = behind.trim_start_matches(',');
        }
        let rest = rest.strip_suffix('}').filter(|rest| !rest.is_empty());
        let found = match rest {
            Some(rest) => format!("{start}{{{rest}}}"),
            None => start.to_owned(),
        };
        (found == name).then(|| value.parse().unwrap())
    })
}

/// Checks the format with Prometheus' own tool.
pub(crate) fn judged(text: &str) {
    if !needs::has("promtool") {
        return;
    }
    let mut judge = Command::new("promtool");
    let judge = judge.args(["check", "metrics"]).stdin(Stdio::piped());
    let mut judge = judge
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = judge.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = judge.wait_with_output().unwrap();
    let output = [output.stdout, output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&output), "", "{text}");
}

fn metrics_equal_status(stage: &Stage) {
    let env = &stage.env;
    post_jobs_of_all_kinds(env);
    let run = metrics(env, &[]);
    let text = run.succeeded();
    judged(text);
    let status = env.json("status --json");
    for (name, key, count) in [
        ("jobboard_jobs{state=\"unclaimed\"}", "unclaimed", 6),
        ("jobboard_jobs{state=\"claimed\"}", "claimed", 4),
        ("jobboard_jobs{state=\"trashed\"}", "trashed", 2),
        ("jobboard_jobs_backing_off", "backing_off", 1),
        ("jobboard_conductors{state=\"alive\"}", "conductors", 0),
    ] {
        assert_eq!(figure(text, name), Some(f64::from(count)), "{name}: {run}");
        assert_eq!(status[key], count, "{key} of {status}");
    }
    for (code, count) in [
        ("retries-exhausted", 1),
        ("claim-never-expires", 3),
        ("owner-dead", 1),
        ("unreadable-record", 0),
        ("unsettled-job", 0),
    ] {
        let name = format!("jobboard_jobs_with_problem{{code=\"{code}\"}}");
        assert_eq!(figure(text, &name), Some(f64::from(count)), "{name}: {run}");
        let counted = &status["jobs_with_problem"][code];
        assert_eq!(counted.as_i64().unwrap_or(0), i64::from(count), "{status}");
    }
    let unreadable = figure(text, "jobboard_jobs{state=\"malformed\"}");
    assert_eq!(unreadable, Some(0.0), "{run}");
    // Of six unclaimed jobs, one is delayed and one is exhausted.
    assert_eq!(figure(text, "jobboard_jobs_claimable"), Some(4.0));
    assert_eq!(figure(text, "jobboard_up"), Some(1.0));
    let oldest = figure(text, "jobboard_oldest_unclaimed_seconds").unwrap();
    assert!((0.0..3600.0).contains(&oldest), "{run}");
    env.ok("pause job-1?");
    let run = metrics(env, &[]);
    let text = run.succeeded();
    assert_eq!(figure(text, "jobboard_jobs_paused"), Some(2.0), "{run}");
    assert_eq!(figure(text, "jobboard_jobs_claimable"), Some(2.0), "{run}");
}

#[test]
fn claimable_jobs_lack_only_a_conductor() {
    let env = Env::new();
    env.post_many(2);
    env.load("wrong", &serde_json::json!({"command": ["../x"]}));
    let spent = env.post("spent");
    for _ in 0..5 {
        env.fail(&spent, "1ms");
    }
    let text = metrics(&env, &[]);
    let text = text.succeeded();
    assert_eq!(figure(text, "jobboard_jobs_claimable"), Some(2.0), "{text}");
    let lacking = "jobboard_jobs_with_problem{code=\"no-conductor\"}";
    assert_eq!(figure(text, lacking), Some(2.0), "{text}");
}

#[test]
fn textfile_is_complete_and_world_readable() {
    let env = Env::new();
    env.post("backup");
    let file = env.file("board.prom");
    let words = ["--textfile", file.to_str().unwrap()];
    metrics(&env, &words).prints("board.prom");
    let text = fs::read_to_string(&file).unwrap();
    judged(&text);
    assert_eq!(figure(&text, "jobboard_jobs_claimable"), Some(1.0));
    let mode = fs::metadata(&file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o644);
    let report: Value = metrics(&env, &[&words[..], &["--json"]].concat()).json();
    assert_eq!(report["file"], file.to_str().unwrap());
    let is_file = |entry: fs::DirEntry| {
        ["board.prom", "other", "folder.prom"]
            .iter()
            .any(|it| entry.file_name() == *it)
    };
    let mut beside = fs::read_dir(env.root().join("work")).unwrap();
    assert!(
        beside.all(|entry| is_file(entry.unwrap())),
        "a partial file stays"
    );
    metrics(&env, &["--textfile", "board.txt"]).failed(2);
    // The link is replaced with a file, and its target is unchanged.
    let other = env.file("other");
    fs::write(&other, "other").unwrap();
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&other, &file).unwrap();
    metrics(&env, &words).succeeded();
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
    assert_eq!(fs::read_to_string(&other).unwrap(), "other");
    fs::create_dir(env.file("folder.prom")).unwrap();
    metrics(&env, &["--textfile", "folder.prom"]).failed(1);
    metrics(&env, &["--json"]).failed(2);
}

#[test]
fn unreachable_board_is_reported_as_down() {
    let env = Env::new();
    let file = env.file("board.prom");
    let words = ["--textfile", file.to_str().unwrap()];
    let away = ["--board", "redis://127.0.0.1:1"];
    metrics(&env, &[&away[..], &words].concat()).failed(5);
    for text in [
        fs::read_to_string(file).unwrap(),
        metrics(&env, &away).stdout,
    ] {
        judged(&text);
        assert_eq!(figure(&text, "jobboard_up"), Some(0.0), "{text}");
        assert_eq!(figure(&text, "jobboard_jobs_claimable"), None, "{text}");
    }
}

#[test]
fn alerts_name_working_commands() {
    let env = Env::new();
    env.post("backup");
    let rules = include_str!("../../contrib/prometheus/jobboard.rules.yml");
    let looks = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("look: "));
    let commands = looks.filter_map(|look| look.trim_matches('"').strip_prefix("jobboard "));
    let mut count = 0;
    for command in commands {
        let run = env.run(command);
        // A command may report a finding.
        assert!(matches!(run.code, 0 | 4 | 7), "{command}: {run}");
        count += 1;
    }
    assert_eq!(count, 11);
}

#[test]
fn prometheus_accepts_the_alerts() {
    if !needs::has("promtool") {
        return;
    }
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/metrics");
    let judge = Command::new("promtool")
        .args(["test", "rules", "alerts.yml"])
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        judge.status.success(),
        "{}{}",
        String::from_utf8_lossy(&judge.stdout),
        String::from_utf8_lossy(&judge.stderr)
    );
}
