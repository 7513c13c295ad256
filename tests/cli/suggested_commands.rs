//! Suggested commands: shells read the same words as programs, for any names and owners.

use std::{
    collections::BTreeSet,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::{
    doctor::dead,
    support::{Env, Invocation, Outcome, needs, wait_until},
};

const QUOTED: &str = "x'; touch PWN; #";
const ODD: &str = "a\\'b`touch PWN`|c$(touch PWN)é";

type Words = Vec<String>;

/// A board whose names, owners, pause and conductor contain commands.
struct Hostile {
    env: Env,
    board: String,
}

impl Hostile {
    fn new() -> Self {
        let env = Env::new();
        let path = env.file("it's $(touch PWN) `touch PWN` | b");
        let board = format!("sqlite:{}", path.display());
        let hostile = Self { env, board };
        for (name, who) in [
            (QUOTED, QUOTED),
            (ODD, ODD),
            ("plain", QUOTED),
            (ODD, QUOTED),
        ] {
            let posted = hostile.run(&["post", name]);
            let job = posted.succeeded().trim().to_owned();
            let who = if name == "plain" {
                who.to_owned()
            } else {
                dead(who)
            };
            hostile.run(&["claim", &job, "--who", &who]).succeeded();
        }
        hostile.run(&["post", QUOTED]).succeeded();
        for names in [QUOTED, "-y*"] {
            hostile.run(&["pause", "--", names]).succeeded();
        }
        hostile
    }

    fn jobboard(&self, words: &[&str]) -> Invocation {
        let board = ["--board", &self.board, "--color", "never"];
        self.env.jobboard(&[&board[..], words].concat())
    }

    fn run(&self, words: &[&str]) -> Outcome {
        self.jobboard(words).run()
    }

    /// Returns the commands in a text, as read by each shell.
    fn read(&self, text: &str) -> BTreeSet<Words> {
        let text = text
            .replace("&lt;", "<")
            .replace("&gt;", ">")
            .replace("&quot;", "\"");
        let text = text.replace("&#39;", "'").replace("&amp;", "&");
        let start = "jobboard --board ";
        let commands = text
            .split('\n')
            .flat_map(|line| line.split(['\t', '`', '\r']));
        let commands = commands.filter_map(|part| {
            let command = &part[part.find(start)?..];
            Some(command.split("</code>").next().unwrap().to_owned())
        });
        let script = commands.fold(String::new(), |script, command| {
            script + "printf '%s\\a' " + &command + "\nprintf '\\v'\n"
        });
        let read = [
            &["sh"][..],
            &["bash", "--norc"],
            &["zsh", "-f"],
            &["fish", "--no-config"],
        ];
        let read = read.map(|shell| self.in_shell(shell, &script));
        assert!(read.iter().all(|it| *it == read[0]), "{read:#?}");
        let commands = read[0].split('\u{b}').filter(|it| !it.is_empty());
        let words = |it: &str| it.split_terminator('\u{7}').map(str::to_owned).collect();
        commands.map(words).collect()
    }

    /// Runs a script that finds only `awk` and `touch`, and requires that it creates no file.
    fn in_shell(&self, shell: &[&str], script: &str) -> String {
        let (bin, home) = (self.env.file("bin"), self.env.file("home"));
        fs::create_dir_all(&bin).unwrap();
        fs::create_dir_all(&home).unwrap();
        for program in ["awk", "touch"] {
            let _ = symlink(path(program), bin.join(program));
        }
        let file = self.env.file("script");
        fs::write(&file, script).unwrap();
        let run = Command::new(path(shell[0]))
            .args(&shell[1..])
            .arg(file)
            .current_dir(&home)
            .env_clear()
            .envs([("PATH", &bin), ("HOME", &home)])
            .env("LC_ALL", "C.UTF-8")
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(
            run.status.success() && errors.is_empty(),
            "{shell:?}: {errors}\n{script}"
        );
        assert!(!home.join("PWN").exists(), "{shell:?}: {script}");
        String::from_utf8(run.stdout).unwrap()
    }
}

fn path(program: &str) -> PathBuf {
    let all = env::var_os("PATH").unwrap_or_default();
    let mut all = env::split_paths(&all).map(|directory| directory.join(program));
    all.find(|it| it.exists()).unwrap()
}

/// Collects the commands in a value, and requires that each is an array of words.
fn commands(value: &Value, found: &mut BTreeSet<Words>) {
    let words = |it: &Value| {
        let words = it.as_array().unwrap_or_else(|| panic!("{value:#}")).iter();
        words
            .map(|word| word.as_str().unwrap().to_owned())
            .collect::<Words>()
    };
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match name.as_str() {
                    "command" if !member.is_null() => _ = found.insert(words(member)),
                    "commands" => found.extend(member.as_array().unwrap().iter().map(words)),
                    _ => commands(member, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| commands(item, found)),
        _ => {}
    }
}

#[test]
fn suggested_commands_are_equal_in_every_form() {
    if !["sh", "bash", "zsh", "fish"].into_iter().all(needs::has) {
        return;
    }
    let hostile = Hostile::new();
    let name = "n'; touch PWN; #";
    let conduct = ["conduct", "--name", name, "--filter", "name=none"];
    let conductor = hostile.jobboard(&conduct).spawn();
    wait_until("the conductor is listed", || {
        hostile.run(&["conductors"]).stdout.contains("touch PWN")
    });
    for (verb, least) in [("doctor", 2), ("explain", 2), ("check", 2), ("report", 2)] {
        let json = hostile.run(&[verb, "--json"]);
        let mut suggested = BTreeSet::new();
        json.values()
            .iter()
            .for_each(|value| commands(value, &mut suggested));
        assert!(suggested.len() >= least, "{verb}: {suggested:#?}");
        let page = hostile.env.file("page.html");
        let forms = match verb {
            "report" => {
                let page = page.to_str().unwrap();
                hostile.run(&[verb, page]).succeeded();
                vec![fs::read_to_string(Path::new(page)).unwrap()]
            }
            "check" => vec![hostile.run(&[verb]).stdout],
            _ => {
                vec![
                    hostile.run(&[verb, "-o", "tsv"]).stdout,
                    hostile.run(&[verb]).stdout,
                    hostile.jobboard(&[verb]).at_terminal(2000).run().stdout,
                ]
            }
        };
        for (at, text) in forms.iter().enumerate() {
            let mut read = hostile.read(text);
            assert!(!read.is_empty(), "{verb}: {text}");
            // The text alone suggests these.
            read.retain(|words| !words.ends_with(&["doctor", "--fix"].map(str::to_owned)));
            let strange: Vec<_> = read
                .difference(&suggested)
                .filter(|it| it.last().is_none_or(|it| it != QUOTED && it != "-y*"))
                .collect();
            assert!(
                strange.is_empty(),
                "{verb} {at}: {strange:#?}\nnot in {suggested:#?}"
            );
            let is_whole = matches!(verb, "doctor" | "explain") && at == 0;
            assert!(
                !is_whole || suggested.is_subset(&read),
                "{verb}: {read:#?}\nlack of {suggested:#?}"
            );
        }
    }
    conductor.kill();
}

#[test]
fn commands_of_hints_are_arrays_of_the_same_words() {
    if !["sh", "bash", "zsh", "fish"].into_iter().all(needs::has) {
        return;
    }
    let hostile = Hostile::new();
    let listed = hostile.run(&["list", "--state", "CLAIMED", "-o", "uuid"]);
    let job = listed.succeeded().lines().next().unwrap().to_owned();
    for words in [
        &["claim", &job][..],
        &["consume", &job],
        &["claim", "--who", QUOTED],
        &["show", "key:x'; touch PWN; #"],
        &["list", "--filter", "`touch PWN`"],
        &["help", "`touch PWN`"],
    ] {
        let json = hostile.run(&[words, &["--json"]].concat());
        let error = json
            .stderr
            .lines()
            .find(|line| line.starts_with("{\"error\""));
        let error: Value = serde_json::from_str(error.unwrap_or_else(|| panic!("{json}"))).unwrap();
        let mut suggested = BTreeSet::new();
        commands(&error, &mut suggested);
        suggested.retain(|words| words[1] == "--board");
        let text = hostile.run(words).stderr;
        let hint = text.split_once("hint: ").unwrap().1;
        assert_eq!(hostile.read(hint), suggested, "{text}");
    }
}
