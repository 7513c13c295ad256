//! Scenes: the commands of a user, with their exit codes and outputs, as text.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use rusqlite::types::Value;

use super::env::{Env, Outcome};

/// How many scenes are played at a time.
const STAGES: usize = 4;

/// Exit codes of commands that change nothing.
const UNCHANGED: [i32; 5] = [2, 3, 4, 6, 8];

/// The expectation of an empty stream.
const NOTHING: &str = "(nothing)";

/// Plays each scene in a new environment.
///
/// A paragraph is a scene: `# TITLE`, then a step in each line:
/// - `CODE [JOBBOARD_NAME=VALUE]... COMMAND [MARK TEXT]...`: Runs a command. A text after `=>` is on standard error,
///   after `->` on standard output, and after `!>` on neither. After `==` it is all of standard output, and after `<<`
///   it is standard input. `(nothing)` after `=>` or `==` stands for an empty stream. A failure without `->` or `==`
///   prints nothing on standard output. A refused command leaves the board as it was. A usage error says the same in
///   JSON.
/// - `names NAME...`: The names on the board. `none`: Not even the directory of the board exists.
/// - `config TOML`, `file NAME TEXT`: Writes a file. `mode MODE FILE`: Sets its permissions.
/// - `sql STATEMENTS`: Changes the board file.
///
/// In texts, `\n`, `\t` and `\e` are escapes, and the parts that vary are written as in snapshots.
#[track_caller]
pub(crate) fn play(scenes: &str) {
    let scenes: Vec<_> = scenes.split("\n\n").collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..STAGES {
            scope.spawn(|| {
                while let Some(scene) = scenes.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let (title, steps) = scene.trim().split_once('\n').unwrap();
                    play_on(&Env::new(), title, steps);
                }
            });
        }
    });
}

/// Plays the steps of a scene in an environment, on any board.
#[track_caller]
pub(crate) fn play_on(env: &Env, title: &str, steps: &str) {
    let steps = steps.trim().lines();
    steps.for_each(|line| act(env, line.trim(), title));
}

fn act(env: &Env, line: &str, title: &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "names" => assert_eq!(env.names().join(" "), rest, "{title}"),
        "none" => assert!(!env.board().parent().unwrap().exists(), "{title}"),
        "sql" => env.database().execute_batch(rest).unwrap(),
        "mode" => {
            let (mode, name) = rest.split_once(' ').unwrap();
            let mode = u32::from_str_radix(mode, 8).unwrap();
            fs::set_permissions(env.file(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        "config" => _ = env.configure(&typed(env, rest)),
        "file" => {
            let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
            fs::write(env.file(name), typed(env, text)).unwrap();
        }
        code => {
            let code = code.parse().unwrap_or_else(|_| panic!("{title}: {line}"));
            let before = UNCHANGED.contains(&code).then(|| facts(env));
            command(env, code, rest, title);
            if let Some(before) = before {
                assert_eq!(before, facts(env), "{title}: changed by {line}");
            }
        }
    }
}

fn command(env: &Env, code: i32, line: &str, title: &str) {
    let mut parts = Vec::new();
    let (mut mark, mut rest) = ("", line);
    let next = |rest: &str| {
        let marks = ["=>", "->", "!>", "==", "<<"].into_iter();
        let found = marks.filter_map(|mark| Some((rest.find(&format!(" {mark} "))?, mark)));
        found.min()
    };
    while let Some((at, next)) = next(rest) {
        parts.push((mark, &rest[..at]));
        (mark, rest) = (next, &rest[at + 4..]);
    }
    parts.push((mark, rest));
    let typed_line = typed(env, parts[0].1);
    let (mut words, mut variables) = (typed_line.as_str(), Vec::new());
    while words.starts_with("JOBBOARD_") {
        let (variable, rest) = words.split_once(' ').unwrap();
        variables.push(variable.split_once('=').unwrap());
        words = rest;
    }
    let mut run = env.jobboard(words);
    for (name, value) in &variables {
        run = run.env(name, value);
    }
    if let Some((_, input)) = parts.iter().find(|part| part.0 == "<<") {
        run = run.stdin(typed(env, input));
    }
    let run = run.run();
    assert_eq!(run.code, code, "{title}: {line}: {run}");
    let is_silent = code != 0 && !parts.iter().any(|part| ["->", "=="].contains(&part.0));
    assert!(
        !is_silent || run.stdout.is_empty(),
        "{title}: {line}: {run}"
    );
    for (mark, text) in &parts[1..] {
        assert!(
            holds(env, &run, mark, text),
            "{title}: {line}: {text:?}: {run}"
        );
    }
    // A command line with another format contradicts `--json`.
    if code == 2 && variables.is_empty() && !words.contains(" -o ") {
        let json = env.jobboard(&format!("--json {words}")).stdin("").run();
        let error = json.error();
        assert_eq!(error["kind"], "usage", "{title}: {line}: {json}");
        let [message, hint] = ["message", "hint"].map(|it| error[it].as_str().unwrap_or_default());
        let all = format!("error: {message}\nhint: {hint}\n").replace("--json ", "");
        for (_, text) in parts.iter().filter(|part| part.0 == "=>") {
            let text = typed(env, text);
            let is_same = all.contains(&text) || !run.stderr.contains(&text);
            assert!(is_same || text.starts_with('{'), "{title}: {line}: {json}");
        }
    }
}

/// Whether an expectation holds for the output or for the normalised output.
fn holds(env: &Env, run: &Outcome, mark: &str, text: &str) -> bool {
    let normal = run.normalised() + "\n";
    let (_, streams) = normal.split_once("--- stdout\n").unwrap();
    let (stdout, stderr) = streams.split_once("--- stderr").unwrap();
    let root = env.root().to_str().unwrap();
    let [plain, errors] = [&run.stdout, &run.stderr].map(|it| it.replace(root, "ROOT"));
    let (stdout, stderr) = ([plain.as_str(), stdout], [errors.as_str(), stderr]);
    let text = unescaped(text);
    let has = |streams: [&str; 2]| streams.iter().any(|it| it.contains(&text));
    match mark {
        "=>" if text == NOTHING => run.stderr.is_empty(),
        "==" if text == NOTHING => run.stdout.is_empty(),
        "=>" => has(stderr),
        "->" => has(stdout),
        "!>" => !has(stdout) && !has(stderr),
        "==" => stdout.iter().any(|it| it.trim_end() == text.trim_end()),
        _ => true,
    }
}

/// Returns the command line as the user types it.
fn typed(env: &Env, text: &str) -> String {
    unescaped(&text.replace("ROOT/", &format!("{}/", env.root().display())))
}

fn unescaped(text: &str) -> String {
    let escapes = [("\\n", "\n"), ("\\t", "\t"), ("\\e", "\u{1b}")];
    escapes
        .iter()
        .fold(text.to_owned(), |text, (escape, plain)| {
            text.replace(escape, plain)
        })
}

/// Returns the stored jobs of the default board, or `None` without a board.
fn facts(env: &Env) -> Option<Vec<String>> {
    env.board().exists().then(|| {
        let database = env.database();
        let mut jobs = database.prepare("SELECT * FROM job ORDER BY uuid").unwrap();
        let columns = 0..jobs.column_count();
        let text = |row: &rusqlite::Row<'_>| {
            let value = |column| row.get::<_, Value>(column).map(|it| format!("{it:?}"));
            columns.clone().map(value).collect::<Result<String, _>>()
        };
        let jobs = jobs.query_map([], text).unwrap();
        jobs.collect::<Result<_, _>>().unwrap()
    })
}
