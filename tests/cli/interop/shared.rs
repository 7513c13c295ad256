//! One live board, and its two clients.

use serde_json::{Value, json};

use crate::support::{Env, Host, Location, Peer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Jobboard,
    TaskFlow,
}

pub(crate) const SIDES: [Side; 2] = [Side::Jobboard, Side::TaskFlow];

/// Returns the clients of two consecutive acts.
pub(crate) fn pairs() -> impl Iterator<Item = (Side, Side)> {
    SIDES
        .into_iter()
        .flat_map(|one| SIDES.map(|other| (one, other)))
}

/// Returns the clients of three consecutive acts.
pub(crate) fn triples() -> impl Iterator<Item = (Side, Side, Side)> {
    pairs().flat_map(|(one, other)| SIDES.map(|third| (one, other, third)))
}

pub(crate) struct Shared<H> {
    pub(crate) env: Env,
    pub(crate) peer: Peer,
    pub(crate) server: H,
}

impl<H: Host> Shared<H> {
    pub(crate) fn new() -> Option<Self> {
        Self::on(H::start()?)
    }

    pub(crate) fn on(server: H) -> Option<Self> {
        let mut peer = Peer::on(&server)?;
        // Python starts slowly, and some claims are short.
        peer.request(&json!({"do": "list"}));
        let env = Env::new();
        let url = server.board();
        env.uses(&url);
        Some(Self { env, peer, server })
    }

    pub(crate) fn post(
        &mut self,
        side: Side,
        name: &str,
        priority: &str,
        details: &Value,
    ) -> String {
        match side {
            Side::Jobboard => {
                let details = details.to_string();
                let post = ["post", name, "--priority", priority, "--details", &details];
                self.env.run(post).posted()
            }
            Side::TaskFlow => {
                let post =
                    json!({"do": "post", "name": name, "priority": priority, "details": details});
                self.peer.request(&post).as_str().unwrap().to_owned()
            }
        }
    }

    /// Performs a verb on a job under a name; `Err` is the error.
    pub(crate) fn does(
        &mut self,
        side: Side,
        verb: &str,
        job: &str,
        who: &str,
    ) -> Result<(), String> {
        match side {
            Side::Jobboard => {
                let run = self.env.run([verb, job, "--who", who]);
                match run.code {
                    0 => Ok(()),
                    _ => Err(run.failed(4).to_owned()),
                }
            }
            Side::TaskFlow => {
                let request = json!({"do": verb, "uuid": job, "who": who});
                self.peer.ask(&request).map(drop)
            }
        }
    }

    pub(crate) fn ask_peer(&mut self, what: &str, job: &str) -> Value {
        self.peer.request(&json!({"do": what, "uuid": job}))
    }

    /// Returns all that is stored, byte by byte.
    pub(crate) fn everything(&mut self) -> Value {
        self.server.everything(&mut self.peer)
    }

    pub(crate) fn posting(&mut self, location: Location, job: &str) -> String {
        self.server.posting(&mut self.peer, location, job)
    }

    /// Returns the jobs in TaskFlow's order, which both clients must agree on.
    pub(crate) fn jobs(&mut self) -> Vec<Value> {
        let theirs = self.peer.request(&json!({"do": "list"}));
        let mut ours = self.env.json("list --sort taskflow --json");
        for job in ours.as_array_mut().unwrap() {
            let fields = theirs[0].as_object().into_iter().flatten();
            *job = fields
                .map(|(name, _)| (name.clone(), job[name].clone()))
                .collect();
        }
        assert_eq!(ours, theirs);
        theirs.as_array().unwrap().clone()
    }

    /// Requires that both clients report this state and owner of a job.
    pub(crate) fn is(&mut self, job: &str, state: &str, owner: Option<&str>) {
        assert_eq!(self.ask_peer("state", job), state);
        if state == "COMPLETE" {
            assert!(self.jobs().iter().all(|listed| listed["uuid"] != job));
            self.env.fails(3, format!("owner {job}"));
            return;
        }
        assert_eq!(self.ask_peer("owner", job), json!(owner));
        let shown = self.env.show(job);
        assert_eq!(shown["state"], state);
        assert_eq!(shown["owner"], json!(owner));
        let run = self.env.run(format!("owner {job}"));
        match owner {
            Some(owner) => assert_eq!(run.succeeded().trim_end(), owner),
            None => assert!(run.failed(6).contains("claimed"), "{run}"),
        }
        let listed = self.jobs();
        let listed = listed.iter().find(|listed| listed["uuid"] == job).unwrap();
        assert_eq!(listed["owner"], json!(owner));
    }
}
