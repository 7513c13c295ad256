//! Hostile input: no command uses more than 150 MB of memory, or prints much of it.

use std::fs;

use super::*;
use crate::support::{Env, Invocation, needs};

/// The memory limit in MiB.
const MAX_MEMORY_MIB: u64 = 143;

/// The longest printed value, with its surroundings.
const PRINTED: usize = 4096;

/// Returns an environment if memory can be measured.
fn measured() -> Option<Env> {
    needs::has("python3").then(Env::new)
}

/// Requires that a run uses little memory and prints little, and returns it.
#[track_caller]
fn weighs_little(what: &str, run: Invocation) -> Outcome {
    let (run, used) = run.run_weighed();
    eprintln!("memory: {what}: {used} MiB, code {}", run.code);
    let printed = run.stdout.len() + run.stderr.len();
    assert!(used <= MAX_MEMORY_MIB, "{what}: {used} MiB");
    assert!(printed <= PRINTED, "{what}: {printed} bytes");
    run
}

/// Returns JSON of this size whose details have very many values.
fn dense(value: &str, bytes: usize) -> String {
    let values = format!("{value},").repeat(bytes / (value.len() + 1));
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    format!("{{\"uuid\":\"{uuid}\",\"name\":\"a\",\"details\":{{\"a\":[{values}0]}}}}\n")
}

#[test]
fn lines_of_many_values_use_little_memory() {
    need!(env = measured());
    for (value, mebibytes) in [
        ("{\"\":0}", 8),
        ("{\"\":0}", 1),
        ("[0]", 8),
        ("[0]", 1),
        ("0", 60),
        ("0", 8),
        ("0", 1),
    ] {
        let line = dense(value, mebibytes * MIB - 1024);
        fs::write(env.file("lines"), line.repeat(3)).unwrap();
        for words in [&["load", "lines"][..], &["post", "--from", "lines"]] {
            let what = format!("{} of {mebibytes} MiB of {value}", words[0]);
            let run = weighs_little(&what, env.jobboard(words));
            assert!(mebibytes == 1 || run.code != 0, "{run}");
        }
        let run = env.jobboard(&["post", "a", "--details", "@lines"]);
        weighs_little(&format!("--details of {mebibytes} MiB of {value}"), run);
        let run = env.jobboard("purge --trash --yes --force --state UNCLAIMED");
        let _ = run.run();
        let _ = env.run("trash --force --yes --state UNCLAIMED");
    }
}

#[test]
fn many_lines_of_many_values_use_little_memory() {
    need!(env = measured());
    let line = |at: usize| dense("{\"\":0}", 20_000).replace("1f0c9a58", &format!("{at:08x}"));
    let lines: String = (0..200).map(line).collect();
    fs::write(env.file("lines"), lines).unwrap();
    for words in [
        &["load", "lines", "-q"][..],
        &["post", "--from", "lines", "-q"],
    ] {
        let run = env.jobboard(words).in_shell("\"$@\" > /dev/null 2>&1");
        weighs_little(words[0], run);
    }
}

#[test]
fn unreadable_records_use_little_memory_when_left_out() {
    need!(env = measured());
    let long = "A".repeat(8 * MIB);
    for (key, raw) in [("k", long.as_str()), (&long, "AAAA")] {
        let line = format!("{{\"state\":\"MALFORMED\",\"key\":\"{key}\",\"raw\":\"{raw}\"}}\n");
        fs::write(env.file("lines"), line.repeat(5)).unwrap();
        for form in ["--json", "-q"] {
            weighs_little("load", env.jobboard(&["load", "lines", form])).has_code(0);
        }
    }
}

#[test]
fn endless_references_use_little_memory() {
    need!(env = measured());
    for line in ["abcd", "key:0123456789012345678901234567890123456789"] {
        let run = env.jobboard(&["show", "-"]);
        let run = run.in_shell(&format!("yes {line} | \"$@\""));
        weighs_little("references", run).fails(2, "too many jobs");
    }
}

#[test]
fn configurations_of_many_values_use_little_memory() {
    need!(env = measured());
    let most = MIB / 4 - 100;
    let pad = |part: &str| part.repeat(most / part.len());
    for text in [
        format!("a=[{}]", pad("[],")),
        format!("a=[{}]", pad("0,")),
        format!("a=[{}]", pad("{a=0},")),
        pad("[[a]]\n"),
        format!("a={}", pad("[")),
        (0..most / 10).map(|at| format!("k{at:x}=0\n")).collect(),
    ] {
        let text = &text[..text.len().min(MIB / 4)];
        env.configure(text);
        let what = format!("the configuration {}", &text[..10].escape_debug());
        weighs_little(&what, env.jobboard(&["list"]));
    }
    fs::remove_file(env.configure("")).unwrap();
    let directory = env.file("octavia.d");
    fs::create_dir(&directory).unwrap();
    let keys = |file: usize| (0..90_000).map(move |at| format!("{file}k{at:x}=\n"));
    for file in 0..20 {
        let text: String = keys(file).collect();
        fs::write(
            directory.join(format!("{file}.conf")),
            format!("[a]\n{text}"),
        )
        .unwrap();
    }
    let run = env.jobboard(&["list", "--board", "octavia:octavia.d"]);
    weighs_little("the snippets", run).failed(2);
    let nested = |name: char, of: char| format!("{name} = {}\n", format!("${of}").repeat(90));
    let text = format!("b = {}\n{}", "x".repeat(MIB / 2), nested('c', 'b'));
    let text = format!("[task_flow]\n{text}jobboard_backend_hosts = $c\n");
    fs::write(env.file("octavia.conf"), text).unwrap();
    let run = env.jobboard(&["list", "--board", "octavia:octavia.conf"]);
    weighs_little("values in values", run).failed(2);
}
