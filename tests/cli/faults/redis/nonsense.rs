//! A server with valid but unexpected replies.

use std::{
    io::{Read, Write},
    net::TcpListener,
    thread,
};

use crate::support::Env;

/// Starts a server with this reply to everything, and returns its URL.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut asked = [0; 65536];
                while stream.read(&mut asked).is_ok_and(|length| length > 0) {
                    // Enough for each command of a pipeline.
                    let _ = stream.write_all(&answer.repeat(8));
                }
            });
        }
    });
    format!("redis://{address}")
}

#[test]
fn post_ends_despite_any_reply() {
    let env = Env::new();
    for answer in [
        &b"$-5\r\n"[..],
        b"$-1\r\n",
        b"*0\r\n",
        b"+OK\r\n",
        b":1\r\n",
    ] {
        let url = answering(answer);
        let words = format!("--board {url} post a --op-timeout 2s");
        let run = env.run(words);
        assert_ne!(run.code, 0, "{answer:?}: {run:?}");
    }
}
