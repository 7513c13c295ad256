//! The `console` examples of the README and the tutorial print what the documents show.
//!
//! `JOBBOARD_UPDATE=1` writes the current output into the documents instead.

use std::{env, fmt::Write as _, fs, path::Path};

use regex::{Captures, Regex};

use crate::support::{
    Env,
    needs::{has, may_start_servers},
};

fn replaced(text: &str, patterns: &[(&str, &str)]) -> String {
    let replace = |text: String, (pattern, by): &(&str, &str)| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace_all(&text, *by).into_owned()
    };
    patterns.iter().fold(text.to_owned(), replace)
}

fn examples(document: &str) -> impl Iterator<Item = &str> {
    let after = document.split("\n```console\n").skip(1);
    after.map(|it| &it[..=it.find("\n```\n").unwrap()])
}

/// Returns the commands of an example: `$` begins a command, and `>` continues it.
fn commands(example: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    for line in example.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.to_owned());
        } else if let Some(more) = line.strip_prefix('>') {
            let more = more.strip_prefix(' ').unwrap_or(more);
            write!(commands.last_mut().unwrap(), "\n{more}").unwrap();
        }
    }
    commands
}

/// Runs the commands of a document in one shell and one home directory, and returns the output of each.
fn outputs(env: &Env, document: &str) -> Vec<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_jobboard")).parent().unwrap();
    let mut script = format!(
        "exec 2>&1; cd; export PATH={}:$PATH JOBBOARD_FORMAT=table; unset XDG_STATE_HOME XDG_CONFIG_HOME\n",
        program.display(),
    );
    for command in examples(document).flat_map(commands) {
        writeln!(script, "{command}\nprintf '\\036'").unwrap();
    }
    let run = env.program(Path::new("sh"), &["-c", &script]).run();
    let uname = rustix::system::uname();
    let host = regex::escape(&uname.nodename().to_string_lossy());
    let user = format!(r"[\w.-]+@{host}\b");
    let owner = format!(r"\b{host}(:\d+:[0-9a-f]{{8}})\b");
    let shown = [(user.as_str(), "ada@desk-4"), (owner.as_str(), "desk-4$1")];
    let home = env.root().join("home");
    let text = run.stdout.replace(home.to_str().unwrap(), "/home/ada");
    let text = replaced(&text, &shown);
    text.split('\u{1e}').map(str::to_owned).collect()
}

/// Returns a document that shows these outputs.
fn updated(document: &str, outputs: &[String]) -> String {
    let (mut updated, mut outputs) = (document.to_owned(), outputs.iter());
    for example in examples(document) {
        let shown = commands(example).into_iter().map(|command| {
            let command = command.replace('\n', "\n> ").replace("> \n", ">\n");
            format!("$ {command}\n{}", outputs.next().unwrap())
        });
        updated = updated.replacen(example, &shown.collect::<String>(), 1);
    }
    updated
}

/// Masks times, durations, owners, uuids in order of appearance, and the column widths that these cause.
fn masked(document: &str) -> String {
    let masks = [
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
        (r"\bdesk-4:\d+:[0-9a-f]{8}\b", "OWNER"),
        (r"(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "-REST"),
        (" {2,}", "  "),
    ];
    // After the uuids, some of which look like a duration in days.
    let durations = [(r"\b(\d+(ms|s|m|h|d))+\b|\b\d+\.\d+ ms\b", "DURATION")];
    let mut known: Vec<String> = Vec::new();
    let number = |found: &Captures<'_>| {
        let at = known.iter().position(|uuid| *uuid == found[0]);
        let at = at.unwrap_or(known.len());
        known.extend((at == known.len()).then(|| found[0].to_owned()));
        format!("UUID-{at}")
    };
    let uuid = Regex::new(r"\b[0-9a-f]{8}\b").unwrap();
    let masked = replaced(document, &masks);
    let masked = replaced(&uuid.replace_all(&masked, number), &durations);
    // Commands that run concurrently print in any order.
    let mut lines: Vec<_> = masked.lines().collect();
    lines
        .chunk_by_mut(|one, other| is_output(one) && is_output(other))
        .for_each(<[_]>::sort_unstable);
    lines.join("\n")
}

/// Whether a line is the output of a job's command.
fn is_output(line: &str) -> bool {
    line.split_once(" | ")
        .is_some_and(|(job, _)| job.contains("/UUID-") && !job.contains(' '))
}

fn prints_the_shown_output(path: &str) {
    let document = fs::read_to_string(path).unwrap();
    let env = Env::new();
    let updated = updated(&document, &outputs(&env, &document));
    if env::var_os("JOBBOARD_UPDATE").is_some() {
        fs::write(path, updated).unwrap();
    } else {
        assert_eq!(masked(&updated), masked(&document), "{updated}");
    }
}

#[test]
fn readme_and_tutorial_print_the_shown_output() {
    prints_the_shown_output("README.md");
    if may_start_servers() && has("redis-server") && has("redis-cli") {
        prints_the_shown_output("docs/tutorial.md");
    }
}
