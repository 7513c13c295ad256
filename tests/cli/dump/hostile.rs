//! Altered dumps, and unreadable records.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::{
    boards::{Boards, records},
    fill,
};

/// Requires that a file is refused and loads nothing.
#[track_caller]
fn is_refused(boards: &Boards, bytes: &[u8], code: i32, why: &str) {
    fs::write(boards.env.file("bad"), bytes).unwrap();
    let board = boards.another("embedded");
    let by_file = boards.run(&board, &["load", "bad"]);
    let by_pipe = boards.on(&board, &["load", "-"]).stdin(bytes).run();
    for refused in [by_file, by_pipe] {
        let text = refused.failed(code);
        assert!(text.contains(why), "{why}: {text}");
    }
    assert_eq!(
        boards.run(&board, &["list", "--count"]).succeeded(),
        "0\n",
        "{why}"
    );
}

#[test]
fn truncated_dump_is_refused_at_any_length() {
    let boards = Boards::new();
    fill(&boards, "embedded-from");
    boards.run("embedded-from", &["dump", "it"]).succeeded();
    let whole = fs::read(boards.env.file("it")).unwrap();
    let header = whole.iter().position(|byte| *byte == b'\n').unwrap();
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let mut cuts: Vec<_> = ends.map(|(at, _)| at + 1).collect();
    assert_eq!(cuts.pop(), Some(whole.len()));
    cuts.extend([header + 100, whole.len() - 10]);
    for cut in cuts {
        is_refused(&boards, &whole[..cut], 8, "is truncated");
    }
    let board = boards.another("embedded");
    let hint = format!("into `jobboard --board {} load -`", boards.url(&board));
    let load = boards.on(&board, &["load", "-"]).stdin(&whole[..header]);
    load.run().fails(8, &hint);
    // The end of the last line is not covered by the hash.
    let board = boards.another("embedded");
    let all = &whole[..whole.len() - 1];
    boards
        .on(&board, &["load", "-"])
        .stdin(all)
        .run()
        .succeeded();
    assert_eq!(boards.dumped(&board).len(), 8);
}

#[test]
fn empty_file_is_refused() {
    let boards = Boards::new();
    let board = boards.another("embedded");
    fs::write(boards.env.file("empty"), "\n").unwrap();
    let load = boards.run(&board, &["load", "empty"]);
    load.fails(8, "empty is empty: neither a dump nor jobs");
    // A listing may be empty.
    let input = boards.on(&board, &["load", "-"]).stdin("").run();
    input.succeeded();
}

#[test]
fn dump_after_blank_lines_is_verified() {
    let boards = Boards::new();
    fill(&boards, "embedded-from");
    boards.run("embedded-from", &["dump", "it"]).succeeded();
    let whole = fs::read_to_string(boards.env.file("it")).unwrap();
    for before in ["\n", "\n \t\r\n\n"] {
        let later = format!("{before}{whole}");
        let altered = later.replacen("\"low\"", "\"lov\"", 1);
        is_refused(&boards, altered.as_bytes(), 8, "its hash does not match");
        let cut = &later[..later.len() - 10];
        is_refused(&boards, cut.as_bytes(), 8, "is truncated");
        fs::write(boards.env.file("later"), &later).unwrap();
        for from in ["later", "-"] {
            let board = boards.another("embedded");
            let load = boards.on(&board, &["load", from]).stdin(later.as_str());
            load.run().succeeded();
            assert_eq!(boards.dumped(&board).len(), 8, "{from}");
        }
    }
    // Other characters before the header keep it recognisable.
    for before in [" ", "\u{feff}"] {
        let later = format!("{before}{whole}");
        is_refused(&boards, later.as_bytes(), 8, "its hash does not match");
    }
}

#[test]
fn altered_dump_is_refused() {
    let boards = Boards::new();
    fill(&boards, "embedded-from");
    boards.run("embedded-from", &["dump", "it"]).succeeded();
    let whole = fs::read_to_string(boards.env.file("it")).unwrap();
    for altered in [
        whole.replacen("\"low\"", "\"lov\"", 1),
        whole
            .replacen("\"jobs\":6", "\"jobs\":6 ", 1)
            .replacen("\n{\"end\"", "\n\n{\"end\"", 1),
        whole.replace('\n', "\r\n"),
        whole.replacen("\"filter\":[]", "\"filter\":[\"x\"]", 1),
    ] {
        is_refused(&boards, altered.as_bytes(), 8, "its hash does not match");
    }
    let later = whole.replacen("_dump\":1", "_dump\":2", 1);
    let changed = later.replacen("\"backend\":\"embedded\"", "\"backend\":3", 1);
    assert_ne!(changed, later);
    is_refused(&boards, later.as_bytes(), 2, "the dump has version 2;");
    is_refused(&boards, changed.as_bytes(), 2, "the dump has version 2;");
    let lacks = "the header of the dump lacks a valid `board` or `backend`";
    for (header, why) in [
        (r#"{"jobboard_dump":1}"#, lacks),
        (r#"{"jobboard_dump":1,"board":"b","backend":3}"#, lacks),
        (
            r#"{"jobboard_dump":1,"board":"b"#,
            "the header of the dump is damaged: not valid JSON: unexpected end at column",
        ),
    ] {
        is_refused(&boards, format!("{header}\n").as_bytes(), 8, why);
    }
    let mut bytes = whole.into_bytes();
    let at = bytes.len() / 2;
    bytes[at] = 0xff;
    is_refused(&boards, &bytes, 8, "its hash does not match");
}

#[test]
fn invalid_lines_are_reported_one_by_one() {
    let boards = Boards::new();
    let uuid = "1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b";
    let good = json!({"uuid": uuid, "name": "good", "details": {}});
    let past = json!({"uuid": uuid, "name": "x", "state": "COMPLETE", "details": null});
    let lines = [
        "{".to_owned(),
        "[]".to_owned(),
        json!({"name": "x"}).to_string(),
        json!({"uuid": "x", "name": "x"}).to_string(),
        json!({"uuid": uuid}).to_string(),
        json!({"uuid": uuid, "name": "x", "details": null}).to_string(),
        json!({"uuid": uuid, "name": "x", "priority": "GREAT"}).to_string(),
        json!({"state": "MALFORMED", "key": "x"}).to_string(),
        past.to_string(),
        good.to_string(),
    ];
    let mut bytes = lines.join("\n").into_bytes();
    bytes.extend(b"\n\xff\xfe\n");
    let loaded = boards
        .on("embedded-1", &["load", "-", "--json"])
        .stdin(bytes)
        .run();
    assert_eq!(loaded.code, 7, "{loaded:?}");
    for (line, why) in [
        (1, "unexpected end"),
        (2, "must be a JSON object"),
        (3, "no uuid"),
        (4, "`x`"),
        (5, "no name"),
        (6, "too large"),
        (7, "`priority` must be one of VERY_HIGH, HIGH"),
        (9, "from the history"),
        (11, "not UTF-8"),
    ] {
        let expected = loaded
            .stderr
            .lines()
            .find(|text| text.contains(&format!("cannot load line {line} ")));
        assert!(
            expected.is_some_and(|expected| expected.contains(why)),
            "{line}: {loaded:?}"
        );
    }
    loaded.warns("skipped");
    assert_eq!(boards.dumped("embedded-1").len(), 1);
}

#[test]
fn oversized_line_is_not_kept_in_memory() {
    let boards = Boards::new();
    let mut bytes = b"{\"name\":\"".to_vec();
    bytes.resize(70 << 20, b'x');
    bytes.extend(b"\"}\n");
    let limited = boards.on("embedded-1", &["load", "-"]).stdin(bytes).run();
    limited.fails(2, "the limit is 8454144");
}

#[test]
fn stored_bytes_that_contradict_the_record_are_refused() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let (from, to) = (boards.another(kind), boards.another(kind));
        boards.ok(&from, "post one n:=1");
        boards.ok(&from, "post two n:=2");
        boards.ok(&from, "dump it");
        let [one, two] = records(&boards.env, "it").try_into().unwrap();
        let (mut other, mut hidden) = (one.clone(), one.clone());
        other["raw"] = two["raw"].clone();
        hidden["details"] = Value::Null;
        let text = fs::read_to_string(boards.env.file("it")).unwrap();
        let header = text.lines().next().unwrap();
        for forged in [other, hidden] {
            let body = format!("{header}\n{forged}\n");
            let trailer = json!({
                "end": true, "jobs": 1, "trash": 0, "malformed": 0, "sha256": sha256(&boards, &body),
            });
            fs::write(boards.env.file("forged"), format!("{body}{trailer}\n")).unwrap();
            let loaded = boards.run(&to, &["load", "forged"]);
            loaded.exits(7, "the stored record has a different");
            assert_eq!(boards.dumped(&to).len(), 0);
        }
    }
}

/// Returns the hash of a text from the system's own program.
pub(crate) fn sha256(boards: &Boards, text: &str) -> String {
    let program = std::path::Path::new("/usr/bin/sha256sum");
    let outcome = boards.env.program(program, &[]).stdin(text).run();
    outcome.succeeded().split(' ').next().unwrap().to_owned()
}

#[test]
fn unreadable_records_are_dumped_and_left_out_when_loaded() {
    need!(boards = Boards::with_redis());
    let (from, to) = (boards.another("redis"), boards.another("redis"));
    boards.ok(&from, "post good");
    for location in ["listings", "trash"] {
        let key = format!("{from}:{location}");
        boards.redis().run_with(
            &["HSET", &key, &format!("bad-{location}")],
            b"\x81\xff\x00garbage",
        );
    }
    boards.ok(&from, "dump it");
    let text = fs::read_to_string(boards.env.file("it")).unwrap();
    assert!(text.contains("\"malformed\":2"), "{text}");
    for to in [to, boards.another("embedded")] {
        boards
            .run(&to, &["load", "it"])
            .exits(0, "unreadable records skipped: 2");
        assert_eq!(boards.dumped(&to).len(), 1);
    }
}

#[test]
fn dump_file_is_private_and_complete() {
    let boards = Boards::new();
    let board = boards.another("embedded");
    boards.ok(&board, "post secret password=x");
    let report = boards.run(&board, &["dump", "it", "--json"]).json();
    assert_eq!(report["jobs"], 1);
    let facts = fs::metadata(boards.env.file("it")).unwrap();
    assert_eq!(facts.permissions().mode() & 0o777, 0o600);
    let before = fs::read(boards.env.file("it")).unwrap();
    let gone = boards.run("redis://127.0.0.1:1", &["dump", "it"]);
    assert_eq!(gone.code, 5, "{gone:?}");
    assert_eq!(fs::read(boards.env.file("it")).unwrap(), before);
    let work = fs::read_dir(boards.env.file("")).unwrap();
    let names: Vec<_> = work
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        names.iter().all(|name| !name.ends_with("partial")),
        "{names:?}"
    );
    // A special file is written, not replaced.
    let words = ["dump", "/dev/stdout"];
    let through = boards.on(&board, &words).in_shell("\"$@\" | cat").run();
    assert!(
        through.stdout.starts_with("{\"jobboard_dump\":1"),
        "{through:?}"
    );
    let nowhere = boards.run(&board, &["dump", "no/such/folder/it"]);
    assert_eq!(nowhere.code, 1, "{nowhere:?}");
}
