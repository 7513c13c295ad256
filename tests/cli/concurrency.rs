//! Many processes on one board.

use std::collections::BTreeSet;

use crate::support::{Env, Running, SOON, wait_until};

/// Starts the same call several times concurrently.
fn at_once(env: &Env, count: usize, arguments: &[&str]) -> Vec<Running> {
    (0..count)
        .map(|_| env.jobboard(arguments).spawn())
        .collect()
}

#[test]
fn concurrent_first_posts_succeed() {
    // The race is rare, so repeat.
    for _ in 0..50 {
        let env = Env::new();
        // Enough time for all others.
        let posts = at_once(&env, 8, &["post", "resize", "--op-timeout", "30s"]);
        let readers = at_once(&env, 4, &["list", "--op-timeout", "30s"]);
        let posted: BTreeSet<_> = posts
            .into_iter()
            .map(|post| post.ended().posted())
            .collect();
        for reader in readers {
            reader.ended().succeeded();
        }
        assert_eq!(posted.len(), 8);
        assert_eq!(env.names().len(), 8);
    }
}

#[test]
fn concurrent_claims_of_one_job_have_one_winner() {
    let env = Env::new();
    env.post("resize");
    let claims = at_once(&env, 8, &["claim", "@1", "--json"]);
    let codes = claims.into_iter().map(|claim| claim.ended().code);
    let mut codes: Vec<_> = codes.collect();
    codes.sort();
    assert_eq!(codes, [0, 4, 4, 4, 4, 4, 4, 4]);
}

#[test]
fn concurrent_unique_posts_create_one_job() {
    let env = Env::new();
    env.post("other");
    let posts = at_once(&env, 8, &["post", "nightly", "--unique", "key", "--json"]);
    let done: Vec<_> = posts.into_iter().map(|post| post.ended().json()).collect();
    let posted = done.iter().filter(|job| job["done"] == "posted").count();
    let existed = done.iter().filter(|job| job["done"] == "exists").count();
    assert_eq!((posted, existed), (1, 7));
    assert_eq!(env.names(), ["other", "nightly"]);
}

#[test]
fn owner_of_an_expired_claim_loses_the_job() {
    let env = Env::new();
    env.post("resize");
    let claim = ["claim", "@1", "--expiry", "100ms", "--who", "ada"];
    env.ok(claim);
    wait_until("the claim to lapse", || env.state("@1") == "UNCLAIMED");
    let late = |verb: &str, more: &[&str]| {
        let words = [&[verb, "@1", "--who", "ada", "--json"], more].concat();
        env.run(words).error()["kind"].clone()
    };
    assert_eq!(late("consume", &[]), "not-claimed");
    assert_eq!(late("extend", &["--expiry", "1h"]), "not-claimed");
    env.claim("@1", "bob");
    assert_eq!(late("consume", &[]), "not-owner");
    assert_eq!(late("abandon", &[]), "not-owner");
    assert_eq!(late("trash", &[]), "not-owner");
    assert_eq!(env.show("@1")["owner"], "bob");
}

#[test]
fn extended_claim_does_not_expire() {
    let env = Env::new();
    env.post_many(2);
    let claim = |job: &str| {
        env.ok(format!("claim {job} --expiry 2s"));
    };
    claim("@1");
    claim("@2");
    env.ok("extend @1 --expiry 1h");
    wait_until("the other claim to lapse", || {
        env.state("@2") == "UNCLAIMED"
    });
    assert_eq!(env.state("@1"), "CLAIMED");
}

#[test]
fn expired_claim_is_offered_again() {
    let env = Env::new();
    env.post("resize");
    let claim = ["claim", "@1", "--expiry", "1ms"];
    env.ok(claim);
    wait_until("the claim to lapse", || env.state("@1") == "UNCLAIMED");
    // No process has recorded the expiry yet: a listing and a claim must compute it.
    let unclaimed = env.run("list --unclaimed -o uuid");
    assert_eq!(unclaimed.succeeded().lines().count(), 1);
    env.ok("claim --next");
}

#[test]
fn waiter_wins_a_job_that_becomes_claimable() {
    for (before, then) in [
        ("ping", "post grow"),
        ("ping", "abandon @1 --who ada"),
        // The claim expires.
        ("extend @1 --who ada --expiry 300ms", "ping"),
        ("trash @1 --force --yes", "restore @1"),
    ] {
        let env = Env::new();
        env.post("resize");
        env.claim("@1", "ada");
        env.ok(before);
        let mut waiting = env.jobboard("claim --next --wait 60s --who bob").spawn();
        waiting.listens();
        env.ok(then);
        waiting.ended().succeeded();
        let won = env.ok("list --filter owner=bob --count");
        assert_eq!(won, "1\n", "{then}");
    }
}

#[test]
fn wait_on_a_missing_board_ends_with_the_first_post() {
    let env = Env::new();
    let mut waiting = env.jobboard(&["wait", "--any"]).spawn();
    waiting.opens("eventpoll");
    let uuid = env.post("resize");
    assert!(waiting.ended().succeeded().starts_with(&uuid));
}

#[test]
fn several_waiters_win_one_job_each() {
    let env = Env::new();
    env.post("resize");
    env.claim("@1", "ada");
    let claim = ["claim", "--next", "--wait", "60s", "-o", "uuid"];
    let mut waiting = at_once(&env, 4, &claim);
    waiting.iter_mut().for_each(Running::listens);
    let posted: BTreeSet<_> = (0..4).map(|_| env.post("resize")).collect();
    let won: BTreeSet<_> = waiting
        .into_iter()
        .map(|run| run.ended().posted())
        .collect();
    assert_eq!(won, posted);
}

#[test]
fn readers_never_see_a_partial_change() {
    let env = Env::new();
    env.post_many(200);
    let mut trashing = env.jobboard("trash --filter name=* --force --yes").spawn();
    let start = std::time::Instant::now();
    while !trashing.has_ended() {
        assert!(start.elapsed() < SOON);
        let ping = env.json("ping --json");
        let total = ping["jobs"].as_u64().unwrap() + ping["trashed"].as_u64().unwrap();
        assert_eq!(total, 200);
    }
    trashing.ended().succeeded();
}
