//! A ZooKeeper board of mutated nodes.

use zookeeper_client::{Acls, Client, CreateMode};

use super::{Chance, becomes_idle, meet, waiters};
use crate::{
    faults::size,
    support::{Env, servers::zookeeper::Process},
};

fn asked(server: &Server) -> u64 {
    let statistics = server.0.asked("srvr");
    let received = statistics
        .lines()
        .find_map(|line| line.strip_prefix("Received: "));
    received
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or_default()
}

struct Server(Process);

/// Creates job nodes, and other nodes next to each of them.
async fn mutate(server: &Server, count: usize, chance: &mut Chance) {
    let client = Client::connect(&format!("127.0.0.1:{}", server.0.port()))
        .await
        .unwrap();
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let make = async |path: &str, data: &[u8]| {
        client.create(path, data, &options).await.unwrap();
    };
    for number in 100..100 + count {
        let name = format!("job{number:010}");
        let posting = format!(
            r#"{{"uuid": "{number:08x}-0000-4000-8000-000000000000", "owner": "x", "name": "a",
                "created_on": 1.5, "details": {{"command": ["true"]}}, "priority": "NORMAL"}}"#
        );
        let posting = match chance.below(3) {
            0 => chance.mutate(posting.as_bytes()),
            _ => posting.into_bytes(),
        };
        make(&format!("/taskflow/jobs/{name}"), &posting).await;
        let lock: Option<&[u8]> = match chance.below(12) {
            0 => Some(b"{}"),
            1 => Some(b"{"),
            2 => Some(b"\xff"),
            3 => Some(br#"{"owner": 5}"#),
            _ => None,
        };
        if let Some(lock) = lock {
            make(&format!("/taskflow/jobs/{name}.lock"), lock).await;
        }
        if chance.below(4) > 0 {
            let side = chance.side();
            make(&format!("/taskflow/.jobboard/jobs/jobs/{name}"), &side).await;
        }
    }
}

#[test]
fn faults_corrupted_nodes_on_zookeeper_cause_no_hang_and_no_load() {
    need!(server = Process::start(&[]).map(Server));
    let env = Env::new();
    let url = format!("zk://127.0.0.1:{}/taskflow/jobs", server.0.port());
    env.configure(&format!("default = \"zk\"\n[board.zk]\nurl = \"{url}\"\n"));
    // These create all parent nodes.
    for number in 0..10 {
        env.ok(format!("post sound-{number} -- true"));
    }
    env.ok("run first -- true");
    let mut chance = Chance::new();
    eprintln!("faults: the seed is {}", chance.0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(mutate(&server, size(2000, 60), &mut chance));
    meet(&env, "key:job0000000107");
    becomes_idle(waiters(&env), || asked(&server));
}
