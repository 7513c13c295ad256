use std::{
    collections::BTreeSet,
    io::{BufRead, BufReader, Read},
};

use super::{DURABLE, Nap, hang_up, open_behind_proxy};
use crate::support::{Env, Outcome, ProxyMode, Server, wait_until};

/// Jobs for several pages.
const COUNT: usize = 1500;

/// Posts jobs so large that the first page exceeds a pipe.
fn post_all(env: &Env) -> BTreeSet<String> {
    let room = "x".repeat(1000);
    let lines: String = (0..COUNT)
        .map(|number| format!("{{\"name\":\"job-{number}\",\"details\":{{\"a\":\"{room}\"}}}}\n"))
        .collect();
    let posted = env.jobboard(&["post", "--from", "-"]).stdin(lines).run();
    posted.succeeded().lines().map(str::to_owned).collect()
}

/// Lists a board with a fault after the first line, and returns the listing.
///
/// The next page is requested only after more of it is read.
fn list_through(env: &Env, words: &[&str], fault: impl FnOnce()) -> (Outcome, Vec<String>) {
    let (reader, writer) = std::io::pipe().unwrap();
    let list = env.jobboard(&[&["list", "-o", "jsonl"], words].concat());
    let running = list.spawn_into(writer);
    let mut reader = BufReader::with_capacity(64, reader);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    fault();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    let listed = (first + &rest)
        .lines()
        .map(|line| {
            let job: serde_json::Value = serde_json::from_str(line).unwrap();
            job["uuid"].as_str().unwrap().to_owned()
        })
        .collect();
    (running.ended(), listed)
}

fn is_whole(listed: &[String], posted: &BTreeSet<String>) {
    assert_eq!(listed.len(), posted.len());
    let listed: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(&listed, posted);
}

/// Sort orders with different requests at the moment of the fault.
const WAYS: [&[&str]; 2] = [&["--sort", "none"], &["--sort", "rank"]];

#[test]
fn killed_connection_hides_no_job() {
    need!((env, server) = Server::with_env(&[]));
    let posted = post_all(&env);
    for way in WAYS {
        let (ended, listed) = list_through(&env, way, || hang_up(&server));
        ended.succeeded();
        is_whole(&listed, &posted);
    }
}

#[test]
fn restarted_server_hides_no_job() {
    need!((env, mut server) = Server::with_env(&DURABLE));
    let posted = post_all(&env);
    for way in WAYS {
        let (ended, listed) = list_through(&env, way, || {
            server.kill();
            server.start_again();
        });
        ended.succeeded();
        is_whole(&listed, &posted);
    }
}

#[test]
fn server_that_lost_its_data_invents_no_job() {
    need!((env, mut server) = Server::with_env(&[]));
    let posted = post_all(&env);
    let (ended, listed) = list_through(&env, WAYS[0], || {
        server.kill();
        server.start_again();
    });
    ended.succeeded();
    let once: BTreeSet<_> = listed.iter().cloned().collect();
    assert_eq!(once.len(), listed.len());
    assert!(once.is_subset(&posted) && once.len() < COUNT);
}

#[test]
fn dead_server_ends_a_listing_with_an_error() {
    need!((env, mut server) = Server::with_env(&DURABLE));
    let posted = post_all(&env);
    for way in WAYS {
        let (ended, listed) = list_through(&env, way, || server.kill());
        ended.exits(5, "refused the connection");
        assert!(!listed.is_empty() && listed.len() < COUNT);
        assert!(listed.iter().all(|uuid| posted.contains(uuid)));
        server.start_again();
    }
}

#[test]
fn cut_page_is_requested_again() {
    need!((env, _server, proxy) = open_behind_proxy());
    let posted = post_all(&env);
    for way in WAYS {
        for word in ["HSCAN", "MGET", "EXISTS"] {
            proxy.set_at(word, ProxyMode::HangUpOnce);
            let (ended, listed) = list_through(&env, way, || ());
            assert!(proxy.has_sprung(), "{word}");
            ended.succeeded();
            is_whole(&listed, &posted);
        }
    }
}

#[test]
fn repeatedly_cut_page_is_an_error() {
    need!((env, _server, proxy) = open_behind_proxy());
    post_all(&env);
    for (way, word) in WAYS.into_iter().zip(["HSCAN", "MGET"]) {
        proxy.set_at(word, ProxyMode::HangUp);
        let ended = env.run([&["list", "--json"], way].concat());
        assert!(proxy.has_sprung());
        ended.fails(5, "closed the connection");
        proxy.set(ProxyMode::PassOn);
    }
}

#[test]
fn short_server_pause_delays_a_listing() {
    need!((env, server) = Server::with_env(&[]));
    let posted = post_all(&env);
    let mut nap = None;
    let (ended, listed) = list_through(&env, WAYS[0], || nap = Some(Nap::begin(&server, "2")));
    ended.succeeded();
    is_whole(&listed, &posted);
}

#[test]
fn long_server_pause_is_an_error() {
    need!((env, server) = Server::with_env(&[]));
    post_all(&env);
    let mut nap = None;
    let words = [WAYS[1], &["--op-timeout", "300ms"]].concat();
    let (ended, listed) = list_through(&env, &words, || nap = Some(Nap::begin(&server, "2")));
    ended.exits(5, "did not reply within 300ms");
    assert!(listed.len() < COUNT);
}

#[test]
fn stalled_replies_delay_a_listing_and_lose_no_script() {
    need!((env, server, proxy) = open_behind_proxy());
    let posted = post_all(&env);
    proxy.set_at("HSCAN", ProxyMode::Stall);
    let list = env.jobboard(&["list", "-o", "uuid"]).spawn();
    wait_until("it waits for the first page", || proxy.has_sprung());
    server.run(&["SCRIPT", "FLUSH"]);
    assert_eq!(list.stdout(), "");
    proxy.set(ProxyMode::PassOn);
    let ended = list.ended();
    let listed: Vec<_> = ended.succeeded().lines().map(str::to_owned).collect();
    is_whole(&listed, &posted);
}
