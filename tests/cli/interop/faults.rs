//! Workers of both kinds on one board.

use std::{collections::BTreeMap, thread, time::Instant};

use serde_json::json;

use super::shared::Shared;
use crate::{
    faults::size,
    support::{Env, Host, Peer, Server, ZooKeeper},
};

const WORKERS: usize = 3;

/// Claims and consumes until the board is empty, and returns the jobs.
fn work(env: &Env, who: &str) -> Vec<String> {
    let mut consumed = Vec::new();
    loop {
        let next = ["claim", "--next", "-o", "uuid", "--who", who];
        let next = env.run(next);
        if next.code == 6 {
            let count = env.run("list --count");
            if count.succeeded() == "0\n" {
                return consumed;
            }
            continue;
        }
        let job = next.posted();
        env.ok(format!("consume {job} --who {who}"));
        consumed.push(job);
    }
}

/// Starts a worker of the other kind, which starts slowly.
fn peer(server: &impl Host) -> Option<Peer> {
    let mut peer = Peer::on(server)?;
    peer.request(&json!({"do": "list"}));
    Some(peer)
}

#[test]
fn mixed_workers_run_each_job_once_on_redis() {
    each_job_is_done_once::<Server>();
}

#[test]
fn mixed_workers_run_each_job_once_on_zookeeper() {
    each_job_is_done_once::<ZooKeeper>();
}

fn each_job_is_done_once<H: Host>() {
    need!(
        Shared {
            env,
            peer: first,
            server,
        } = Shared::<H>::new()
    );
    let mut peers = vec![first];
    peers.extend((1..WORKERS).map(|_| peer(&server).unwrap()));
    let half = size(1000, 30);
    let mut posted = env.post_many(half);
    for number in 0..half {
        let post = json!({"do": "post", "name": format!("python-{number}")});
        posted.push(peers[0].request(&post).as_str().unwrap().to_owned());
    }
    let start = Instant::now();
    let done: Vec<(String, Vec<String>)> = thread::scope(|scope| {
        let env = &env;
        let ours = (0..WORKERS).map(|number| {
            let who = format!("rust-{number}");
            scope.spawn(move || (who.clone(), work(env, &who)))
        });
        let ours: Vec<_> = ours.collect();
        let theirs = peers.iter_mut().enumerate().map(|(number, peer)| {
            let who = format!("python-{number}");
            // Slows it down to the speed of the others, which start a process for each job.
            let request = json!({"do": "work", "who": who, "pause": 0.02});
            scope.spawn(move || (who, serde_json::from_value(peer.request(&request)).unwrap()))
        });
        let theirs: Vec<_> = theirs.collect();
        let all = ours.into_iter().chain(theirs);
        all.map(|worker| worker.join().unwrap()).collect()
    });
    let mut by = BTreeMap::new();
    for (who, jobs) in &done {
        for job in jobs {
            let before = by.insert(job, who);
            assert_eq!(before, None, "{who} consumed {job} again");
        }
    }
    posted.sort();
    assert!(by.into_keys().eq(&posted), "some were not consumed");
    let share = |kind: &str| -> usize {
        let of_kind = done.iter().filter(|(who, _)| who.starts_with(kind));
        of_kind.map(|(_, jobs)| jobs.len()).sum()
    };
    let (ours, theirs) = (share("rust"), share("python"));
    assert!(ours > 0 && theirs > 0, "{done:?}");
    let mut left = server.everything(&mut peers[0]);
    // History nodes on ZooKeeper are no leftovers.
    if let Some(nodes) = left.as_object_mut() {
        nodes.retain(|node, _| !node.contains("/.jobboard/"));
    }
    let left = left.to_string();
    let claims = [".owned", ".lock"].map(str::to_owned);
    for gone in posted.iter().chain(&claims) {
        assert!(!left.contains(gone), "{gone} is left: {left}");
    }
    eprintln!(
        "faults: {} jobs on {}, each consumed once: {ours} by jobboard and {theirs} by Python, \
         in {:.1?}",
        posted.len(),
        H::KIND,
        start.elapsed()
    );
}
