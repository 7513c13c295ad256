//! The service manager's end of the protocol: a socket for notifications.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use super::env::{Env, Invocation, wait_until};

/// Receives the notifications of one service.
pub(crate) struct Manager {
    path: PathBuf,
    heard: Arc<Mutex<Vec<String>>>,
    hearing: Option<JoinHandle<()>>,
}

impl Manager {
    pub(crate) fn start(env: &Env) -> Self {
        let path = env.root().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        let heard = Arc::<Mutex<Vec<String>>>::default();
        let all = Arc::clone(&heard);
        let hear = move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = socket.recv(&mut bytes) {
                let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
                all.lock().unwrap().extend(text.lines().map(str::to_owned));
            }
        };
        Self {
            path,
            heard,
            hearing: Some(thread::spawn(hear)),
        }
    }

    /// Makes this the service manager of a run.
    pub(crate) fn over(&self, run: Invocation) -> Invocation {
        run.env("NOTIFY_SOCKET", &self.path)
    }

    /// Returns all received lines.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    pub(crate) fn count(&self, line: &str) -> usize {
        self.heard().iter().filter(|heard| *heard == line).count()
    }

    /// Returns the last status.
    pub(crate) fn status(&self) -> String {
        let heard = self.heard();
        let mut states = heard.iter().filter_map(|line| line.strip_prefix("STATUS="));
        states.next_back().unwrap_or_default().to_owned()
    }

    /// Waits for a line with this prefix.
    pub(crate) fn hears(&self, begin: &str) {
        wait_until(&format!("it receives {begin}"), || {
            self.heard().iter().any(|line| line.starts_with(begin))
        });
    }

    /// Waits for a status with this text.
    pub(crate) fn shows(&self, words: &str) {
        wait_until(&format!("{words:?}, and not {:?}", self.status()), || {
            self.status().contains(words)
        });
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let end = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"", &self.path));
        if let (Ok(_), Some(hearing)) = (end, self.hearing.take()) {
            let _ = hearing.join();
        }
    }
}
