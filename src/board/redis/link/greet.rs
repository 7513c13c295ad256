//! The handshake: authentication, database choice, and a check that the server suits a board.

use redis::{Pipeline, ServerError, Value, cmd};

use super::{
    endpoint::{Endpoint, RawConnection},
    refusal::{CLUSTER, meaning, meaning_of_login},
};
use crate::board::net::{
    cause::{ServerCause, ServerProblem},
    connect::Deadline,
};

const OLDEST: u32 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerInfo {
    pub(crate) software: String,
    pub(crate) is_replica: bool,
}

impl Endpoint {
    pub(crate) async fn enter(
        &self,
        db: u32,
        deadline: Deadline,
    ) -> Result<(RawConnection, ServerInfo), ServerProblem> {
        let mut stream = self.connect(deadline).await?;
        let mut greeting = self.login();
        greeting.add_command(cmd("HELLO"));
        if db != 0 {
            greeting.cmd("SELECT").arg(db);
        }
        greeting.cmd("CLIENT").arg("SETNAME").arg("jobboard");
        let answers = self.exchange(&mut stream, &greeting, deadline).await?;
        let mut answers = self.check_login(answers)?;
        let hello = self.next(&mut answers)?;
        let facts = match hello {
            // Redis 5 lacks it, and some users may not call it.
            Value::ServerError(error) if self.is_harmless(&error) => {
                let mut info = Pipeline::new();
                info.cmd("INFO");
                let answers = self.exchange(&mut stream, &info, deadline).await?;
                self.next(&mut answers.into_iter())?
            }
            hello => hello,
        };
        let server = self.check_server(facts)?;
        if db != 0 {
            self.check_database(self.next(&mut answers)?, db)?;
        }
        Ok((stream, server))
    }

    pub(crate) fn login(&self) -> Pipeline {
        let mut greeting = Pipeline::new();
        if self.has_login() {
            let mut login = cmd("AUTH");
            // Redis 5 has no users; since 6, its single user is called this.
            if let Some(user) = self.user.as_ref().filter(|user| *user != "default") {
                login.arg(user);
            }
            login.arg(self.password.as_ref().map_or("", |secret| secret.expose()));
            greeting.add_command(login);
        }
        greeting
    }

    fn has_login(&self) -> bool {
        self.user.is_some() || self.password.is_some()
    }

    pub(crate) fn check_login(
        &self,
        answers: Vec<Value>,
    ) -> Result<impl Iterator<Item = Value>, ServerProblem> {
        let mut answers = answers.into_iter();
        if self.has_login()
            && let Value::ServerError(error) = self.next(&mut answers)?
        {
            return Err(self.problem(meaning_of_login(&error, self.user.as_deref())));
        }
        Ok(answers)
    }

    /// Returns the next reply; a server that refuses a client hangs up after the first.
    pub(crate) fn next(
        &self,
        answers: &mut impl Iterator<Item = Value>,
    ) -> Result<Value, ServerProblem> {
        answers
            .next()
            .ok_or_else(|| self.problem(ServerCause::ClosedWithoutReply))
    }

    pub(crate) fn meaning(&self, error: &ServerError) -> ServerProblem {
        self.problem(meaning(error, self.user.as_deref()))
    }

    /// Whether an error only means that the server withholds facts about itself.
    fn is_harmless(&self, error: &ServerError) -> bool {
        matches!(
            meaning(error, None),
            ServerCause::ForbiddenCommand { .. }
                | ServerCause::Forbidden { .. }
                | ServerCause::Message(_)
        )
    }

    fn check_server(&self, facts: Value) -> Result<ServerInfo, ServerProblem> {
        let facts = match facts {
            Value::ServerError(error) if self.is_harmless(&error) => Vec::new(),
            Value::ServerError(error) => return Err(self.meaning(&error)),
            facts => pairs(&facts),
        };
        // `HELLO` and `INFO` give them different names.
        let fact = |names: [&str; 2]| {
            let mut facts = facts.iter();
            let found = facts.find(|(name, _)| names.contains(&name.as_str()));
            found.map_or("", |(_, text)| text.as_str())
        };
        let mode = fact(["mode", "redis_mode"]);
        let version = fact(["version", "redis_version"]);
        let major = version.split('.').next().unwrap_or_default();
        if mode == "sentinel" {
            return Err(self.problem(ServerCause::Sentinel(self.place.to_string())));
        }
        if mode == "cluster" {
            return Err(self.problem(CLUSTER));
        }
        if major.parse::<u32>().is_ok_and(|major| major < OLDEST) {
            return Err(self.problem(ServerCause::unusable(
                "a Redis server older than 5 cannot store a board",
                "use Redis 5 or later",
            )));
        }
        let name = match fact(["server", "server_name"]) {
            "" | "redis" => "Redis",
            "valkey" => "Valkey",
            other => other,
        };
        Ok(ServerInfo {
            software: format!("{name} {version}").trim_end().to_owned(),
            is_replica: ["replica", "slave"].contains(&fact(["role"; 2])),
        })
    }

    fn check_database(&self, answer: Value, db: u32) -> Result<(), ServerProblem> {
        match answer {
            Value::ServerError(error) => Err(match meaning(&error, self.user.as_deref()) {
                ServerCause::Message(text) if text.contains("out of range") => {
                    self.problem(ServerCause::NoDatabase(db))
                }
                cause => self.problem(cause),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads the server's reply to `HELLO` or `INFO`.
fn pairs(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| redis::from_redis_value_ref(value).unwrap_or_default();
    match answer {
        Value::Array(items) => {
            let pairs = items.chunks_exact(2);
            pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect()
        }
        Value::Map(pairs) => pairs
            .iter()
            .map(|(name, value)| (text(name), text(value)))
            .collect(),
        answer => text(answer)
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect(),
    }
}
