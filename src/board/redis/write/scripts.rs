//! The scripts that the server runs, each one atomic step, and what they answer.

use std::sync::OnceLock;

use redis::{Cmd, Pipeline, Script as Hashed, Value};

use crate::{
    board::{
        BoardError,
        redis::link::{Client, Failure},
        wire::sidecar::Sidecar,
    },
    job::{JobKey, Owner},
};

/// What a writer was doing when it failed.
pub(in crate::board::redis) const DOING: &str = "write to";

/// What every script begins with that changes jobs.
const PRELUDE: &str = include_str!("scripts/prelude.lua");

/// A script, by what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::board::redis) enum Script {
    Post,
    Claim,
    Renew,
    Settle,
    Restore,
    Purge,
}

impl Script {
    fn code(self) -> String {
        let body = match self {
            Self::Post => include_str!("scripts/post.lua"),
            Self::Claim => include_str!("scripts/claim.lua"),
            Self::Renew => include_str!("scripts/renew.lua"),
            Self::Settle => include_str!("scripts/settle.lua"),
            Self::Restore => include_str!("scripts/restore.lua"),
            Self::Purge => include_str!("scripts/purge.lua"),
        };
        format!("{PRELUDE}\n{body}")
    }

    /// Returns the hash by which the server knows it, which takes a while to compute.
    fn hash(self) -> &'static str {
        static HASHED: [OnceLock<Hashed>; 6] = [const { OnceLock::new() }; 6];
        let hashed = HASHED[self as usize].get_or_init(|| Hashed::new(&self.code()));
        hashed.get_hash()
    }
}

/// A run of a script.
#[derive(Debug, Clone)]
pub(in crate::board::redis) struct Call {
    script: Script,
    keys: Vec<Vec<u8>>,
    args: Vec<Vec<u8>>,
}

impl Call {
    pub(in crate::board::redis) fn of(script: Script) -> Self {
        Self {
            script,
            keys: Vec::new(),
            args: Vec::new(),
        }
    }

    pub(in crate::board::redis) fn key(&mut self, key: impl Into<Vec<u8>>) -> &mut Self {
        self.keys.push(key.into());
        self
    }

    pub(in crate::board::redis) fn arg(&mut self, arg: impl Into<Vec<u8>>) -> &mut Self {
        self.args.push(arg.into());
        self
    }

    /// Runs the script, and returns its answer for each job.
    ///
    /// A server that does not have it is sent it; by its own word it has done nothing before.
    pub(in crate::board::redis) async fn run(
        &self,
        client: &Client,
        doing: &'static str,
    ) -> Result<Vec<Reply>, Failure> {
        let hash = self.script.hash();
        let mut answer = self.send(client, doing, "EVALSHA", hash).await?;
        if matches!(&answer, Err(error) if error.code() == "NOSCRIPT") {
            answer = self
                .send(client, doing, "EVAL", &self.script.code())
                .await?;
        }
        let answer = answer.map_err(|error| {
            // What each script looks at first is its first key.
            let key = self.keys.first().map(|key| String::from_utf8_lossy(key));
            Failure::NotSent(client.refusal_of(doing, &error, &key.unwrap_or_default()))
        })?;
        Reply::all(answer).ok_or_else(|| {
            Failure::Lost(BoardError::Failed {
                doing,
                board: client.name().to_owned(),
                source: "the script gave an answer of another kind".into(),
            })
        })
    }

    async fn send(
        &self,
        client: &Client,
        doing: &'static str,
        how: &str,
        what: &str,
    ) -> Result<Result<Value, redis::ServerError>, Failure> {
        let mut command = Cmd::new();
        command.arg(how).arg(what).arg(self.keys.len());
        for part in self.keys.iter().chain(&self.args) {
            command.arg(part.as_slice());
        }
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command);
        let mut answers = client.ask_all(doing, &commands).await?;
        Ok(answers.pop().unwrap_or(Ok(Value::Nil)))
    }
}

/// What a script says of one job: a word, and what goes with it.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::board::redis) struct Reply {
    word: String,
    facts: Vec<Vec<u8>>,
}

impl Reply {
    fn all(answer: Value) -> Option<Vec<Self>> {
        match answer {
            Value::Array(replies) => replies.into_iter().map(Self::one).collect(),
            _ => None,
        }
    }

    fn one(answer: Value) -> Option<Self> {
        let Value::Array(parts) = answer else {
            return None;
        };
        let mut parts = parts.into_iter().map(|part| match part {
            Value::BulkString(bytes) => Some(bytes),
            Value::SimpleString(text) => Some(text.into_bytes()),
            _ => None,
        });
        let word = String::from_utf8(parts.next()??).ok()?;
        Some(Self {
            word,
            facts: parts.collect::<Option<_>>()?,
        })
    }

    /// Returns what happened, in a word.
    pub(in crate::board::redis) fn word(&self) -> &str {
        &self.word
    }

    /// Returns a fact of an answer; one that is not there is empty.
    pub(in crate::board::redis) fn fact(&self, at: usize) -> &[u8] {
        self.facts.get(at).map_or(&[], Vec::as_slice)
    }

    /// Returns a fact that is text of our own making.
    pub(in crate::board::redis) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.fact(at)).into_owned()
    }

    /// Returns the answer if it was done, and otherwise what it was refused for.
    pub(in crate::board::redis) fn done(
        self,
        client: &Client,
        key: &JobKey,
        wanted: Option<&Owner>,
    ) -> Result<Self, BoardError> {
        // One that cannot be read has no name.
        let owner = || Some(Owner::from_stored(self.fact(0))).filter(|_| !self.fact(0).is_empty());
        Err(match (self.word.as_str(), wanted) {
            ("ok", _) => return Ok(self),
            ("no-such-job", _) => BoardError::NoSuchJob,
            ("already-claimed", _) => BoardError::AlreadyClaimed { owner: owner() },
            ("not-claimed", _) => BoardError::NotClaimed,
            ("not-owner", Some(wanted)) => BoardError::NotOwner {
                owner: owner(),
                wanted: wanted.clone(),
            },
            ("postponed", _) => match self.text(0).parse() {
                Ok(until) => BoardError::Postponed { until },
                Err(_) => BoardError::Changed,
            },
            ("exists", _) => BoardError::Exists {
                uuid: key.to_string(),
                place: "board",
            },
            ("unreadable", _) => BoardError::Unfit {
                problem: Sidecar::problem(self.fact(0)),
            },
            ("failed", _) => client.said(DOING, &self.text(0)),
            _ => BoardError::Changed,
        })
    }
}
