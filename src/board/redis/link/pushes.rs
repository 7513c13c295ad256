//! The queue of pushed messages between a connection and its listener.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use redis::{PushInfo, PushKind, Value};
use tokio::sync::mpsc::{Receiver, Sender, channel, error::TrySendError};

/// Maximum queued pushes: enough for a burst, and no danger to the memory.
const PUSHES: usize = 20_000;

/// Their maximum total size: one message may name a thousand jobs.
const BYTES: usize = 16 * 1024 * 1024;

#[derive(Debug, Default)]
struct PushQueue {
    bytes: AtomicUsize,
    has_lost: AtomicBool,
}

#[derive(Clone)]
pub(crate) struct Pusher {
    sender: Sender<PushInfo>,
    queue: Arc<PushQueue>,
}

impl Pusher {
    pub(super) fn send(&self, push: PushInfo) {
        let size = size(&push);
        // No other task adds to it.
        let has_room = self.queue.bytes.load(Ordering::Relaxed) + size <= BYTES;
        // A lost connection is always reported.
        let permit = match self.sender.try_reserve() {
            Ok(permit) if has_room || push.kind == PushKind::Disconnection => permit,
            Err(TrySendError::Closed(())) => return,
            Ok(_) | Err(TrySendError::Full(())) => {
                self.queue.has_lost.store(true, Ordering::Relaxed);
                return;
            }
        };
        self.queue.bytes.fetch_add(size, Ordering::Relaxed);
        permit.send(push);
    }
}

pub(crate) struct Pushed {
    receiver: Receiver<PushInfo>,
    queue: Arc<PushQueue>,
}

impl Pushed {
    pub(crate) async fn recv(&mut self) -> Option<PushInfo> {
        let push = self.receiver.recv().await?;
        Some(self.taken(push))
    }

    pub(crate) fn try_recv(&mut self) -> Option<PushInfo> {
        let push = self.receiver.try_recv().ok()?;
        Some(self.taken(push))
    }

    fn taken(&self, push: PushInfo) -> PushInfo {
        self.queue.bytes.fetch_sub(size(&push), Ordering::Relaxed);
        push
    }

    /// Whether pushes were dropped since the last call.
    pub(crate) fn has_lost(&self) -> bool {
        self.queue.has_lost.swap(false, Ordering::Relaxed)
    }
}

pub(super) fn pushes() -> (Pusher, Pushed) {
    let (sender, receiver) = channel(PUSHES);
    let queue = Arc::new(PushQueue::default());
    let pusher = Pusher {
        sender,
        queue: Arc::clone(&queue),
    };
    (pusher, Pushed { receiver, queue })
}

fn size(push: &PushInfo) -> usize {
    push.data.iter().map(size_of_value).sum()
}

fn size_of_value(value: &Value) -> usize {
    let behind = match value {
        Value::BulkString(bytes) => bytes.len(),
        Value::SimpleString(text) => text.len(),
        Value::Array(values) => values.iter().map(size_of_value).sum(),
        // Nothing else is pushed.
        _ => 0,
    };
    size_of::<Value>() + behind
}

#[cfg(test)]
mod testing {
    use super::{Arc, Ordering, Pushed};

    impl Pushed {
        /// Returns a function that reports dropped pushes without clearing the flag.
        pub(crate) fn loss(&self) -> impl Fn() -> bool + use<> {
            let queue = Arc::clone(&self.queue);
            move || queue.has_lost.load(Ordering::Relaxed)
        }
    }
}
