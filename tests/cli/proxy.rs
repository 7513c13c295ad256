//! What stands between us and a server: a TCP proxy that cuts, stalls and swallows answers.
//!
//! The tests of the Redis board itself borrow it.

#![allow(dead_code, reason = "each of the two suites uses its own part of it")]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// What a [`Proxy`] does with the answers of the server behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    /// Passes them on.
    PassOn,
    /// Swallows them.
    Silent,
    /// Swallows the next one on each connection and hangs up, on who comes anew at once.
    HangUp,
    /// Does so once, and passes on what comes later on other connections.
    HangUpOnce,
    /// Keeps them until the mood is another one.
    Stall,
}

/// Stands before a server, and passes on whatever is asked.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    has_changed: Condvar,
}

struct State {
    mood: Mood,
    /// The mood that comes with the next request in which these bytes are.
    trap: Option<(&'static str, Mood)>,
    is_over: bool,
}

impl Proxy {
    /// Starts before a server that listens on this port of 127.0.0.1.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                mood: Mood::PassOn,
                trap: None,
                is_over: false,
            }),
            has_changed: Condvar::new(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let State { mood, is_over, .. } = *serving.state();
                if is_over {
                    return;
                }
                if mood == Mood::HangUp {
                    continue;
                }
                // A server that is not there refuses in its own way.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    serving.join(&client, &server);
                }
            }
        });
        Self { port, shared }
    }

    /// Changes the mood, also towards answers that are held back.
    pub(crate) fn set(&self, mood: Mood) {
        let mut state = self.shared.state();
        state.mood = mood;
        state.trap = None;
        self.shared.has_changed.notify_all();
    }

    /// Changes the mood with the next request in which this word is, for its answer and all others.
    pub(crate) fn set_at(&self, word: &'static str, mood: Mood) {
        self.shared.state().trap = Some((word, mood));
    }

    /// Whether the request has come that was to change the mood.
    pub(crate) fn has_sprung(&self) -> bool {
        self.shared.state().trap.is_none()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.set(Mood::PassOn);
        // Wakes the one that waits for clients.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, client: &TcpStream, server: &TcpStream) {
        let pair = || (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (shared, (client, server)) = (Arc::clone(self), pair());
        thread::spawn(move || shared.ask(client, server));
        let (shared, (client, server)) = (Arc::clone(self), pair());
        thread::spawn(move || shared.answer(client, server));
    }

    fn ask(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = client.read(&mut bytes) {
            self.spring(&bytes[..length]);
            if server.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    }

    fn spring(&self, request: &[u8]) {
        let mut state = self.state();
        if let Some((word, mood)) = state.trap
            && request
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        {
            state.trap = None;
            state.mood = mood;
        }
    }

    fn answer(&self, mut client: TcpStream, mut server: TcpStream) {
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = server.read(&mut bytes) {
            match self.mood() {
                Mood::Silent => {}
                Mood::HangUp | Mood::HangUpOnce => break,
                Mood::PassOn | Mood::Stall => {
                    if client.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            }
        }
        for stream in [client, server] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Returns what to do with an answer, once that is known.
    fn mood(&self) -> Mood {
        let stalls = |state: &mut State| state.mood == Mood::Stall;
        let wait = self.has_changed.wait_while(self.state(), stalls);
        let mut state = wait.unwrap_or_else(PoisonError::into_inner);
        let mood = state.mood;
        if mood == Mood::HangUpOnce {
            state.mood = Mood::PassOn;
        }
        mood
    }
}
