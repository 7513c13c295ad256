use std::{
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};

use super::SECRET;
use crate::support::{Env, Host, Invocation, Outcome, Server, ZooKeeper, octavia};

/// An Octavia with its configuration, its databases, and the server of its board.
pub(super) struct Cloud<S> {
    pub(super) env: Env,
    pub(super) conf: PathBuf,
    pub(super) octavia: octavia::Octavia,
    conducts: bool,
    _server: S,
    _turn: MutexGuard<'static, ()>,
}

/// Waits for a turn. A flow keeps a processor busy for seconds, so many flows at once would exceed the time limits.
fn turn() -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 2] = [const { Mutex::new(()) }; 2];
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let turn = NEXT.fetch_add(1, Ordering::Relaxed) % TURNS.len();
    TURNS[turn].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The driver name of a server in Octavia's configuration.
pub(super) trait Driver: Host {
    const NAME: &'static str;
    fn place(&self) -> u16;
    /// The path of the board, with its own trash.
    fn namespace(&self) -> String;
}

impl Driver for Server {
    const NAME: &'static str = "redis";

    fn place(&self) -> u16 {
        self.port()
    }

    fn namespace(&self) -> String {
        "octavia".to_owned()
    }
}

impl Driver for ZooKeeper {
    const NAME: &'static str = "zookeeper";

    fn place(&self) -> u16 {
        self.port()
    }

    fn namespace(&self) -> String {
        format!("{}/octavia", self.top().trim_start_matches('/'))
    }
}

impl<S: Driver> Cloud<S> {
    /// Starts one with databases in files.
    pub(super) fn new() -> Option<Self> {
        let env = Env::new();
        let url = format!("sqlite:///{}", env.file("octavia.db").display());
        Self::with(env, &json!({ "database": url }))
    }

    pub(super) fn with(env: Env, databases: &Value) -> Option<Self> {
        let turn = turn();
        let server = S::start()?;
        let conf = env.file("octavia.conf");
        let mut settings = json!({
            "conf": conf,
            "board": {"driver": S::NAME, "hosts": ["127.0.0.1"], "port": server.place(),
                "namespace": server.namespace()},
        });
        let all = databases.as_object().into_iter().flatten();
        for (name, url) in all {
            settings[name] = url.clone();
        }
        let mut octavia = octavia::Octavia::with(&settings)?;
        octavia.ask(&json!({"do": "prepare"}));
        Some(Self {
            env,
            conf,
            octavia,
            conducts: false,
            _server: server,
            _turn: turn,
        })
    }

    pub(super) fn prepare(&self, arguments: &[&str]) -> Invocation {
        let run = self.env.jobboard(arguments);
        run.env("JOBBOARD_URL", format!("octavia:{}", self.conf.display()))
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Outcome {
        let run = self.prepare(arguments).run();
        let printed = run.to_string();
        assert!(!printed.contains(SECRET), "{arguments:?} shows a secret");
        run
    }

    pub(super) fn post(&mut self, flow: &str) -> Value {
        self.octavia.ask(&json!({"do": "post", "flow": flow}))
    }

    /// Returns the JSON output of a run with any exit code.
    pub(super) fn run_json(&self, arguments: &[&str]) -> Value {
        let run = self.run(&[arguments, &["--json"]].concat());
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
    }

    /// Kills its processes, and starts it again without a conductor.
    pub(super) fn restart(&mut self) {
        let again = octavia::Octavia::with(&json!({ "conf": self.conf }));
        self.octavia = again.unwrap();
        self.conducts = false;
    }

    /// Starts its conductor unless it runs; it performs jobs from now on.
    pub(super) fn conduct(&mut self) {
        if !std::mem::replace(&mut self.conducts, true) {
            self.octavia.ask(&json!({"do": "conduct"}));
        }
    }

    /// Waits until the conductor reports an event of a job.
    pub(super) fn waits_for(&mut self, event: &str, job: &Value) -> Value {
        let what = format!("{event} of {job}");
        self.octavia
            .wait_for(&what, |it| it["event"] == event && it["job"] == *job)
    }
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name]
        .as_str()
        .unwrap_or_else(|| panic!("{name} of {value}"))
}
