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
fn concurrent_claims_of_the_next_job_have_one_winner_each() {
    let env = Env::new();
    let jobs: BTreeSet<_> = env.post_many(12).into_iter().collect();
    let claims = at_once(&env, 16, &["claim", "--next", "-o", "uuid"]);
    let ended: Vec<_> = claims.into_iter().map(Running::ended).collect();
    let (won, lost): (Vec<_>, Vec<_>) = ended.iter().partition(|run| run.code == 0);
    assert!(lost.iter().all(|run| run.code == 6), "{lost:?}");
    let claimed: Vec<_> = won.iter().map(|run| run.posted()).collect();
    assert_eq!(claimed.len(), 12);
    assert_eq!(claimed.into_iter().collect::<BTreeSet<_>>(), jobs);
}

#[test]
fn concurrent_claims_of_one_job_have_one_winner() {
    let env = Env::new();
    env.post("resize");
    let claims = at_once(&env, 8, &["claim", "@1", "--json"]);
    let codes: Vec<_> = claims.into_iter().map(|claim| claim.ended().code).collect();
    assert_eq!(
        codes.iter().filter(|code| **code == 0).count(),
        1,
        "{codes:?}"
    );
    assert_eq!(
        codes.iter().filter(|code| **code == 4).count(),
        7,
        "{codes:?}"
    );
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
    env.jobboard(&claim).run().succeeded();
    wait_until("the claim to lapse", || env.state("@1") == "UNCLAIMED");
    let late = |verb: &str, more: &[&str]| {
        let words = [&[verb, "@1", "--who", "ada", "--json"], more].concat();
        env.jobboard(&words).run().error()["kind"].clone()
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
        let claim = ["claim", job, "--expiry", "2s"];
        env.jobboard(&claim).run().succeeded();
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
    env.jobboard(&claim).run().succeeded();
    wait_until("the claim to lapse", || env.state("@1") == "UNCLAIMED");
    // No process has recorded the expiry yet: a listing and a claim must compute it.
    let unclaimed = env.run("list --unclaimed -o uuid");
    assert_eq!(unclaimed.succeeded().lines().count(), 1);
    env.ok("claim --next");
}

/// Waits for a claimable job during an action, and requires that the waiter wins it.
fn is_won(env: &Env, something: impl FnOnce()) {
    let claim = ["claim", "--next", "--wait", "60s", "--who", "bob"];
    let mut waiting = env.jobboard(&claim).spawn();
    waiting.listens();
    something();
    waiting.ended().succeeded();
    let won = env.run("list --filter owner=bob --count");
    assert_eq!(won.succeeded(), "1\n");
}

fn all_claimed(more: &[&str]) -> Env {
    let env = Env::new();
    env.post("resize");
    let claim = [&["claim", "@1", "--who", "ada"], more].concat();
    env.jobboard(&claim).run().succeeded();
    env
}

#[test]
fn waiter_wins_a_posted_job() {
    let env = all_claimed(&[]);
    is_won(&env, || _ = env.post("grow"));
}

#[test]
fn waiter_wins_an_abandoned_job() {
    let env = all_claimed(&[]);
    is_won(&env, || {
        env.ok("abandon @1 --who ada");
    });
}

#[test]
fn waiter_wins_a_job_with_an_expired_claim() {
    let env = all_claimed(&["--expiry", "300ms"]);
    is_won(&env, || {});
}

#[test]
fn waiter_wins_a_restored_job() {
    let env = all_claimed(&[]);
    env.trash("@1");
    is_won(&env, || {
        env.ok("restore @1");
    });
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
    let env = all_claimed(&[]);
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
    let words = ["trash", "--filter", "name=*", "--force", "--yes"];
    let mut trashing = env.jobboard(&words).spawn();
    let start = std::time::Instant::now();
    while !trashing.has_ended() {
        assert!(start.elapsed() < SOON);
        let ping = env.json("ping --json");
        let total = ping["jobs"].as_u64().unwrap() + ping["trashed"].as_u64().unwrap();
        assert_eq!(total, 200);
    }
    trashing.ended().succeeded();
}
