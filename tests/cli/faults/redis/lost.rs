//! Lost replies: unknown results are reported, and nothing happens twice.

use super::{names_on, open_behind_proxy, uuid_in};
use crate::support::{Env, Outcome, Proxy, ProxyMode, Server};

const LOSSES: [ProxyMode; 2] = [ProxyMode::Silent, ProxyMode::HangUp];

/// Runs a command, and blocks the connection once it has requested the change.
fn lose(env: &Env, proxy: &Proxy, mode: ProxyMode, words: &[&str]) -> Outcome {
    proxy.set_at("EVALSHA", mode);
    let hasty = ["--op-timeout", "300ms", "--json"];
    let run = env.run([words, &hasty].concat());
    assert!(proxy.has_sprung(), "{run}");
    proxy.set(ProxyMode::PassOn);
    run
}

/// Requires that a run reports an unknown result, and how to check it.
fn is_unknown(run: &Outcome) {
    assert_eq!(run.code, 1, "{run}");
    assert_eq!(run.stdout, "", "{run}");
    let error = run.error();
    assert_eq!(error["kind"], "unknown", "{run}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("the outcome is unknown"), "{run}");
    assert!(error["hint"].as_str().unwrap().contains("show"), "{run}");
}

/// Makes the server cache all scripts: an unknown script is answered before it runs.
fn warm_up(env: &Env) {
    env.post("warm-up");
    // A post with a chosen uuid uses another script.
    env.ok("post warm-up --unique warm-up");
    env.claim("@1", "ada");
    env.ok("abandon @1 --who ada");
    env.ok("consume @1 @2 --force --yes");
}

fn open() -> Option<(Env, Server, Proxy)> {
    let opened = open_behind_proxy()?;
    warm_up(&opened.0);
    Some(opened)
}

#[test]
fn post_with_a_lost_reply_happens_once() {
    need!((env, _server, proxy) = open());
    for (number, mode) in LOSSES.into_iter().enumerate() {
        let name = format!("job-{number}");
        let run = lose(&env, &proxy, mode, &["post", &name]);
        is_unknown(&run);
        let uuid = uuid_in(run.error()["message"].as_str().unwrap());
        assert_eq!(env.show(&uuid)["name"], name);
        assert_eq!(names_on(&env)[&name], 1);
    }
}

#[test]
fn post_with_only_the_reply_lost_is_found() {
    need!((env, _server, proxy) = open());
    let run = lose(&env, &proxy, ProxyMode::HangUpOnce, &["post", "resize"]);
    assert_eq!(run.json()["done"], "posted");
    assert_eq!(env.names(), ["resize"]);
}

#[test]
fn post_with_a_chosen_uuid_cannot_be_attributed() {
    need!((env, _server, proxy) = open());
    let post = ["post", "resize", "--unique", "nightly"];
    is_unknown(&lose(&env, &proxy, ProxyMode::HangUpOnce, &post));
    let again = env.run([&post[..], &["--json"]].concat());
    assert_eq!(again.json()["done"], "exists");
    assert_eq!(env.names(), ["resize"]);
}

#[test]
fn claim_with_a_lost_reply_is_unknown_and_happens_once() {
    need!((env, server, proxy) = open());
    let job = env.post("resize");
    for mode in LOSSES {
        for claim in [["claim", &job], ["claim", "--next"]] {
            // Beyond the server's clock, so that each claim increases it by one.
            server.run(&["SET", "taskflow:fence", "5000000000000000"]);
            let claim = [&claim[..], &["--who", "ada"]].concat();
            is_unknown(&lose(&env, &proxy, mode, &claim));
            assert_eq!(env.show(&job)["owner"], "ada");
            let fence = server.run(&["GET", "taskflow:fence"]);
            assert_eq!(fence, "5000000000000001");
            env.ok(format!("abandon {job} --who ada"));
        }
    }
}

#[test]
fn foreign_uuid_text_is_in_no_suggested_command() {
    need!((env, server, proxy) = open());
    let job = env.post("resize");
    let posting = server.run(&["HGET", "taskflow:listings", &job]);
    let odd = posting.replace(&job, "$(touch seen) $(touch seen)xxxxxxxxx");
    let bytes: Vec<u8> = odd.chars().map(|byte| byte as u8).collect();
    server.run_with(&["HSET", "taskflow:listings", &job], &bytes);
    let claim = ["claim", &format!("key:{job}"), "--who", "ada"];
    let refusal = lose(&env, &proxy, ProxyMode::HangUpOnce, &claim).error();
    let hint = refusal["hint"].as_str().unwrap();
    assert!(!refusal.to_string().contains("touch"), "{refusal}");
    assert!(
        hint.contains(&format!("abandon --force key:{job}`")),
        "{refusal}"
    );
}

#[test]
fn settlement_with_a_lost_reply_is_unknown_and_happens_once() {
    need!((env, server, proxy) = open());
    for mode in LOSSES {
        let job = env.post("resize");
        for (verb, end) in [("abandon", "UNCLAIMED"), ("consume", "COMPLETE")] {
            env.claim(&job, "ada");
            is_unknown(&lose(&env, &proxy, mode, &[verb, &job, "--who", "ada"]));
            assert_eq!(env.state(&job), end);
        }
        assert_eq!(server.run(&["HLEN", "taskflow:listings"]), "0");
    }
}

#[test]
fn unsent_request_has_no_effect() {
    need!((env, server, proxy) = open());
    let job = env.post("resize");
    let before = server.everything();
    // The lookup comes first, so the change is never sent.
    proxy.set(ProxyMode::HangUp);
    for words in [&["post", "grow"][..], &["claim", &job], &["consume", &job]] {
        let run = env.run([words, &["--json"]].concat());
        run.failed(5);
        assert_eq!(run.error()["kind"], "unreachable", "{run}");
    }
    assert_eq!(server.everything(), before);
}
