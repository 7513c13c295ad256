//! Boards of every available kind, as many as a test needs.

use std::{
    cell::{Cell, RefCell},
    fs,
};

use serde_json::Value;

use crate::support::{
    Env, Host, Invocation, Outcome, Peer, Server, ZooKeeper, is_full, json_lines, words,
};

pub(crate) const KINDS: [&str; 3] = ["embedded", "redis", "zookeeper"];

/// Boards named by their kind with an optional suffix after `-`, or by their URL.
pub(crate) struct Boards {
    pub(crate) env: Env,
    redis: Option<Server>,
    zookeeper: RefCell<Vec<(String, ZooKeeper)>>,
    count: Cell<usize>,
}

impl Boards {
    pub(crate) fn new() -> Self {
        Self {
            env: Env::new(),
            redis: Server::start(),
            zookeeper: RefCell::default(),
            count: Cell::new(0),
        }
    }

    /// Returns `None` without a Redis server.
    pub(crate) fn with_redis() -> Option<Self> {
        Some(Self::new()).filter(|boards| boards.redis.is_some())
    }

    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let can_be_had = |kind: &&str| match *kind {
            "redis" => self.redis.is_some(),
            "zookeeper" => <ZooKeeper as Host>::start().is_some(),
            _ => true,
        };
        KINDS.into_iter().filter(can_be_had).collect()
    }

    /// Returns pairs of kinds: each is a source once and a target once; in a full run, all pairs.
    pub(crate) fn pairs(&self) -> Vec<[&'static str; 2]> {
        let kinds = self.kinds();
        let mut pairs: Vec<_> = (kinds.iter())
            .flat_map(|from| kinds.iter().map(|to| [*from, *to]))
            .collect();
        if !is_full() {
            let next = kinds.iter().cycle().skip(1);
            pairs = kinds
                .iter()
                .zip(next)
                .map(|(from, to)| [*from, *to])
                .collect();
        }
        pairs
    }

    /// Posts jobs named by their numbers.
    pub(crate) fn post_many(&self, board: &str, count: usize) {
        let lines: String = (0..count)
            .map(|number| format!("{{\"name\":\"job-{number}\"}}\n"))
            .collect();
        let post = self.on(board, &["post", "--from", "-"]);
        post.stdin(lines).run().succeeded();
    }

    pub(crate) fn redis(&self) -> &Server {
        self.redis.as_ref().unwrap()
    }

    /// Names an unused board.
    pub(crate) fn another(&self, kind: &str) -> String {
        self.count.set(self.count.get() + 1);
        format!("{kind}-{}", self.count.get())
    }

    pub(crate) fn url(&self, board: &str) -> String {
        match board.split_once('-').map_or("", |(kind, _)| kind) {
            "embedded" => format!("sqlite:{}", self.env.file(board).display()),
            "redis" => self.redis().url(&format!("?namespace={board}")),
            "zookeeper" => {
                let mut known = self.zookeeper.borrow_mut();
                let at = known.iter().position(|(name, _)| name == board);
                let at = at.unwrap_or_else(|| {
                    let server = <ZooKeeper as Host>::start().unwrap();
                    known.push((board.to_owned(), server));
                    known.len() - 1
                });
                known[at].1.board()
            }
            _ => board.to_owned(),
        }
    }

    /// Returns a Python service on a board, if Python supports it.
    pub(crate) fn peer(&self, board: &str) -> Option<Peer> {
        self.url(board);
        match board.split_once('-').map_or("", |(kind, _)| kind) {
            "redis" => Peer::start(self.redis(), board),
            "zookeeper" => {
                let known = self.zookeeper.borrow();
                let server = known.iter().find(|(name, _)| name == board);
                server.and_then(|(_, server)| Peer::on(server))
            }
            _ => None,
        }
    }

    pub(crate) fn on(&self, board: &str, words: &[&str]) -> Invocation {
        let url = self.url(board);
        self.env.jobboard(&[&["--board", &url][..], words].concat())
    }

    pub(crate) fn run(&self, board: &str, words: &[&str]) -> Outcome {
        self.on(board, words).run()
    }

    /// Requires success of a command line without quotes, and returns standard output.
    #[track_caller]
    pub(crate) fn ok(&self, board: &str, line: impl AsRef<str>) -> String {
        let run = self.run(board, &words(line.as_ref()));
        run.succeeded().to_owned()
    }

    /// Returns the records of a dump of a board.
    pub(crate) fn dumped(&self, board: &str) -> Vec<Value> {
        let dump = self.run(board, &["dump"]);
        dump.succeeded();
        let all = dump.values();
        all[1..all.len() - 1].to_vec()
    }
}

pub(crate) fn records(env: &Env, file: &str) -> Vec<Value> {
    let text = fs::read_to_string(env.file(file)).unwrap();
    let all = json_lines(&text);
    all[1..all.len() - 1].to_vec()
}
