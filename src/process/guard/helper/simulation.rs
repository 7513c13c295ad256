//! A guard that runs as a task on a simulated machine.

use tokio::{sync::mpsc::UnboundedReceiver, time};

use super::{Boottime, CHECK_PAUSE, Processes, Sweep, WatchedCommands};
use crate::{optional::or_never, process::clock};

pub(in crate::process::guard) async fn simulate(mut lines: UnboundedReceiver<String>) {
    let mut watch = WatchedCommands::default();
    loop {
        let due = or_never(watch.next_due().map(clock::sleep_until));
        tokio::select! {
            biased;
            line = lines.recv() => match line {
                Some(line) if watch.hear(&line) => return,
                Some(_) => {}
                None => break,
            },
            () = due => {}
        }
        let due = watch.enforce(Boottime::now());
        if !due.is_empty() {
            let processes = watch.list_processes();
            while let Ok(line) = lines.try_recv() {
                if watch.hear(&line) {
                    return;
                }
            }
            watch.end_strays(&due, &processes);
        }
    }
    let mut sweep = Sweep::begin();
    while !watch.end_all(&mut sweep, Processes::now) {
        time::sleep(CHECK_PAUSE).await;
    }
}

impl WatchedCommands {
    /// Handles lines of a simulated conductor, and returns whether one was its last.
    fn hear(&mut self, lines: &str) -> bool {
        self.partial.extend_from_slice(lines.as_bytes());
        let is_over = self.read_lines();
        self.identify();
        is_over
    }
}
