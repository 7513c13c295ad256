//! Input that is oversized, endless or piped.

use super::*;
use crate::support::Env;

#[test]
fn endless_input_is_not_read_completely() {
    let env = Env::new();
    for line in [
        "show -",
        "consume -",
        "owner -",
        "--password-file - --board redis://127.0.0.1:1 list",
        "--password-file /dev/zero --board redis://127.0.0.1:1 list",
        "--config /dev/urandom list",
    ] {
        let run = env.jobboard(line).in_shell("exec \"$@\" < /dev/zero").run();
        assert!(
            run.code != 0 && run.stderr.contains("more than "),
            "{run:?}"
        );
    }
    let nobody_writes = env.file("pipe");
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &nobody_writes, fifo, 0o600.into(), 0).unwrap();
    let pipe = nobody_writes.to_str().unwrap();
    let password =
        format!("--password-file {pipe} --board redis://127.0.0.1:1 --op-timeout 1s list");
    for (line, message) in [
        (format!("--config {pipe} list"), "within 5s"),
        (password, "within 1s"),
    ] {
        let run = env.run(line);
        assert!(run.code != 0 && run.stderr.contains(message), "{run:?}");
    }
}

#[test]
fn configuration_and_password_may_come_through_pipes() {
    let env = Env::new();
    let script = "exec 3< <(echo '[board.a]'; sleep 0.2; echo 'url = \"sqlite:a.db\"'); \
                  exec \"$@\" --config /dev/fd/3 --board a list";
    let bash = ["-c", script, "bash", env!("CARGO_BIN_EXE_jobboard")];
    env.program("/bin/bash".as_ref(), &bash).run().succeeded();
}

#[test]
fn references_with_invalid_utf8() {
    let run = Env::new().jobboard(&["show", "-"]).stdin(b"\xff\n").run();
    run.failed(2);
}

#[test]
fn details_up_to_a_mebibyte_are_accepted() {
    let env = Env::new();
    // `{"a":""}` takes eight bytes.
    let details = |size: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(size - 8));
    post_with_details(&env, details(MIB)).posted();
    let run = post_with_details(&env, details(MIB + 1));
    assert_eq!(env.names().len(), 1);
    insta::assert_snapshot!(run, @"
    exit code 2
    --- stdout
    --- stderr
    error: the details have 1048577 bytes; the limit is 1048576
    hint: put large values into a file and its path into the details, or raise max_details in the configuration
    ");
}

#[test]
fn oversized_details_mention_the_limit() {
    let env = Env::new();
    for size in [2 * MIB, 20 * MIB] {
        let run = post_with_details(&env, format!("{{\"a\":\"{}\"}}", "x".repeat(size)));
        assert!(run.failed(2).contains("limit"), "{}: {run}", size / MIB);
    }
}

#[test]
fn configuration_raises_the_limit_on_details() {
    let env = Env::new();
    env.configure("max_details = \"2MiB\"\n");
    let details = format!("{{\"a\":\"{}\"}}", "x".repeat(MIB));
    post_with_details(&env, details.clone()).posted();
    let line = format!("{{\"name\":\"a\",\"details\":{details}}}\n");
    let bulk = env.jobboard(&["post", "--from", "-"]).stdin(line).run();
    bulk.succeeded();
    assert_eq!(env.names().len(), 2);
}

#[test]
fn deeply_nested_facts_are_refused() {
    let env = Env::new();
    let deep = format!("a:={}{}", "[".repeat(127), "]".repeat(127));
    (env.run(["post", "deep", &deep])).fails(2, "nested too deeply");
    assert!(env.names().is_empty());
}
