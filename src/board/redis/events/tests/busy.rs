//! Events of a board that changes all the time.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread::{self, JoinHandle},
};

use super::*;

/// Too many jobs for one read, or for the time between two touches.
const JOBS: usize = 2000;

/// Claims all jobs but one again, like a peer that already holds them.
const CLAIM: &str = "for _, key in ipairs(redis.call('HKEYS', 'taskflow:listings')) do \
                     if key ~= ARGV[1] then \
                     redis.call('SET', 'taskflow:' .. key .. '.owned', 'ada') end end";

/// Touches all claims but one again and again, until it is dropped.
struct Hammer {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Hammer {
    fn start(server: &Server, spared: &JobKey) -> Self {
        let spared = spared.to_string();
        let is_over = Arc::new(AtomicBool::new(false));
        let has_ended = Arc::clone(&is_over);
        let client = redis::Client::open(format!("redis://{}", server.host())).unwrap();
        let mut connection = client.get_connection().unwrap();
        let work = move || {
            while !has_ended.load(Ordering::Relaxed) {
                let mut touch = redis::cmd("EVAL");
                touch.arg(CLAIM).arg(0).arg(&spared);
                touch.exec(&mut connection).unwrap();
                thread::sleep(Duration::from_millis(100));
            }
        };
        Self {
            is_over,
            thread: Some(thread::spawn(work)),
        }
    }
}

impl Drop for Hammer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[tokio::test]
async fn removed_job_is_reported_while_many_claims_change() {
    need!((board, server) = open(&[]));
    let keys = fill(&board, JOBS).await;
    server.run::<()>(&["EVAL", CLAIM, "0", ""]);
    let mut events = events(&board).await.unwrap();
    let before = calls(&server, "eval");
    let removed = &keys[JOBS / 2];
    let _hammer = Hammer::start(&server, removed);
    until_so("all claims are touched", || {
        calls(&server, "eval") > before + 2
    })
    .await;
    server.run::<()>(&["HDEL", "taskflow:listings", &removed.text()]);
    let event = next(&mut events).await;
    assert_eq!(event.kind, EventKind::Consumed);
    assert_eq!(event.subject.unwrap().key, *removed);
}

#[tokio::test]
async fn own_posts_are_not_looked_up() {
    need!((board, server) = open(&[]));
    let mut events = events(&board).await.unwrap();
    let keys = fill(&board, 3 * JOBS).await;
    for _ in &keys {
        assert_eq!(next(&mut events).await.kind, EventKind::Posted);
    }
    let before = calls(&server, "hmget");
    let owner = format!("taskflow:{}.owned", keys[JOBS]);
    server.run::<()>(&["SET", &owner, "ada"]);
    assert_eq!(next(&mut events).await.kind, EventKind::Claimed);
    let looks = (calls(&server, "hmget") - before) / 2;
    assert!(looks <= 2, "{looks}");
}
