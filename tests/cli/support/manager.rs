//! A service manager's end of the protocol: a socket to which a service tells how it does.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::PathBuf,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

use super::env::{Env, Invocation, wait_until};

/// Hears what one service says.
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

    /// Has a run take this for its service manager.
    pub(crate) fn over(&self, run: Invocation) -> Invocation {
        run.env("NOTIFY_SOCKET", &self.path)
    }

    /// Returns all that it was told so far, a line each.
    pub(crate) fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// Returns how often it was told just that.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.heard().iter().filter(|heard| *heard == line).count()
    }

    /// Returns the status of which it was told last.
    pub(crate) fn status(&self) -> String {
        let heard = self.heard();
        let mut states = heard.iter().filter_map(|line| line.strip_prefix("STATUS="));
        states.next_back().unwrap_or_default().to_owned()
    }

    /// Waits until it is told something that begins so.
    pub(crate) fn hears(&self, begin: &str) {
        wait_until(&format!("it is told {begin}"), || {
            self.heard().iter().any(|line| line.starts_with(begin))
        });
    }

    /// Waits until the status has this in it.
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
