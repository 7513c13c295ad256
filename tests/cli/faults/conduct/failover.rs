//! Conductors on a Redis server that dies while jobs run. Three Sentinels promote a replica each time.

use std::collections::BTreeSet;

use serde_json::json;

use super::{alone, finishes};
use crate::{
    conduct::Stage,
    faults::size,
    support::{SOON, Server, comes_true, wait_until},
};

#[test]
fn failover_loses_no_replicated_job() {
    need!(master = Server::start_keeping_data());
    let mut servers = vec![master];
    let first = servers[0].port().to_string();
    let replica = ["--appendonly", "yes", "--replicaof", "127.0.0.1", &first];
    let deaths = size(5, 1);
    servers.extend((0..=deaths).map(|_| Server::start_with(&replica).unwrap()));
    let sentinels = [(); 3].map(|()| Server::start_sentinel(&servers[0], 2).unwrap());
    wait_until("the Sentinels agree", || {
        sentinels.iter().all(|it| {
            it.run(&["SENTINEL", "CKQUORUM", "mymaster"])
                .starts_with("OK 3")
                && replicas(it).matches("master-link-status\nok").count() == deaths + 1
        })
    });
    let hosts = [0, 1, 2].map(|at: usize| sentinels[at].host()).join(",");
    let stage = Stage::behind(&format!("redis-sentinel://{hosts}/mymaster"));
    let count = deaths * size(120, 24);
    let jobs = stage.post_many(count, &alone("sleep 0.1"));
    let conduct = ["-j4", "--lease", "20s", "--output", "discard"];
    let crowd: Vec<_> = (0..2).map(|_| stage.start(&conduct)).collect();
    for death in 1..=deaths {
        let part = 2 * count * death / (deaths + 1);
        let is_there = comes_true(SOON * 2, || stage.log().len() >= part);
        assert!(is_there, "{}", crowd[0].stderr());
        let port = master_port(&sentinels[0]);
        let dead = servers.iter().position(|it| it.port() == port).unwrap();
        servers[dead].kill();
        wait_until("a replica is promoted", || {
            sentinels.iter().all(|it| master_port(it) != port)
        });
    }
    // A lost consumption brings a job back, and it runs again.
    let is_done = comes_true(SOON * 4, || {
        stage.env.everything() == [json!([]), json!([])]
    });
    assert!(is_done, "{}", crowd[0].stderr());
    for mut conductor in crowd {
        conductor.signal(rustix::process::Signal::TERM);
        finishes(&mut conductor, SOON);
        conductor.ended().succeeded();
    }
    let (mut ended, mut again, mut doubles) = (BTreeSet::new(), 0, 0);
    for line in stage.log() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["end", job, ..] => again += usize::from(!ended.insert(job.to_owned())),
            ["double", ..] => doubles += 1,
            _ => {}
        }
    }
    let posted: BTreeSet<_> = jobs.into_iter().collect();
    assert_eq!(ended, posted, "some jobs were not run");
    // A replica may lack the last claims and consumptions: docs/faults.md.
    eprintln!(
        "faults: {count} jobs ran while {deaths} masters died: none lost, {again} ran again, {doubles} concurrently"
    );
}

fn replicas(sentinel: &Server) -> String {
    sentinel.run(&["SENTINEL", "REPLICAS", "mymaster"])
}

fn master_port(sentinel: &Server) -> u16 {
    let address = sentinel.run(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mymaster"]);
    address.lines().last().unwrap().parse().unwrap()
}
