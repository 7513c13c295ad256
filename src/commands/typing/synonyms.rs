//! Words that people type instead of a command.

use std::ffi::OsString;

use crate::{
    board::{JobRef, url::likely},
    suggest::Hint,
};

/// A line has words, a mark and a text: `=` for synonyms, `?` for answers, `-` for answers to options.
const GUESSES: &str = include_str!("guesses.txt");

fn guesses(
    mark: &'static str,
) -> impl Iterator<Item = (impl Iterator<Item = &'static str> + Clone, &'static str)> {
    let lines = GUESSES
        .lines()
        .filter_map(move |line| line.split_once(mark));
    lines.map(|(words, text)| (words.split(' '), text))
}

pub(in crate::commands) fn meaning(word: &str) -> Option<&'static str> {
    let mut synonyms = guesses(" = ");
    let (_, command) = synonyms.find(|(words, _)| words.clone().any(|it| it == word))?;
    Some(command)
}

pub(in crate::commands) fn expand(words: &[OsString], at: usize) -> Option<Vec<OsString>> {
    let word = words.get(at)?.to_str()?;
    let next = words.get(at + 1).and_then(|it| it.to_str());
    let pair = next.and_then(|next| meaning(&format!("{word}-{next}")));
    let (command, rest) = match pair {
        Some(command) => (command, at + 2),
        None => (meaning(word)?, at + 1),
    };
    let command = command.split(' ').map(OsString::from);
    Some([&words[..at], &command.collect::<Vec<_>>(), &words[rest..]].concat())
}

pub(in crate::commands) fn answer_option(
    command: &str,
    option: &str,
    next: Option<&str>,
) -> Option<Hint> {
    let (_, text) = guesses(" - ").find(|(words, _)| {
        let mut commands = words
            .clone()
            .take_while(|it| !it.starts_with('-') && *it != "WORD");
        let is_any = commands.clone().next().is_none();
        (is_any || commands.any(|it| it == command)) && words.clone().any(|it| it == option)
    })?;
    let is_number = |it: &&str| option == "WORD" || it.parse::<u32>().is_ok();
    let next = next.filter(is_number).unwrap_or("N");
    Some(match text.contains("{}") {
        true => Hint::new(text, [&[next]]),
        false => text.into(),
    })
}

pub(in crate::commands) fn answer(word: &str, next: Option<&str>) -> Option<Hint> {
    let (_, text) = guesses(" ? ").find(|(words, _)| words.clone().any(|it| it == word))?;
    Some(match text.contains("{}") {
        true => {
            let is_of_board = ["connect", "use"].contains(&word);
            let next = next.unwrap_or(if is_of_board { "URL" } else { "JOB" });
            let url = likely(next);
            let next = url.as_deref().unwrap_or(next);
            let is_name = next.parse::<JobRef>().is_err() && next != "JOB";
            let words = |before: &str| {
                let command = before.rsplit("jobboard ").next();
                match command.and_then(|it| it.split(' ').next()) {
                    Some("claim" | "extend") if is_name => vec!["JOB"],
                    Some("abandon" | "consume") if is_name => vec!["--name", next],
                    _ => vec![next],
                }
            };
            let mut parts = text.split("{}");
            let mut next_words = || words(parts.next().unwrap_or_default());
            Hint::new(text, [&next_words(), &next_words()])
        }
        false => text.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{Cli, Command};

    #[test]
    fn synonyms_stand_for_commands() {
        let all = guesses(" = ").flat_map(|(words, command)| words.map(move |it| (it, command)));
        for (synonym, command) in all {
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
        let all = guesses(" ? ").flat_map(|(words, text)| words.map(move |it| (it, text)));
        for (word, text) in all {
            assert!(Command::named(word).is_none(), "{word}");
            let is_synonym = guesses(" = ").any(|(mut words, _)| words.any(|it| it == word));
            assert!(!is_synonym, "{word}");
            assert!(text.contains('`'), "{word}");
        }
    }

    #[test]
    fn suggested_commands_are_valid() {
        let texts = [" ? ", " - "].into_iter().flat_map(guesses);
        for text in texts.map(|(_, text)| text) {
            let parts = text.split('`').skip(1).step_by(2);
            for command in parts.filter(|it| it.starts_with("jobboard ")) {
                let mut words: Vec<OsString> = Vec::new();
                for word in command.split(' ') {
                    let before = words.last().and_then(|it| it.to_str());
                    let value = match before.unwrap_or_default() {
                        "--count" | "--jobs" | "--limit" | "--max-attempts" => "4",
                        "--board" | "--to" => "sqlite:b.db",
                        "--filter" => "name=x",
                        "--output" => "/",
                        _ if word == "{}" => "x",
                        _ => word,
                    };
                    words.push(value.into());
                }
                let (_, cli) = Cli::read(&words);
                assert!(cli.is_ok(), "{command}");
            }
        }
    }
}
