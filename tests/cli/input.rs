//! Malformed input: the error states the problem and the correct form.

mod bounds;
mod memory;

use crate::support::env::{Env, Outcome};

const MIB: usize = 1024 * 1024;

/// Requires code 2 with all of these texts, in words and as JSON.
fn is_refused(env: &Env, arguments: &[&str], texts: &[&str]) {
    let outcome = env.jobboard(arguments).run();
    let words = outcome.failed(2);
    assert!(words.starts_with("error: "), "{outcome}");
    let json = env.jobboard(&[&["--json"], arguments].concat()).run();
    json.failed(2);
    let error = json.error();
    assert_eq!(error["kind"], "usage", "{json}");
    let message = error["message"].as_str().unwrap();
    for text in texts {
        assert!(words.contains(text), "lacks {text:?}: {outcome}");
        assert!(message.contains(text), "lacks {text:?}: {json}");
    }
    assert!(!env.board().exists(), "something was posted");
}

fn post_with_details(env: &Env, details: impl Into<Vec<u8>>) -> Outcome {
    let post = env.jobboard(&["post", "resize", "--details", "-"]);
    post.stdin(details).run()
}

#[test]
fn invalid_json_details() {
    let env = Env::new();
    let post = |details| ["post", "resize", "--details", details];
    is_refused(
        &env,
        &post("{\"a\": }"),
        &["not valid JSON", "line 1 column 7"],
    );
    is_refused(
        &env,
        &post("{\"a\":\n1,}"),
        &["not valid JSON", "line 2 column 3"],
    );
    is_refused(&env, &post("[1]"), &["must be a JSON object", "an array"]);
    is_refused(&env, &post("7"), &["must be a JSON object", "a number"]);
    is_refused(
        &env,
        &["post", "resize", "a:={"],
        &["`a`: not valid JSON", "line 1 column 1"],
    );
    is_refused(
        &env,
        &["post", "resize", "word"],
        &["`word`", "KEY=TEXT", "KEY:=JSON"],
    );
    is_refused(
        &env,
        &["post", "resize", "a=1", "a=2"],
        &["`a` is given twice"],
    );
    is_refused(&env, &["post", "resize", "a:="], &["`a`", "empty input"]);
    is_refused(&env, &["post", "resize", "=b"], &["`=b` lacks a key"]);
    is_refused(
        &env,
        &["post", "resize", ""],
        &["must not be empty", "KEY=TEXT"],
    );
}

#[test]
fn unreadable_details_file() {
    let env = Env::new();
    let missing = ["post", "resize", "--details", "@missing.json"];
    is_refused(&env, &missing, &["missing.json", "no such file"]);
}

#[test]
fn details_with_invalid_utf8() {
    let env = Env::new();
    let run = post_with_details(&env, b"{\"a\": \"\xff\"}");
    run.failed(2);
}

#[test]
fn missing_file_of_lines() {
    let missing = ["post", "--from", "missing.jsonl"];
    is_refused(&Env::new(), &missing, &["missing.jsonl", "no such file"]);
}

#[test]
fn unknown_choice() {
    let env = Env::new();
    let choices = "VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW";
    is_refused(
        &env,
        &["post", "a", "--priority", "urgent"],
        &["`urgent`", choices],
    );
    is_refused(
        &env,
        &["list", "--state", "lost"],
        &["`lost`", "UNCLAIMED, CLAIMED"],
    );
    is_refused(
        &env,
        &["list", "--sort", "colour"],
        &["colour", "rank", "taskflow"],
    );
    is_refused(&env, &["list", "-o", "xml"], &["xml", "jsonl"]);
    is_refused(
        &env,
        &["watch", "--event", "stolen"],
        &["`stolen`", "posted, claimed", "paused, resumed, resync"],
    );
    is_refused(
        &env,
        &["post", "a", "--uuid", "5f3a"],
        &["`5f3a` is not a uuid"],
    );
    is_refused(&env, &["list", "--limit", "many"], &["many", "--limit"]);
}

#[test]
fn number_below_the_minimum() {
    let env = Env::new();
    let least = ["invalid value `0`: use 1 or more"];
    is_refused(&env, &["conduct", "--max-jobs", "0"], &least);
    is_refused(&env, &["conduct", "--max-attempts", "0"], &least);
}

#[test]
fn missing_selection() {
    let env = Env::new();
    is_refused(&env, &["purge"], &["--older-than or --all"]);
    is_refused(
        &env,
        &["trash"],
        &["--state, --name, --filter or --problem"],
    );
    is_refused(&env, &["wait"], &["no job given", "--empty or --any"]);
}

#[test]
fn zero_job_timeout() {
    for option in ["--job-timeout", "--job-timeout-max"] {
        let conduct = ["conduct", "--drain", option, "0s"];
        is_refused(&Env::new(), &conduct, &[option, "longer than 0s"]);
    }
}

#[test]
fn duration_without_a_unit() {
    let env = Env::new();
    let bare = ["`5` has no unit", "`5s`", "d, h, m, s, ms"];
    is_refused(&env, &["claim", "@1", "--expiry", "5"], &bare);
    is_refused(&env, &["claim", "--next", "--wait", "5"], &bare);
    is_refused(&env, &["wait", "@1", "--timeout", "5"], &bare);
    is_refused(&env, &["purge", "--older-than", "5"], &bare);
    is_refused(&env, &["list", "--op-timeout", "5"], &bare);
    is_refused(&env, &["list", "--filter", "held>5"], &bare);
}

#[test]
fn expiry_out_of_bounds() {
    let env = Env::new();
    for expiry in ["0s", "3651d"] {
        let bounds = [expiry, "1ms", "3650d"];
        is_refused(&env, &["claim", "@1", "--expiry", expiry], &bounds);
        is_refused(&env, &["extend", "@1", "--expiry", expiry], &bounds);
    }
}

#[test]
fn invalid_board() {
    let env = Env::new();
    let board = |url| ["list", "--board", url];
    let known = ["`namespase`", "namespace"];
    is_refused(
        &env,
        &board("redis://host/notanumber"),
        &["`notanumber`", "redis://HOST/0"],
    );
    is_refused(&env, &board("redis://host?namespase=x"), &known);
    is_refused(&env, &board("sqlite:x?sink=full"), &["`sink`", "sync"]);
    is_refused(
        &env,
        &board("sqlite:x?sync=often"),
        &["often", "full or normal"],
    );
    is_refused(&env, &board("sqlite:"), &["sqlite:PATH"]);
    is_refused(&env, &board("etcd://host"), &["`etcd`", "redis", "zk"]);
    is_refused(&env, &board("prod"), &["`prod`", "[board.NAME]"]);
    is_refused(&env, &board("./jobs.db"), &["sqlite:./jobs.db"]);
    is_refused(&env, &board(""), &["--board is empty"]);
}

#[test]
fn invalid_filter() {
    let env = Env::new();
    let filter = |text| ["list", "--filter", text];
    is_refused(
        &env,
        &filter("nme=x"),
        &["`nme`", "did you mean `name`?", "details.PATH"],
    );
    is_refused(&env, &filter("colour=red"), &["`colour`", "priority"]);
    is_refused(&env, &filter("name==x"), &["`==`", "= != ~ !~ < <= > >="]);
    is_refused(&env, &filter("priority~HIGH"), &["`~`", "priority", "<="]);
    is_refused(&env, &filter("name"), &["FIELD OP VALUE"]);
    is_refused(&env, &filter("age>"), &["the value after `>` is missing"]);
    is_refused(&env, &filter("name~("), &["regular expression"]);
    is_refused(&env, &filter("priority=urgent"), &["`urgent`", "VERY_HIGH"]);
}

#[test]
fn a_name_with_control_characters() {
    let env = Env::new();
    is_refused(
        &env,
        &["post", "a\u{1b}[2J"],
        &["control characters", "\\u{1b}"],
    );
    is_refused(
        &env,
        &["post", "a\nb"],
        &["control characters", "a newline"],
    );
    is_refused(&env, &["post", ""], &["needs a name"]);
}

#[test]
fn invalid_owner() {
    let env = Env::new();
    is_refused(&env, &["claim", "@1", "--who", ""], &["--who", "empty"]);
    is_refused(
        &env,
        &["claim", "@1", "--who", "a\nb"],
        &["--who", "control characters"],
    );
    let force = ["abandon", "@1", "--force", "--owner", ""];
    is_refused(&env, &force, &["--owner", "empty"]);
}

#[test]
fn invalid_owner_in_the_environment() {
    let env = Env::new();
    let run = env.jobboard(&["list"]).env("JOBBOARD_WHO", "").run();
    assert!(run.failed(2).contains("JOBBOARD_WHO is empty"), "{run}");
}

#[test]
fn invalid_book_or_uuid() {
    let env = Env::new();
    is_refused(&env, &["post", "a", "--book", "flows"], &["NAME:UUID"]);
    is_refused(&env, &["post", "a", "--book", "flows:1"], &["NAME:UUID"]);
    is_refused(&env, &["post", "a", "--uuid", "5f3a"], &["5f3a", "--uuid"]);
    is_refused(
        &env,
        &["post", "a", "--unique", ""],
        &["unique key", "empty"],
    );
}

#[test]
fn invalid_reference() {
    let env = Env::new();
    let forms = ["`resize`", "uuid", "@SEQUENCE", "key:TEXT"];
    for verb in ["claim", "consume", "abandon"] {
        is_refused(&env, &[verb, "resize"], &forms);
    }
    for verb in ["wait", "restore", "retry", "trash"] {
        let run = env.jobboard(&[verb, "resize"]).run();
        assert!(run.failed(3).contains("the uuid or name resize"), "{run}");
    }
    is_refused(&env, &["claim", "5f3"], &["`5f3`", "4 or more"]);
}

#[test]
fn standard_input_cannot_serve_two_purposes() {
    let env = Env::new();
    let once = ["standard input"];
    is_refused(&env, &["consume", "-", "-"], &once);
    is_refused(
        &env,
        &["post", "a", "--details", "-", "--password-file", "-"],
        &once,
    );
    is_refused(
        &env,
        &["post", "--from", "-", "--password-file", "-"],
        &once,
    );
}

#[test]
fn standard_input_cannot_be_password_and_references() {
    let env = Env::new();
    for verb in ["show", "wait", "consume", "trash", "restore", "purge"] {
        let twice = [verb, "-", "--password-file", "-"];
        is_refused(&env, &twice, &["standard input"]);
    }
}

#[test]
fn options_of_another_mode() {
    let env = Env::new();
    is_refused(
        &env,
        &["consume", "@1", "--filter", "name=x"],
        &["--filter"],
    );
    is_refused(&env, &["post", "a", "--timeout", "1s"], &["--wait"]);
    is_refused(&env, &["post", "a", "--from", "x"], &["--from"]);
}

#[test]
fn options_without_effect() {
    let env = Env::new();
    is_refused(&env, &["claim", "@1", "--filter", "name=x"], &["--filter"]);
    is_refused(&env, &["post", "a", "--check-first"], &["--check-first"]);
    is_refused(&env, &["claim", "@1", "--wait", "1s"], &["--wait"]);
    is_refused(&env, &["wait", "@1", "--filter", "name=x"], &["--filter"]);
    is_refused(
        &env,
        &["wait", "--empty", "--filter", "name=x"],
        &["--filter"],
    );
}

#[test]
fn usage_errors_are_json_on_request() {
    let env = Env::new();
    for format in [
        &["--json"][..],
        &["-o", "json"],
        &["-ojson"],
        &["--format=jsonl"],
    ] {
        let run = env
            .jobboard(&[format, &["list", "--limit", "x"]].concat())
            .run();
        run.failed(2);
        assert_eq!(run.error()["kind"], "usage");
    }
}

#[test]
fn json_errors_have_fixed_keys() {
    let env = Env::new();
    let error = env.run("show @1 --json").error();
    let keys: Vec<_> = error.as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["code", "kind", "message", "hint", "commands"]);
}

#[test]
fn priority_option_with_lines() {
    let env = Env::new();
    let call = ["post", "--from", "-", "--priority", "HIGH"];
    is_refused(&env, &call, &["--priority"]);
}
