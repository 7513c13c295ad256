//! A TCP proxy in front of a server that cuts, stalls and swallows replies.
//!
//! The tests of the boards use this file too.

#![allow(dead_code, reason = "each of the two suites uses its own part of it")]

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

/// The delay of slow replies.
const LATE: Duration = Duration::from_millis(150);

/// How a [`Proxy`] handles replies and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyMode {
    PassOn,
    Silent,
    /// Swallows the next reply on each connection and hangs up, and on new connections immediately.
    HangUp,
    /// Does so once, and passes later data on other connections.
    HangUpOnce,
    /// Keeps the replies until the mode changes.
    Stall,
    /// Delays each reply.
    Slow,
    /// Keeps the requests until the mode changes, and passes replies on.
    StallRequests,
    /// Keeps both until the mode changes.
    Halt,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    has_changed: Condvar,
}

struct State {
    mode: ProxyMode,
    /// The effect of the next request with these bytes, after this many others.
    trap: Option<(&'static str, u32, Trap)>,
    connections: Vec<Weak<Connection>>,
    has_swallowed: bool,
    is_over: bool,
}

struct Connection {
    client: TcpStream,
    server: TcpStream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trap {
    Mode(ProxyMode),
    /// Cuts the connection of the request before its reply; new connections get this mode.
    Cut(ProxyMode),
}

impl Proxy {
    /// Starts in front of a server on this port of 127.0.0.1.
    pub(crate) fn start(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                mode: ProxyMode::PassOn,
                trap: None,
                connections: Vec::new(),
                has_swallowed: false,
                is_over: false,
            }),
            has_changed: Condvar::new(),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let State { mode, is_over, .. } = *serving.state();
                if is_over {
                    return;
                }
                if mode == ProxyMode::HangUp {
                    continue;
                }
                // A missing server refuses in its own way.
                if let Ok(server) = TcpStream::connect(("127.0.0.1", server)) {
                    serving.join(client, server);
                }
            }
        });
        Self { port, shared }
    }

    /// Changes the mode, also for replies that are held back.
    pub(crate) fn set(&self, mode: ProxyMode) {
        let mut state = self.shared.state();
        state.mode = mode;
        state.trap = None;
        self.shared.has_changed.notify_all();
    }

    /// Changes the mode at the next request with this word, for the request, its reply and all others.
    pub(crate) fn set_at(&self, word: &'static str, mode: ProxyMode) {
        self.shared.state().trap = Some((word, 0, Trap::Mode(mode)));
    }

    /// Lets the server perform the next request with this word, and cuts its connection before the reply; existing
    /// connections continue, and new ones get this mode.
    pub(crate) fn cut_at(&self, word: &'static str, mode: ProxyMode) {
        self.shared.state().trap = Some((word, 0, Trap::Cut(mode)));
    }

    /// Does so with the request after this many others of any kind.
    pub(crate) fn cut_after(&self, others: u32, mode: ProxyMode) {
        self.shared.state().trap = Some(("", others, Trap::Cut(mode)));
    }

    pub(crate) fn cut(&self) {
        let connections = std::mem::take(&mut self.shared.state().connections);
        for connection in connections.iter().filter_map(Weak::upgrade) {
            connection.end();
        }
    }

    /// Whether the awaited request has come.
    pub(crate) fn has_sprung(&self) -> bool {
        self.shared.state().trap.is_none()
    }

    /// Whether [`ProxyMode::Silent`] has swallowed a reply.
    pub(crate) fn has_swallowed(&self) -> bool {
        self.shared.state().has_swallowed
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.set(ProxyMode::PassOn);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Connection {
    fn end(&self) {
        for stream in [&self.client, &self.server] {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let connection = Arc::new(Connection { client, server });
        let connections = &mut self.state().connections;
        connections.retain(|connection| connection.strong_count() > 0);
        connections.push(Arc::downgrade(&connection));
        let is_cut = Arc::new(AtomicBool::new(false));
        let (shared, asking, cutting) = (
            Arc::clone(self),
            Arc::clone(&connection),
            Arc::clone(&is_cut),
        );
        thread::spawn(move || shared.ask(&asking, &cutting));
        let shared = Arc::clone(self);
        thread::spawn(move || shared.answer(&connection, &is_cut));
    }

    fn ask(&self, connection: &Connection, is_cut: &AtomicBool) {
        let (mut client, mut server) = (&connection.client, &connection.server);
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = client.read(&mut bytes) {
            self.spring(&bytes[..length], is_cut);
            drop(self.calm(&[ProxyMode::StallRequests, ProxyMode::Halt]));
            if server.write_all(&bytes[..length]).is_err() {
                break;
            }
            if is_cut.load(Ordering::SeqCst) {
                // It performs its requests, then hangs up.
                let _ = server.shutdown(Shutdown::Write);
                return;
            }
        }
        let _ = server.shutdown(Shutdown::Both);
    }

    /// Checks whether this is the awaited request, and whether its connection is cut.
    fn spring(&self, request: &[u8], is_cut: &AtomicBool) {
        let mut state = self.state();
        need!((word, others, trap) = state.trap);
        let has_it = |part: &[u8]| part == word.as_bytes();
        if !word.is_empty() && !request.windows(word.len()).any(has_it) {
            return;
        }
        state.trap = others.checked_sub(1).map(|others| (word, others, trap));
        if state.trap.is_some() {
            return;
        }
        match trap {
            Trap::Mode(mode) => state.mode = mode,
            Trap::Cut(mode) => {
                // Before the new mode is visible, which would end this connection too early.
                is_cut.store(true, Ordering::SeqCst);
                state.mode = mode;
            }
        }
    }

    fn answer(&self, connection: &Connection, is_cut: &AtomicBool) {
        let (mut client, mut server) = (&connection.client, &connection.server);
        let mut bytes = [0; 65536];
        while let Ok(length @ 1..) = server.read(&mut bytes) {
            let mode = self.mode();
            match mode {
                _ if is_cut.load(Ordering::SeqCst) => {}
                ProxyMode::HangUp | ProxyMode::HangUpOnce => break,
                ProxyMode::Silent => self.state().has_swallowed = true,
                ProxyMode::PassOn
                | ProxyMode::Slow
                | ProxyMode::Stall
                | ProxyMode::StallRequests
                | ProxyMode::Halt => {
                    if mode == ProxyMode::Slow {
                        thread::sleep(LATE);
                    }
                    if client.write_all(&bytes[..length]).is_err() {
                        break;
                    }
                }
            }
        }
        connection.end();
    }

    /// Returns the mode for a reply, once it is settled.
    fn mode(&self) -> ProxyMode {
        let mut state = self.calm(&[ProxyMode::Stall, ProxyMode::Halt]);
        let mode = state.mode;
        if mode == ProxyMode::HangUpOnce {
            state.mode = ProxyMode::PassOn;
        }
        mode
    }

    /// Waits until the mode is none of these.
    fn calm(&self, modes: &[ProxyMode]) -> MutexGuard<'_, State> {
        let stalls = |state: &mut State| modes.contains(&state.mode);
        let wait = self.has_changed.wait_while(self.state(), stalls);
        wait.unwrap_or_else(PoisonError::into_inner)
    }
}
