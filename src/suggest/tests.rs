//! Tests that real shells read suggested commands word by word.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use super::*;
use crate::{
    board::testing::needs,
    config::Flags,
    output::{Text, tag},
};

const SHELLS: [&[&str]; 6] = [
    &["sh"],
    &["bash", "--norc", "-O", "extglob"],
    &["bash", "--norc", "-o", "history", "-o", "histexpand"],
    &["zsh", "-f"],
    &[
        "zsh",
        "-f",
        "-o",
        "extendedglob",
        "-o",
        "magicequalsubst",
        "-o",
        "rcquotes",
    ],
    &["fish", "--no-config"],
];

fn has_shells() -> bool {
    ["sh", "bash", "zsh", "fish"].into_iter().all(needs::has)
}

fn path(program: &str) -> PathBuf {
    let all = env::var_os("PATH").unwrap_or_default();
    let mut all = env::split_paths(&all).map(|directory| directory.join(program));
    all.find(|it| it.exists()).unwrap()
}

fn run(shell: &[&str], directory: &Path, lines: &str) -> Vec<u8> {
    let script = directory.join("script");
    fs::write(&script, lines).unwrap();
    let (bin, work) = (directory.join("bin"), directory.join("work"));
    fs::create_dir_all(&work).unwrap();
    if fs::create_dir(&bin).is_ok() {
        for program in ["awk", "touch"] {
            let found = path(program);
            std::os::unix::fs::symlink(found, bin.join(program)).unwrap();
        }
    }
    let program = path(shell[0]);
    let run = Command::new(program)
        .args(&shell[1..])
        .arg(&script)
        .current_dir(&work)
        .env_clear()
        .envs([("PATH", &bin), ("HOME", &work)])
        .env("LC_ALL", "C.UTF-8")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success() && errors.is_empty(),
        "{shell:?}: {errors}"
    );
    let touched: Vec<_> = fs::read_dir(&work)
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    // The shells write their own files into a home directory.
    assert!(
        touched.iter().all(|it| it != "PWN"),
        "{shell:?}: {touched:?}"
    );
    run.stdout
}

fn hold(commands: &[Vec<String>]) -> Result<(), TestCaseError> {
    let directory = tempfile::tempdir().unwrap();
    let (mut lines, mut expected) = (String::new(), Vec::new());
    for words in commands {
        let line = Suggestion::default().with(words).to_string();
        // Sanitizing leaves it unchanged.
        let safe = [Text::from(&line), Text::line(&[&line])].map(|it| it.to_string());
        prop_assert_eq!(&safe, &[line.clone(), line.clone()]);
        prop_assert!(!line.contains(['`', '|', '\\', '\n', '\t']), "{}", line);
        let html = tag("i", &[&line]);
        let text = ["&lt;<", "&gt;>", "&quot;\"", "&#39;'", "&amp;&"].iter();
        let unescaped = text.fold(html.as_str().to_owned(), |text, pair| {
            let (entity, character) = pair.split_at(pair.len() - 1);
            text.replace(entity, character)
        });
        prop_assert_eq!(unescaped, format!("<i>{line}</i>"));
        if line == NOT_TYPABLE {
            lines += &format!("{line}\n");
            continue;
        }
        lines += &format!("printf '<%s>' {line}\nprintf '=\\n'\n");
        for word in words {
            expected.extend_from_slice(format!("<{word}>").as_bytes());
        }
        expected.extend_from_slice(b"=\n");
    }
    for shell in SHELLS {
        let read = run(shell, directory.path(), &lines);
        prop_assert!(
            read == expected,
            "{:?} reads {}\ninstead of {}\nin {}",
            shell,
            String::from_utf8_lossy(&read),
            String::from_utf8_lossy(&expected),
            lines
        );
    }
    Ok(())
}

#[test]
fn four_shells_read_the_words_of_a_suggestion() {
    if !has_shells() {
        return;
    }
    let piece = prop_oneof![
        3 => "[ -~]{0,6}",
        2 => any::<char>().prop_map(String::from),
        2 => prop::sample::select(&[
            "'", "\"", "\\", "`", "$", "!", "!!", "!1", "\n", "\t", "\r", "\u{1b}[2J", "\u{7}", "\u{202e}", "\u{200b}",
            "\u{85}", "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}", "~", "~root", "=ls", "%self", "%1", "{a,b}", "*",
            "?", "[a-z]", "^", "#", ";", "&", "|", "<", ">", "(", ")", "x'; touch PWN; #", "$(touch PWN)",
            "`touch PWN`", "(touch PWN)", "\ntouch PWN\n", "''", "\\'", "\\\\", "a=b", "-n", "--", "é", "日本", "😀", "",
            "\u{fffe}", "\u{e0041}", "{", "}", "@(a|b)", "${HOME}", "%c%d",
        ]).prop_map(str::to_owned),
    ];
    let word = vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    let commands = vec(vec(word, 1..5), 120);
    let config = Config {
        cases: 3,
        max_shrink_iters: 40,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&commands, |commands| hold(&commands)).unwrap();
}

#[test]
fn untypable_word_makes_a_suggestion_inert() {
    for word in ["a\0b", "a\n", &"a".repeat(MAX_WORD_BYTES + 1)] {
        let command = Suggestion::of("rm -rf").with([word]);
        assert_eq!(command.to_string(), NOT_TYPABLE);
    }
    if has_shells() {
        let directory = tempfile::tempdir().unwrap();
        for shell in SHELLS {
            assert_eq!(
                run(shell, directory.path(), &format!("{NOT_TYPABLE}\n")),
                b""
            );
        }
    }
}

#[test]
fn common_words_need_no_quotes() {
    for (word, line) in [
        ("key:a/b-1", "key:a/b-1"),
        ("redis://h:6379/0?a=b", "'redis://h:6379/0?a=b'"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's $(true)", r#"'it'"'"'s $(true)'"#),
        ("=ls", "'=ls'"),
        ("a%20b", "a%20b"),
        ("ä", "'ä'"),
        (
            "a \n\u{1b}b\\",
            r#""$(LC_ALL=C awk 'BEGIN{printf "a %c%cb%c",10,27,92}')""#,
        ),
    ] {
        assert_eq!(Suggestion::default().with([word]).to_string(), line);
    }
}

#[test]
fn commands_of_a_hint_name_the_board_and_the_job() {
    let program = Suggestion::of("jobboard --board prod");
    let hint = Hint::from(
        "`jobboard show JOB` shows it, `jobboard list` all; --yes, `rm JOB`, `jobboard help list`",
    );
    let (text, commands) = hint.complete(&program, Some("key:a b")).unwrap();
    assert_eq!(
        text,
        "`jobboard --board prod show 'key:a b'` shows it, `jobboard --board prod list` all; --yes, `rm JOB`, \
         `jobboard help list`"
    );
    let words = commands.iter().map(|it| it.words().join("_"));
    assert_eq!(
        words.collect::<Vec<_>>(),
        [
            "jobboard_--board_prod_show_key:a b",
            "jobboard_--board_prod_list",
            "jobboard_help_list"
        ]
    );
    assert!(hint.complete(&program, None).is_none());
    let hint = Hint::new("`jobboard extend {}` by {}", [&["a`b", "-f"], &["`rm`"]]);
    let (text, _) = hint.complete(&program, None).unwrap();
    assert_eq!(text.matches('`').count(), 2, "{text}");
}

#[test]
fn suggested_commands_repeat_the_board_without_its_password() {
    for (board, line) in [
        (
            "redis://ada:hunter2@h/1",
            "jobboard --board redis://ada@h:6379/1",
        ),
        ("it's", r#"jobboard --board 'it'"'"'s'"#),
    ] {
        let flags = Flags {
            board: Some(board.to_owned()),
            ..Flags::default()
        };
        assert_eq!(flags.program().to_string(), line);
    }
}

/// Whether a line of code formats values into a literal command.
fn spells_a_command(line: &str) -> bool {
    let programs = [
        "jobboard",
        "redis-cli",
        "zkCli.sh",
        "sqlite3",
        "openssl",
        "chmod",
        "systemctl",
        "openstack",
        "mysql",
    ];
    programs.iter().any(|program| {
        let mut starts = ["`", "\"", "\"`", " `"].iter();
        starts.any(|start| {
            let (_, rest) = line
                .split_once(&format!("{start}{program} "))
                .unwrap_or_default();
            let command = rest.split(['`', '"']).next().unwrap_or_default();
            command.replace("{}", "").contains('{')
                || line.contains("format!") && command.contains("{}")
        })
    })
}

#[test]
fn commands_are_never_built_with_format() {
    assert!(spells_a_command(r#"format!("redis-cli -u {}", url)"#));
    assert!(spells_a_command(
        r#"note(format!("`jobboard show {job}` shows it"))"#
    ));
    assert!(!spells_a_command(
        r#"Hint::new("`jobboard show {}` shows it", [&[job]])"#
    ));
    let mut directories = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false
                    if path.ends_with("suggest/tests.rs")
                        || path.extension().is_none_or(|it| it != "rs") => {}
                false => {
                    let text = fs::read_to_string(&path).unwrap();
                    // These are the title of a schema, and a sentence.
                    let mut lines = text
                        .lines()
                        .filter(|it| !it.contains("Output of `jobboard {command}`"))
                        .filter(|it| !it.contains("jobboard dash needs"));
                    let found = lines.find(|line| spells_a_command(line));
                    assert_eq!(
                        found,
                        None,
                        "{}: use a Suggestion or a Hint",
                        path.display()
                    );
                }
            }
        }
    }
}
