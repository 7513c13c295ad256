//! Words that people type instead of a command.

use std::ffi::OsString;

use crate::{board::url::likely, suggest::Hint};

/// Synonyms of commands.
///
/// The only destructive one is `trash`; a job can be restored from there.
const SYNONYMS: [(&str, &str); 39] = [
    ("add", "post"),
    ("create", "post"),
    ("enqueue", "post"),
    ("new", "post"),
    ("push", "post"),
    ("submit", "post"),
    ("cancel", "trash"),
    ("delete", "trash"),
    ("remove", "trash"),
    ("rm", "trash"),
    ("describe", "show"),
    ("get", "show"),
    ("info", "show"),
    ("inspect", "show"),
    ("view", "show"),
    ("log", "show --output"),
    ("logs", "show --output"),
    ("why", "explain"),
    ("start", "conduct"),
    ("work", "conduct"),
    ("worker", "conduct"),
    ("events", "watch"),
    ("follow", "watch"),
    ("monitor", "watch"),
    ("tail", "watch"),
    ("top", "dash"),
    ("ui", "dash"),
    ("ps", "conductors"),
    ("workers", "conductors"),
    ("failed", "list --failed"),
    ("failures", "list --failed"),
    ("history", "list --history"),
    ("jobs", "list"),
    ("requeue", "retry"),
    ("unpause", "resume"),
    ("export", "dump"),
    ("import", "load"),
    ("test", "selftest"),
    ("version", "--version"),
];

/// Advice for words with a dangerous or missing command. `{}` is the next word.
const ANSWERS: [(&str, &str); 19] = [
    ("ack", "`jobboard consume {}` removes a finished job"),
    ("done", "`jobboard consume {}` removes a finished job"),
    ("finish", "`jobboard consume {}` removes a finished job"),
    (
        "boards",
        "`jobboard config` prints the board in use; the configuration file names the others: `jobboard help boards`",
    ),
    (
        "clear",
        "`jobboard trash --force --name GLOB` moves jobs to the trash; `jobboard purge --all` empties the trash",
    ),
    (
        "empty",
        "`jobboard purge --all` empties the trash; `jobboard wait --empty` waits for an empty board",
    ),
    (
        "free",
        "`jobboard abandon --force {}` releases the claim of another owner",
    ),
    (
        "init",
        "a board needs no setup: `jobboard post hello -- echo hello` creates the default one",
    ),
    (
        "kill",
        "`jobboard trash --force {}` takes the job from its owner; a conductor then stops the command",
    ),
    (
        "move",
        "`jobboard copy --move --to BOARD` moves jobs to another board",
    ),
    (
        "mv",
        "`jobboard copy --move --to BOARD` moves jobs to another board",
    ),
    (
        "release",
        "`jobboard abandon {}` releases your claim; with --force, the claim of another owner",
    ),
    (
        "unlock",
        "`jobboard abandon --force {}` releases the claim of another owner",
    ),
    ("rename", "`jobboard change {} --name NAME` renames a job"),
    ("edit", "`jobboard change {}` edits an unclaimed job"),
    ("update", "`jobboard change {}` edits an unclaimed job"),
    (
        "schedule",
        "cron or a systemd timer posts jobs on a schedule: `jobboard help post`",
    ),
    (
        "stop",
        "Ctrl-C or `kill -TERM PID` stops a conductor; `jobboard pause *` keeps all conductors from new jobs",
    ),
    (
        "use",
        "`jobboard --board {} list` uses a board once, and JOBBOARD_URL for a whole session",
    ),
];

/// Replaces the synonym at this position with its command.
pub(in crate::commands) fn expand(words: &[OsString], at: usize) -> Option<Vec<OsString>> {
    let word = words.get(at)?.to_str()?;
    let (_, command) = SYNONYMS.iter().find(|(synonym, _)| *synonym == word)?;
    let command = command.split(' ').map(OsString::from);
    Some([&words[..at], &command.collect::<Vec<_>>(), &words[at + 1..]].concat())
}

pub(super) fn answer(word: &str, next: Option<&str>) -> Option<Hint> {
    let (_, text) = ANSWERS.iter().find(|(asked, _)| *asked == word)?;
    Some(match text.contains("{}") {
        true => {
            let next = next.unwrap_or(if word == "use" { "URL" } else { "JOB" });
            let url = likely(next);
            Hint::new(text, [&[url.as_deref().unwrap_or(next)]])
        }
        false => (*text).into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Cli, Command};

    #[test]
    fn synonyms_stand_for_commands() {
        for (synonym, command) in SYNONYMS {
            assert!(Command::named(synonym).is_none(), "{synonym}");
            let word = command.split(' ').next().unwrap();
            assert!(
                word.starts_with('-') || Command::named(word).is_some(),
                "{word}"
            );
            let words = ["-q", synonym, "x"].map(OsString::from);
            let expanded = expand(&words, 1).unwrap().join(" ".as_ref());
            assert_eq!(expanded, format!("-q {command} x").as_str());
        }
    }

    #[test]
    fn synonym_is_replaced_only_in_the_place_of_the_command() {
        let words = ["jobboard", "-q", "add", "add"].map(OsString::from);
        let (early, cli) = Cli::read(&words);
        assert_eq!(early.command.as_deref(), Some("post"));
        assert!(matches!(cli.unwrap().command, Command::Post(_)));
        let words = ["jobboard", "post", "rm"].map(OsString::from);
        assert!(matches!(
            Cli::read(&words).1.unwrap().command,
            Command::Post(_)
        ));
    }

    #[test]
    fn answered_words_are_neither_commands_nor_synonyms() {
        for (word, text) in ANSWERS {
            assert!(Command::named(word).is_none(), "{word}");
            assert!(
                SYNONYMS.iter().all(|(synonym, _)| *synonym != word),
                "{word}"
            );
            assert!(text.contains('`'), "{word}");
        }
    }
}
