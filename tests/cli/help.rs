//! Help texts and suggestions.

use crate::support::{Env, members, play};

#[test]
fn without_a_command_the_commands_are_listed() {
    let run = Env::new().run([]);
    let text = &run.stdout;
    assert_eq!((run.code, run.stderr.as_str()), (2, ""), "{run}");
    assert!(!text.contains("\n\n\n"), "{run}");
    assert!(text.contains("Usage: jobboard"), "{run}");
    assert!(text.contains("\nFix:\n  doctor  "), "{run}");
    assert!(text.contains("`jobboard help COMMAND`"), "{run}");
}

#[test]
fn help_of_a_command_explains_each_option() {
    let run = Env::new().run("help claim");
    let text = run.succeeded();
    assert!(
        text.starts_with("Claim a job\n\nExamples:\n  jobboard claim 3f9a --expiry 15m "),
        "{run}"
    );
    let parts = [
        "\nUsage: ",
        "\nWithout --hold or a command, the claim belongs to",
        "\nArguments:",
        "\nOptions:",
        "\nExit codes:\n  0    claimed",
    ];
    let at = parts.map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {run}")));
    assert!(at.is_sorted(), "{run}");
    let last = text.lines().last().unwrap();
    assert!(
        last.starts_with("Global options (") && last.contains("`jobboard help options`"),
        "{run}"
    );
    for option in [
        "--next",
        "--filter <EXPR>",
        "--wait <DURATION>",
        "--expiry <DURATION>",
    ] {
        assert!(text.contains(option), "{option}: {run}");
    }
    assert_eq!(run.stderr, "");
}

#[test]
fn version_is_one_line() {
    let run = Env::new().run("--version");
    assert_eq!(
        run.succeeded(),
        concat!("jobboard ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn global_options_work_before_and_after_the_command() {
    let env = Env::new();
    env.post("resize");
    let url = format!("sqlite:{}", env.board().display());
    std::fs::write(env.file("config.toml"), "").unwrap();
    let options: [&[&str]; 12] = [
        &["--board", &url],
        &["--config", "config.toml"],
        &["--who", "ada"],
        &["-o", "tsv"],
        &["--format", "tsv"],
        &["--json"],
        &["--color", "never"],
        &["-q"],
        &["-v"],
        &["--op-timeout", "5s"],
        &["--read-only"],
        &["--password-file", "config.toml"],
    ];
    for option in options {
        let before = env.run([option, &["list"]].concat());
        let behind = env.run([&["list"], option].concat());
        assert_eq!(
            before.succeeded().lines().count(),
            behind.succeeded().lines().count()
        );
    }
}

#[test]
fn verbose_messages_go_to_stderr() {
    let env = Env::new();
    env.post("resize");
    let [brief, verbose] = [&["list"][..], &["list", "-v"]].map(|words| env.run(words));
    assert_eq!(verbose.succeeded(), brief.succeeded());
    assert_eq!(brief.stderr, "");
    verbose.warns("board.db");
}

#[test]
fn common_subjects_have_topics() {
    let env = Env::new();
    for (topic, words) in [
        ("output", "one object per line"),
        ("filters", "name=\"big resize\""),
        ("boards", "JOBBOARD_OP_TIMEOUT"),
        ("exit-codes", "  124       timed out"),
        (
            "troubleshooting",
            "\nclaim-never-expires\n\nThe claim has no expiry",
        ),
        ("conducting", "Which jobs it runs"),
        ("scripting", "generate-jobs"),
        ("guarantees", "a job runs at least once"),
        ("options", "  -o, --format <FORMAT>\n"),
    ] {
        let run = env.run(["help", topic]);
        run.prints(words);
        assert!(
            run.stdout.lines().all(|line| line.chars().count() <= 100),
            "{run}"
        );
        let narrow = env.jobboard(&["help", topic]).at_terminal(60).run();
        let is_text = |line: &&str| !line.starts_with("  ") && !line.contains('\u{1b}');
        let lines = narrow.succeeded().lines().filter(is_text);
        assert!(lines.clone().count() > 1, "{narrow}");
        for line in lines {
            assert!(line.trim_end().chars().count() <= 60, "{line}");
        }
    }
}

#[test]
fn help_of_a_code_prints_its_section() {
    let env = Env::new();
    let run = env.run("help broken-lock");
    insta::assert_snapshot!(run.succeeded(), @r"
    broken-lock

    The job counts as claimed, but its owner cannot be read, or its ZooKeeper lock node is empty, so no
    client can claim the job.

      jobboard abandon --force --problem broken-lock

    This removes the lock. It is safe for a lock without an owner. If the owner is unreadable, first
    check that no worker is running the job. If you do nothing, the job never runs.
    ");
    let run = env.run("help broken-lock --json");
    let text = &run.json()["text"];
    assert!(
        text.as_str()
            .unwrap()
            .starts_with("### broken-lock\n\nThe job"),
        "{run}"
    );
}

#[test]
fn documented_filters_are_valid() {
    let env = Env::new();
    let page = std::fs::read_to_string("docs/filters.md").unwrap();
    let (_, examples) = page.split_once("## Examples").unwrap();
    let examples = examples.lines().filter_map(|line| {
        let (example, _) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some(example)
    });
    let examples: Vec<_> = examples.collect();
    assert_eq!(examples.len(), 7);
    for example in examples {
        let list = ["list", "--filter", example];
        env.ok(list);
    }
}

#[test]
fn each_filter_field_is_documented() {
    let env = Env::new();
    let page = std::fs::read_to_string("docs/filters.md").unwrap();
    let (_, fields) = page.split_once("## The fields").unwrap();
    let fields = fields
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let options_of_page: Vec<_> = fields.skip(1).flat_map(|names| names.split(", ")).collect();
    let run = env.run("help list --json");
    let grammar = run.json();
    let options = grammar["options"].as_array().unwrap();
    let by = options
        .iter()
        .find(|option| option["long"] == "by")
        .unwrap();
    for value in by["possible_values"].as_array().unwrap() {
        let name = value["name"].as_str().unwrap();
        let name = if name == "details" {
            "details.PATH"
        } else {
            name
        };
        assert!(
            options_of_page.contains(&name),
            "{name}: {options_of_page:?}"
        );
    }
}

/// Examples that change nothing and need only a board.
#[test]
fn examples_are_valid() {
    let env = Env::new();
    env.post("resize");
    let run = env.run("help --json");
    let program = run.json();
    let commands = program["commands"].as_array().unwrap();
    let mut typed = 0;
    for command in commands {
        let name = command["name"].as_str().unwrap();
        if !"list status report doctor ping config completions help metrics dump"
            .split(' ')
            .any(|it| it == name)
        {
            continue;
        }
        for example in command["examples"].as_array().unwrap() {
            let line = example["line"].as_str().unwrap();
            if line.contains(['|', '>']) || line.contains(".prom") || line.contains("--board") {
                continue;
            }
            let words = line.replace('\'', "");
            let words: Vec<_> = words.split(' ').skip(1).collect();
            env.ok(words);
            typed += 1;
        }
    }
    assert!(typed > 15, "{typed}");
}

#[test]
fn help_json_describes_the_arguments() {
    let env = Env::new();
    let run = env.run("help --json");
    let program = run.json();
    let commands = program["commands"].as_array().unwrap();
    let option = |options: &serde_json::Value, long: &str| {
        let options = options.as_array().unwrap();
        let found = options.iter().find(|option| option["long"] == long);
        found.unwrap_or_else(|| panic!("{long}: {run}")).clone()
    };
    let format = option(&program["global_options"], "format");
    assert_eq!(members(&format, "short env"), "o JOBBOARD_FORMAT");
    assert_eq!(format["possible_values"].as_array().unwrap().len(), 5);
    let run = commands
        .iter()
        .find(|command| command["name"] == "run")
        .unwrap();
    assert_eq!(run["arguments"][2]["several"], true);
    let attempts = option(&run["options"], "max-attempts");
    assert_eq!(members(&attempts, "default value_name"), "5 N");
    let list = env.run("help list --json");
    let list = list.json();
    assert_eq!(list["aliases"], serde_json::json!(["ls"]));
    assert!(commands.contains(&list), "{list}");
    for subject in ["options", "boards", "help"] {
        let run = env.run(["help", subject, "-o", "json"]);
        assert!(run.json().is_object(), "{run}");
    }
    assert_eq!(env.run("help nothing --json").error()["kind"], "usage");
}

#[test]
fn help_of_a_command_equals_its_help_option() {
    let env = Env::new();
    for command in ["list", "ls", "purge", "conduct", "help"] {
        let asked = env.run(["help", command]);
        let own = env.run([command, "--help"]);
        assert_eq!(asked.succeeded(), own.succeeded());
    }
    assert_eq!(env.run("help").succeeded(), env.ok("--help"));
}

#[test]
fn spelling_errors_suggest_similar_words() {
    play(
        r#"
        # spelling errors suggest similar words
        2 clam --next => error: unknown command `clam`\nhint: did you mean `claim`? `jobboard help` lists the commands
        2 post a --prioritty HIGH => error: unexpected argument '--prioritty' found\nhint: did you mean `--priority`? `jobboard help post` lists the options
        2 help outptu => did you mean `jobboard help output`?
        2 help owner-ded => did you mean `jobboard help owner-dead`?
        2 help conductos => did you mean `jobboard help conductors`?
        2 help foo => topics: boards filters output
        2 help nothing --json => {"error":{"code":2,"kind":"usage"
        "#,
    );
}
