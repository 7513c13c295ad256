use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use serde_json::Value;

use super::{DURABLE, Nap, hang_up, names_on, open_behind_proxy, uuid_in};
use crate::support::{Env, Outcome, ProxyMode, Server, assert_contains, wait_until};

/// The number of lines before the fault, and after it.
const HALF: usize = 1200;

fn lines(numbers: std::ops::Range<usize>) -> String {
    numbers
        .map(|number| format!("{{\"name\":\"job-{number}\"}}\n"))
        .collect()
}

/// Posts many jobs with a fault after the first half.
fn post_through(env: &Env, more: &[&str], fault: impl FnOnce()) -> Outcome {
    let words = [&["post", "--from", "-", "-o", "jsonl"], more].concat();
    let mut post = env.jobboard(&words).piped_stdin().spawn();
    let mut stdin = post.stdin();
    stdin.write_all(lines(0..HALF).as_bytes()).unwrap();
    wait_until("the first half is posted", || {
        post.stdout().lines().count() == HALF
    });
    fault();
    let _ = stdin.write_all(lines(HALF..2 * HALF).as_bytes());
    drop(stdin);
    post.ended()
}

/// The reported results of a bulk post, by job name.
#[derive(Debug, Default)]
struct Reports {
    posted: BTreeSet<String>,
    unknown: BTreeSet<String>,
    refused: BTreeSet<String>,
    /// Jobs that the last error refuses, and all later ones.
    given_up: usize,
}

impl Reports {
    fn of(outcome: &Outcome) -> Self {
        let mut reports = Self::default();
        for job in outcome.values() {
            assert_eq!(job["done"], "posted", "{job}");
            let name = job["name"].as_str().unwrap().to_owned();
            assert_eq!(format!("job-{}", job["line"].as_u64().unwrap() - 1), name);
            assert!(reports.posted.insert(name), "{job} was posted twice");
        }
        for line in outcome.stderr.lines() {
            let report: Value = serde_json::from_str(line).unwrap();
            let message = report["error"]["message"].as_str().unwrap();
            let Some(number) = line_in(message) else {
                assert_eq!(reports.given_up, 0, "{line}: it had ended by then");
                reports.given_up = first_given_up(message).map_or(0, |first| 2 * HALF + 1 - first);
                continue;
            };
            let name = format!("job-{}", number - 1);
            let is_new = match report["error"]["kind"].as_str().unwrap() {
                "unknown" => reports.unknown.insert(name),
                "unreachable" => reports.refused.insert(name),
                kind => panic!("{kind}: {message}"),
            };
            assert!(is_new, "{line} is reported twice");
        }
        reports
    }

    /// Requires a result for each line, and that the results are true.
    fn is_true_of(&self, board: &BTreeMap<String, usize>) {
        let reported = [&self.posted, &self.unknown, &self.refused].map(BTreeSet::len);
        let reported = reported.iter().sum::<usize>() + self.given_up;
        assert_eq!(reported, 2 * HALF, "{self:?}");
        for name in &self.posted {
            assert_eq!(board.get(name), Some(&1), "{name} is reported as posted");
        }
        for (name, count) in board {
            assert_eq!(*count, 1, "{name}");
            let is_reported = self.posted.contains(name) || self.unknown.contains(name);
            assert!(is_reported, "{name} is on the board without a report");
        }
        for name in &self.refused {
            assert!(
                !board.contains_key(name),
                "{name} is reported as not posted"
            );
        }
    }
}

/// Requires that every line was posted exactly once.
fn all_are_posted(env: &Env, ended: &Outcome) {
    ended.succeeded();
    let reports = Reports::of(ended);
    assert_eq!(reports.posted.len(), 2 * HALF);
    reports.is_true_of(&names_on(env));
}

fn line_in(message: &str) -> Option<u64> {
    let (number, _) = message.strip_prefix("line ")?.split_once(':')?;
    Some(number.parse().unwrap())
}

/// Returns the first refused line of an error about several.
fn first_given_up(message: &str) -> Option<usize> {
    let (_, lines) = message.split_once("cannot post line")?;
    let mut words = lines.trim_start_matches('s').split_whitespace();
    Some(words.next()?.parse().unwrap())
}

#[test]
fn killed_connection_between_batches_loses_no_post() {
    need!((env, server) = Server::with_env(&[]));
    let ended = post_through(&env, &[], || hang_up(&server));
    all_are_posted(&env, &ended);
}

#[test]
fn restarted_server_with_its_data_has_all_posts() {
    need!((env, mut server) = Server::with_env(&DURABLE));
    let ended = post_through(&env, &[], || {
        server.kill();
        server.start_again();
    });
    all_are_posted(&env, &ended);
}

#[test]
fn server_that_lost_its_data_has_the_later_posts() {
    need!((env, mut server) = Server::with_env(&[]));
    let ended = post_through(&env, &[], || {
        server.kill();
        server.start_again();
    });
    ended.succeeded();
    assert_eq!(Reports::of(&ended).posted.len(), 2 * HALF);
    let board = names_on(&env);
    let since: BTreeSet<_> = (HALF..2 * HALF)
        .map(|number| format!("job-{number}"))
        .collect();
    assert!(board.keys().eq(&since), "{board:?}");
    assert!(board.values().all(|count| *count == 1));
}

#[test]
fn dead_server_ends_the_posts_with_a_report() {
    need!((env, mut server) = Server::with_env(&DURABLE));
    let ended = post_through(&env, &[], || server.kill());
    assert_eq!(ended.code, 5, "{}", ended.stderr);
    let reports = Reports::of(&ended);
    assert_eq!(reports.posted.len(), HALF);
    let report: Value = serde_json::from_str(ended.stderr.trim_end()).unwrap();
    let message = report["error"]["message"].as_str().unwrap();
    assert_contains(message, format!("cannot post lines {} to ", HALF + 1));
    assert_contains(message, format!("{HALF} before them were posted"));
    assert!(message.contains("refused the connection"), "{message}");
    server.start_again();
    reports.is_true_of(&names_on(&env));
}

#[test]
fn short_server_pause_delays_posts() {
    need!((env, server) = Server::with_env(&[]));
    let mut nap = None;
    let ended = post_through(&env, &[], || nap = Some(Nap::begin(&server, "2")));
    all_are_posted(&env, &ended);
}

#[test]
fn long_server_pause_leaves_one_batch_unknown() {
    need!((env, server) = Server::with_env(&[]));
    let mut nap = None;
    let hasty = ["--op-timeout", "300ms"];
    let ended = post_through(&env, &hasty, || nap = Some(Nap::begin(&server, "2")));
    // Either the lookup found all, or not the first batch, or the server still hung: then the others are refused.
    let reports = Reports::of(&ended);
    let code = match (reports.given_up, reports.unknown.len()) {
        (0, 0) => 0,
        (0, _) => 7,
        (_, _) => 5,
    };
    assert!(reports.posted.len() >= HALF, "{}", ended.stderr);
    assert_eq!(ended.code, code, "{}", ended.stderr);
    reports.is_true_of(&names_on(&env));
}

#[test]
fn batch_with_a_lost_reply_is_found_and_not_posted_again() {
    need!((env, _server, proxy) = open_behind_proxy());
    let ended = post_through(&env, &[], || proxy.set_at("EVALSHA", ProxyMode::HangUpOnce));
    assert!(proxy.has_sprung());
    all_are_posted(&env, &ended);
}

#[test]
fn batch_with_a_permanently_lost_reply_is_unknown_and_the_others_are_refused() {
    need!((env, _server, proxy) = open_behind_proxy());
    let ended = post_through(&env, &[], || proxy.set_at("EVALSHA", ProxyMode::HangUp));
    assert!(proxy.has_sprung());
    assert_eq!(ended.code, 5, "{}", ended.stderr);
    let reports = Reports::of(&ended);
    assert_eq!(reports.posted.len(), HALF);
    assert!(!reports.unknown.is_empty());
    proxy.set(ProxyMode::PassOn);
    let board = names_on(&env);
    reports.is_true_of(&board);
    // They were posted without proof.
    assert!(reports.unknown.iter().all(|name| board.contains_key(name)));
    let unknown = ended
        .stderr
        .lines()
        .find(|line| line.contains("\"unknown\""));
    let report: Value = serde_json::from_str(unknown.unwrap()).unwrap();
    let hint = report["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("jobboard show"), "{hint}");
    let uuid = uuid_in(report["error"]["message"].as_str().unwrap());
    env.ok(format!("show {uuid}"));
}
