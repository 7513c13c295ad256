//! Runs that end before their commands, or are asked to.

use super::*;
use crate::support::members;

#[test]
fn term_is_forwarded_to_the_command() {
    let env = Env::new();
    let tag = Tag::new();
    let running = start(
        &env,
        &tag,
        &["--on-failure", "trash", "--", "sleep", tag.text()],
    );
    let command = tag.sleepers()[0];
    let guards = guards(tag.performer());
    assert_eq!(guards.len(), 1);
    running.signal(Signal::TERM);
    assert_eq!(running.ended().code, 143);
    tag.is_reaped(command);
    wait_until("the guard has ended", || !is_alive(guards[0]));
    let job = env.show("@1");
    assert_eq!(members(&job, "state attempts"), "UNCLAIMED 0");
}

#[test]
fn second_signal_kills_the_command() {
    let env = Env::new();
    let tag = Tag::new();
    let script = stubborn(&tag, "echo asked");
    let mut running = start(&env, &tag, &["--", "sh", "-c", &script]);
    running.signal(Signal::TERM);
    wait_until("the command is asked", || running.stdout() == "asked\n");
    tag.sleeps(&mut running, 1);
    no_echo();
    assert!(!running.has_ended());
    running.signal(Signal::TERM);
    assert_eq!(running.ended().code, 137);
    assert!(tag.commands().is_empty());
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn claim_is_renewed_while_the_command_runs() {
    let env = Env::new();
    let tag = Tag::of_seconds(6);
    let began = Instant::now();
    let running = start(&env, &tag, &["--lease", "2s", "--", "sleep", tag.text()]);
    wait_until("two leases are over", || {
        began.elapsed() > Duration::from_secs(4)
    });
    assert_eq!(env.run("claim @1").code, 4);
    assert_eq!(running.ended().code, 0);
    assert!(began.elapsed() > Duration::from_secs(6));
    assert!(env.names().is_empty());
}

#[test]
fn stopped_run_loses_its_command_before_its_claim() {
    let env = Env::new();
    let lease = Duration::from_secs(3);
    // A command that exits with 0 on request has not succeeded either.
    let (polite, deaf) = (Tag::new(), Tag::new());
    let mut runs: Vec<Running> = [(&polite, "exit 0"), (&deaf, "")]
        .map(|(tag, when_asked)| {
            let script = stubborn(tag, when_asked);
            let command = ["--lease", "3s", "-q", "--json", "--", "sh", "-c", &script];
            start(&env, tag, &command)
        })
        .into();
    let stopped = Instant::now();
    runs.iter().for_each(|run| run.signal(Signal::STOP));
    polite.is_gone_by(stopped + lease);
    deaf.is_gone_by(stopped + lease);
    for job in ["@1", "@2"] {
        let claim = ["claim", job, "--who", "bob"];
        wait_until("the claim lapses", || env.run(claim).code == 0);
    }
    for run in runs.drain(..) {
        run.signal(Signal::CONT);
        run.ended().exits(125, "\"code\":125");
    }
    for job in ["@1", "@2"] {
        assert_eq!(env.show(job)["owner"], "bob");
    }
}

#[test]
fn killed_run_ends_its_command() {
    let env = Env::new();
    let (polite, deaf) = (Tag::new(), Tag::new());
    let one = start(
        &env,
        &polite,
        &["--lease", "2s", "--", "sleep", polite.text()],
    );
    let script = format!("setsid sleep {} & {}", deaf.text(), stubborn(&deaf, ""));
    let words = ["run", "resize", "--lease", "2s", "--", "sh", "-c", &script];
    let mut other = env.jobboard(&words).spawn();
    deaf.sleeps(&mut other, 2);
    let killed = Instant::now();
    one.signal(Signal::KILL);
    other.signal(Signal::KILL);
    polite.is_gone_by(killed + SURVIVAL);
    deaf.is_gone_by(killed + SURVIVAL);
    for job in ["@1", "@2"] {
        let claim = ["claim", job];
        wait_until("the claim lapses", || env.run(claim).code == 0);
        assert_eq!(env.show(job)["attempts"], 1);
    }
}

#[test]
fn killed_guard_is_replaced() {
    let env = Env::new();
    let tag = Tag::new();
    let running = start(&env, &tag, &["--", "sh", "-c", &stubborn(&tag, "")]);
    let performer = tag.performer();
    let first = guards(performer)[0];
    signal(first, Signal::KILL);
    wait_until("another guard watches", || {
        let now = guards(performer);
        now.len() == 1 && now[0] != first && watches(now[0])
    });
    let killed = Instant::now();
    running.signal(Signal::KILL);
    tag.is_gone_by(killed + SURVIVAL);
}

#[test]
fn released_claim_ends_the_command() {
    let env = Env::new();
    let tag = Tag::new();
    let words = ["--lease", "6s", "-q", "--json", "--", "sleep", tag.text()];
    let running = start(&env, &tag, &words);
    env.ok("abandon @1 --force --yes");
    let run = running.ended();
    assert_eq!(run.code, 125, "{run:?}");
    assert_eq!(run.error()["code"], 125, "{run:?}");
    // The lease has not expired: a renewal was refused.
    assert_eq!(run.error()["kind"], "not-claimed", "{run:?}");
    assert!(tag.commands().is_empty());
    assert_eq!(env.state("@1"), "UNCLAIMED");
}

#[test]
fn run_settles_only_its_own_claim() {
    let env = Env::new();
    let tag = Tag::new();
    // It ends long before the next renewal, and so before the loss is noticed.
    let script = format!(
        "while [ ! -e enough ]; do sleep 0.01; done; : {}",
        tag.text()
    );
    let words = ["run", "resize", "-q", "--json", "--", "sh", "-c", &script];
    let mut running = env.jobboard(&words).spawn();
    wait_until("the command runs", || {
        assert!(!running.has_ended());
        !tag.commands().is_empty()
    });
    env.ok("abandon @1 --force --yes");
    env.claim("@1", "bob");
    fs::write(env.file("enough"), "").unwrap();
    let run = running.ended();
    assert_eq!(run.code, 125, "{run:?}");
    assert_eq!(run.error()["kind"], "not-owner", "{run:?}");
    assert_eq!(env.show("@1")["owner"], "bob");
}
