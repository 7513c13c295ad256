//! Held claims end with the session of their holder.

use rustix::process::Signal;
use serde_json::json;

use super::{lock_of, node_of};
use crate::{
    interop::shared::{Shared, Side},
    support::{Running, ZooKeeper, wait_until},
};

/// A held job, and its holder.
struct Held {
    job: String,
    holder: Running,
}

/// Posts a job and holds it under a session of this length.
fn hold(shared: &mut Shared<ZooKeeper>, lease: &str) -> Held {
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let node = node_of(shared, &job);
    let words = format!("claim {job} --hold --who ada --lease {lease} --json");
    let mut holder = shared.env.jobboard(&words).spawn();
    wait_until("the claim is printed", || {
        assert!(!holder.has_ended());
        holder.stdout().ends_with('\n')
    });
    let owner = shared.ask_peer("owner", &job).as_str().unwrap().to_owned();
    assert!(owner.starts_with("ada:"), "{owner}");
    assert_eq!(lock_of(shared, &node).unwrap()["is_ephemeral"], true);
    assert_eq!(shared.env.show(&job)["lease"], "session");
    Held { job, holder }
}

#[test]
fn suspended_holder_loses_the_claim_harmlessly() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let held = hold(&mut shared, "2s");
    held.holder.signal(Signal::STOP);
    wait_until("the session ends", || {
        shared.ask_peer("state", &held.job) == "UNCLAIMED"
    });
    shared
        .does(Side::TaskFlow, "claim", &held.job, "bob")
        .unwrap();
    let before = shared.everything();
    held.holder.signal(Signal::CONT);
    held.holder.ended().exits(4, "the claim on the job");
    assert_eq!(shared.everything(), before);
    shared.is(&held.job, "CLAIMED", Some("bob"));
}

#[test]
fn command_of_a_claim_with_an_expired_session_ends() {
    need!(mut shared = Shared::<ZooKeeper>::new());
    let job = shared.post(Side::TaskFlow, "resize", "NORMAL", &json!({}));
    let claim = [
        "claim", &job, "--who", "ada", "--lease", "2s", "--json", "--",
    ];
    let command = ["sh", "-c", "echo $$ >pid; exec sleep 600"];
    let words = [&claim[..], &command].concat();
    let running = shared.env.jobboard(&words).spawn();
    wait_until("the command runs", || {
        std::fs::read_to_string(shared.env.file("pid")).is_ok_and(|pid| pid.ends_with('\n'))
    });
    running.signal(Signal::STOP);
    let pid = std::fs::read_to_string(shared.env.file("pid")).unwrap();
    wait_until("the session ends", || {
        shared.ask_peer("state", &job) == "UNCLAIMED"
    });
    // The guard has ended the command.
    wait_until("the command is ended", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.map_or(true, |stat| stat.contains(") Z "))
    });
    running.signal(Signal::CONT);
    running.ended().has_code(125);
    shared.is(&job, "UNCLAIMED", None);
}

#[test]
fn holder_reports_a_permanently_lost_server() {
    need!(server = ZooKeeper::start_own());
    need!(mut shared = Shared::on(server));
    let held = hold(&mut shared, "2s");
    shared.server.process().stop();
    held.holder.ended().exits(4, "the claim on the job");
}
