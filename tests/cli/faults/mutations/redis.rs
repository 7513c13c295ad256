//! A Redis board of mutated records, and keys of other types.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
};

use super::{Chance, becomes_idle, ends, meet, waiters};
use crate::{
    faults::size,
    support::{Env, Server},
};

/// The end of a pipeline.
const END: &[u8] = b"that-is-all";

/// A pipeline of commands.
#[derive(Default)]
struct Pipe(Vec<u8>);

impl Pipe {
    fn add(&mut self, words: &[&[u8]]) -> &mut Self {
        self.0.extend(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.0.extend(format!("${}\r\n", word.len()).as_bytes());
            self.0.extend(*word);
            self.0.extend(b"\r\n");
        }
        self
    }

    /// Sends them, and returns all replies.
    fn send(&mut self, server: &Server) -> Vec<u8> {
        let commands = std::mem::take(self.add(&[b"ECHO", END]));
        let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let mut writer = stream.try_clone().unwrap();
        let written = thread::spawn(move || writer.write_all(&commands.0).unwrap());
        let (mut answer, mut part) = (Vec::new(), [0; 65536]);
        while !answer.windows(END.len()).any(|window| window == END) {
            let count = stream.read(&mut part).unwrap();
            assert!(count > 0);
            answer.drain(..answer.len().saturating_sub(1 << 20));
            answer.extend(&part[..count]);
        }
        written.join().unwrap();
        answer
    }
}

fn asked(server: &Server) -> u64 {
    let statistics = server.run(&["INFO", "commandstats"]);
    let calls = statistics.lines().filter_map(|line| {
        let (_, rest) = line.split_once("calls=")?;
        rest.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum()
}

/// Posts mutated records, and adds foreign sidecars to them and to some sound jobs.
fn mutate(env: &Env, server: &Server, count: usize, chance: &mut Chance) {
    let sound = env.jobboard(&["post", "--from", "-"]).stdin(
        (0..count / 10 + 10)
            .map(|number| {
                format!("{{\"name\":\"j{number}\",\"details\":{{\"command\":[\"true\"]}}}}\n")
            })
            .collect::<String>(),
    );
    let sound: Vec<String> = sound.run().succeeded().lines().map(str::to_owned).collect();
    let raw = Pipe::default()
        .add(&[b"HGET", b"taskflow:listings", sound[0].as_bytes()])
        .send(server);
    let start = raw.windows(2).position(|two| two == b"\r\n").unwrap() + 2;
    let length: usize = String::from_utf8_lossy(&raw[1..start - 2]).parse().unwrap();
    let posting = raw[start..start + length].to_vec();
    let mut pipe = Pipe::default();
    let fields: Vec<String> = (0..count)
        .map(|number| format!("{number:08x}-0000-4000-8000-000000000000"))
        .collect();
    for field in &fields {
        let mut record = posting.clone();
        // Replaces the stated uuid with the key.
        if let Some(at) = record
            .windows(36)
            .position(|text| text == sound[0].as_bytes())
        {
            record[at..at + 36].copy_from_slice(field.as_bytes());
        }
        if chance.below(3) > 0 {
            record = chance.mutate(&record);
        }
        pipe.add(&[b"HSET", b"taskflow:listings", field.as_bytes(), &record]);
    }
    for field in fields.iter().chain(&sound[10..]) {
        let key = |name: &str| format!("taskflow:{field}.{name}").into_bytes();
        for name in ["jobboard", "owned", "last_modified"] {
            match (name, chance.below(12)) {
                (_, 0) => _ = pipe.add(&[b"LPUSH", &key(name), b"x"]),
                (_, 1) => _ = pipe.add(&[b"HSET", &key(name), b"x", b"y"]),
                ("jobboard", 2..=9) => _ = pipe.add(&[b"SET", &key(name), &chance.side()]),
                ("last_modified", 2..=4) => _ = pipe.add(&[b"SET", &key(name), b"\xc7x"]),
                ("owned", 2) => _ = pipe.add(&[b"SET", &key(name), b""]),
                ("owned", 3) => _ = pipe.add(&[b"SET", &key(name), b"\xff\x00"]),
                _ => {}
            }
        }
    }
    pipe.add(&[b"LPUSH", b"taskflow:conductor.list", b"x"])
        .add(&[b"SET", b"taskflow:conductor.text", b"x"])
        .send(server);
}

#[test]
fn faults_corrupted_records_on_redis_cause_no_hang_and_no_load() {
    need!((env, server) = Server::with_env(&[]));
    let mut chance = Chance::new();
    eprintln!("faults: the seed is {}", chance.0);
    mutate(&env, &server, size(5000, 120), &mut chance);
    meet(&env, "key:00000007-0000-4000-8000-000000000000");
    becomes_idle(waiters(&env), || asked(&server));
}

#[test]
fn faults_keys_of_another_type_end_each_command_with_a_reason() {
    need!(server = Server::start());
    thread::scope(|scope| {
        for key in ["listings", "trash", "sequence", "fence"] {
            for put in [&["SET"][..], &["LPUSH"]] {
                let server = &server;
                scope.spawn(move || ends_with_a_reason(server, key, put));
            }
        }
    });
}

/// Requires that each command ends on a board with one key of another type.
fn ends_with_a_reason(server: &Server, key: &str, put: &[&str]) {
    let env = Env::new();
    let namespace = format!("{key}-{}", put[0].to_lowercase());
    server.serves(&env, &format!("?namespace={namespace}"));
    env.ok("post resize -- true");
    let key = format!("{namespace}:{key}");
    server.run(&["DEL", &key]);
    server.run(&[put[0], &key, "some"]);
    let is_hash = key.ends_with("listings") || key.ends_with("trash");
    let ends_well = |words: &[&str]| {
        let ended = ends(&env, words);
        if ended.code == 1 || ended.code == 125 {
            assert!(ended.stderr.contains(&key), "{words:?}: {}", ended.stderr);
        }
        ended.code
    };
    for words in [
        &["list", "--json"][..],
        &["ping"],
        &["post", "other"],
        &["conductors"],
        &["explain"],
        &["wait", "--any", "--timeout", "1s"],
        &["watch", "--timeout", "1s"],
        &["claim", "--next", "--", "true"],
        &["claim", "--next", "--wait", "1s"],
    ] {
        ends_well(words);
    }
    let drained = ends_well(&["conduct", "--allow-any", "--drain"]);
    let is_fence = key.ends_with("fence");
    assert_eq!(drained, i32::from(is_hash || is_fence), "{key}");
    if is_fence {
        // Without an end it continues, with ever rarer requests.
        let conductor = env.jobboard(&["conduct", "--allow-any"]).spawn();
        conductor.says("board_failed");
        server.run(&["DEL", &key]);
        conductor.says("job_consumed");
        assert!(!conductor.stderr().contains("board_unreachable"));
    }
}
