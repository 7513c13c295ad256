//! What stands between us and a server: a TCP proxy that cuts, stalls and swallows answers.
//!
//! The tests of the Redis board itself borrow it.

#![allow(dead_code, reason = "each of the two suites uses its own part of it")]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
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
    /// What comes about with the next request in which these bytes are.
    trap: Option<(&'static str, Trap)>,
    is_over: bool,
}

/// What a request brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    /// Another mood.
    Mood(Mood),
    /// The end of the connection on which it came, before it is answered; then a mood for those
    /// that come anew.
    Cut(Mood),
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
        self.shared.state().trap = Some((word, Trap::Mood(mood)));
    }

    /// Has the server do what the next request with this word asks, and cuts the connection on
    /// which it came instead of answering; others are as before, and new ones find this mood.
    pub(crate) fn cut_at(&self, word: &'static str, mood: Mood) {
        self.shared.state().trap = Some((word, Trap::Cut(mood)));
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
        let is_cut = Arc::new(AtomicBool::new(false));
        let (shared, (client, server), cutting) = (Arc::clone(self), pair(), Arc::clone(&is_cut));
        let (answering, (to, from)) = (Arc::clone(self), (client.try_clone(), server.try_clone()));
        thread::spawn(move || shared.ask(client, server, &cutting));
        thread::spawn(move || answering.answer(to.unwrap(), from.unwrap(), &is_cut));
    }

    fn ask(&self, mut client: TcpStream, mut server: TcpStream, is_cut: &AtomicBool) {
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = client.read(&mut bytes) {
            self.spring(&bytes[..length], is_cut);
            if server.write_all(&bytes[..length]).is_err() {
                break;
            }
            if is_cut.load(Ordering::SeqCst) {
                // It does what it has been asked, and hangs up after that.
                let _ = server.shutdown(Shutdown::Write);
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    }

    /// Looks whether a request is the one that was waited for, and whether its connection is cut.
    fn spring(&self, request: &[u8], is_cut: &AtomicBool) {
        let mut state = self.state();
        let Some((word, trap)) = state.trap else {
            return;
        };
        if !request
            .windows(word.len())
            .any(|part| part == word.as_bytes())
        {
            return;
        }
        state.trap = None;
        match trap {
            Trap::Mood(mood) => state.mood = mood,
            Trap::Cut(mood) => {
                // Before anybody sees the mood, in which this connection would end too early.
                is_cut.store(true, Ordering::SeqCst);
                state.mood = mood;
            }
        }
    }

    fn answer(&self, mut client: TcpStream, mut server: TcpStream, is_cut: &AtomicBool) {
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = server.read(&mut bytes) {
            let mood = self.mood();
            match mood {
                _ if is_cut.load(Ordering::SeqCst) => {}
                Mood::HangUp | Mood::HangUpOnce => break,
                Mood::Silent => {}
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
