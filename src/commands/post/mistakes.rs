//! Finds likely mistakes in the words of a post.

use std::path::Path;

use serde_json::Value;
use strsim::levenshtein;

use crate::{
    commands::typing::corrected::as_command, conductor::policy::MEMBERS, exit::CommandError,
    job::Priority, secret::have_secret, suggest::Hint,
};

/// Refuses a command line in one word: no shell splits it, so each attempt would fail.
pub(super) fn refuse_shell_line(name: &str, command: &[String]) -> anyhow::Result<()> {
    let [line] = command else {
        return Ok(());
    };
    // A path may contain spaces, and its program may be on another machine.
    if !line.contains(' ') || line.contains('/') || Path::new(line).exists() {
        return Ok(());
    }
    let error = CommandError::usage(
        "the command is one word, and `jobboard` starts programs without a shell",
    );
    let hint = match as_command(line).as_slice() {
        [.., whole] if *whole == line => Hint::new(
            "`jobboard post {} -- sh -c LINE` runs the line in a shell; quote LINE as you did",
            [&[name]],
        ),
        words if have_secret(words) => "separate the words".into(),
        words => Hint::new("`jobboard post {} -- {}`", [&[name], words]),
    };
    Err(error.hint(hint).into())
}

/// Returns a hint for each detail or command that is valid but probably a mistake.
pub(super) fn likely_mistakes(name: &str, details: &Value) -> Vec<Hint> {
    let mut hints = Vec::new();
    if let Some(priority) = details["priority"].as_str()
        && priority.parse::<Priority>().is_ok()
    {
        let hint = "`priority` is a member of the details here; `--priority {}` sets the priority";
        hints.push(Hint::new(hint, [&[priority]]));
    }
    let command = details["command"].as_array();
    let command: Vec<_> = command
        .into_iter()
        .flatten()
        .flat_map(Value::as_str)
        .collect();
    match *command {
        [] if name.contains(' ') => {
            let (first, _) = name.split_once(' ').unwrap_or((name, ""));
            let words = as_command(name);
            let hint = "this job has no command, so it needs a handler with this name; \
                `jobboard post {} -- {}` posts a job with a command";
            hints.push(Hint::new(hint, [&[first], &words]));
        }
        [line] if line.contains(' ') && !Path::new(line).exists() => {
            let hint = "the whole text is taken as the name of a program; for a shell command, put `sh -c` before it";
            hints.push(hint.into());
        }
        _ => {}
    }
    let is_detail = |word: &&&str| {
        let key = word
            .split_once('=')
            .map(|(key, _)| key.trim_end_matches(':'));
        key.is_some_and(|key| MEMBERS.contains(&key))
    };
    if let Some(word) = command.iter().skip(1).find(is_detail) {
        let hint = "`{}` is an argument of the command; write details before `--`";
        hints.push(Hint::new(hint, [&[word]]));
    }
    for key in details
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key)
    {
        let mut plain = key.to_lowercase().replace(['-', '_'], "");
        if matches!(
            plain.as_str(),
            "retries" | "maxretries" | "tries" | "maxtries"
        ) {
            plain = "maxattempts".to_owned();
        }
        let is_alike = |known: &&&str| levenshtein(&plain, &known.replace('_', "")) < 2;
        let meant = MEMBERS
            .iter()
            .find(is_alike)
            .filter(|it| it.len() > 4 && *it != key);
        if let Some(meant) = meant {
            let hint = "conductors ignore the detail `{}`; did you mean `{}`?";
            hints.push(Hint::new(hint, [&[&**key], &[meant]]));
        }
    }
    hints
}
