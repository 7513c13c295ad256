//! Problems of a board on Redis: server configuration and stray keys. `rights` checks permissions.

use std::pin::pin;

use futures_util::TryStreamExt;
use redis::{Pipeline, Value};

use super::{
    Redis,
    keys::field_of,
    link::{READ, sentinel},
};
use crate::{
    board::{
        Result,
        examine::{Examined, Part},
        net::connect::Deadline,
        url::{Server, redis::Address},
    },
    job::{Location, standard_uuid},
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

/// Maximum silence of a replica in seconds; it normally reports every second.
const LAG: u64 = 10;

/// The highest number that a fix sets the counter to.
const MAX_NUMBER: i64 = 1 << 53;

const MAX_STRAYS: usize = 100_000;

const MAX_NAMED_KEYS: usize = 20;

const NAMES_PER_REQUEST: usize = 1000;

impl Redis {
    pub(super) async fn examine_part(&self, part: Part) -> Result<Examined> {
        let mut seen = Examined::default();
        match part {
            Part::Connection(access) => {
                self.client.look_at_certificate(&mut seen).await;
                self.sentinels(&mut seen).await;
                self.rights(access, &mut seen).await?;
            }
            Part::Server => self.server(&mut seen).await?,
            Part::Keys { highest } => self.keys(highest, &mut seen).await?,
            Part::Strays => self.names(&mut seen).await?,
            Part::History => self.check_history().await?,
        }
        Ok(seen)
    }

    pub(super) fn cli(&self, command: Suggestion) -> Fix {
        Fix::elsewhere(self.client.cli(command))
    }

    /// Reports Sentinels that could not replace a failed master.
    async fn sentinels(&self, seen: &mut Examined) {
        let Address::Sentinel(sentinel) = &self.client.url.address else {
            return;
        };
        let deadline = Deadline::after(self.client.connect_timeout());
        let objections = match sentinel::objections(sentinel, deadline).await {
            Ok(objections) => objections,
            Err(problem) => return seen.unseen(format!("the Sentinels: {problem}"), None),
        };
        for (Server { host, port }, why) in objections {
            let summary = format!("the Sentinel {host}:{port} could not replace a failed master");
            let command = Suggestion::of("redis-cli -h").with([&host, "-p", &port.to_string()]);
            let command = command.with(["SENTINEL", "CKQUORUM", &sentinel.master]);
            let problem = Problem::new(Code::ServerUnreachable, summary).seen("reason", why);
            seen.add(problem.fixed_by(Fix::elsewhere(command)));
        }
    }

    async fn server(&self, seen: &mut Examined) -> Result<()> {
        let mut commands = Pipeline::new();
        for section in ["memory", "persistence", "replication"] {
            commands.cmd("INFO").arg(section);
        }
        commands.cmd("CONFIG").arg("GET").arg("save");
        commands.cmd("CONFIG").arg("GET").arg("replica-read-only");
        let mut answers = Vec::new();
        let facts = [
            "memory",
            "persistence",
            "replication",
            "the snapshot settings",
            "whether replicas accept writes",
        ];
        let replies = self.client.exchange(READ, &commands).await?;
        for (answer, what) in replies.into_iter().zip(facts) {
            if let Err(error) = &answer {
                seen.unseen(what, self.client.refusal(READ, error, None));
            }
            answers.push(answer.ok());
        }
        let [memory, persistence, replication, save, read_only] = &answers[..] else {
            return Ok(());
        };
        let memory = memory.as_ref().and_then(|it| self.memory_problem(it));
        memory.into_iter().for_each(|it| seen.add(it));
        let facts = [persistence, replication].map(|it| it.as_ref().map(text).unwrap_or_default());
        let fact = |name: &str| {
            let mut lines = facts.iter().flat_map(|text| text.lines());
            lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let saves = save.as_ref().map(text).map(|text| text.trim() != "save");
        self.persistence(saves, fact, seen);
        self.replicas(&facts[1], seen);
        let is_writable = read_only
            .as_ref()
            .is_some_and(|it| text(it).ends_with("no\n"));
        if fact("role") == Some("slave") && is_writable {
            let [host, port] = ["master_host", "master_port"].map(|it| fact(it).unwrap_or("?"));
            let summary = format!("the server is a replica of {host}:{port} and accepts writes");
            let remedy = self.cli(Suggestion::of("CONFIG SET replica-read-only yes"));
            seen.add(Problem::new(Code::WritableReplica, summary).fixed_by(remedy));
        }
        Ok(())
    }

    /// Reports a server that evicts keys, or that is full, from the answer to `INFO memory`.
    pub(super) fn memory_problem(&self, info: &Value) -> Option<Problem> {
        let (code, summary, command) = judge_memory(&text(info))?;
        let remedy = self.cli(command).because(match code {
            Code::MemoryFull => "if the machine has the memory, raise the limit, also in the server's configuration file",
            _ => "stop the eviction, also in the server's configuration file",
        });
        Some(Problem::new(code, summary).fixed_by(remedy))
    }

    fn persistence<'f>(
        &self,
        saves: Option<bool>,
        fact: impl Fn(&str) -> Option<&'f str>,
        seen: &mut Examined,
    ) {
        let is_appended = fact("aof_enabled") == Some("1");
        if !is_appended && saves == Some(false) {
            let summary = "the server stores nothing on disk";
            let remedy = self.cli(Suggestion::of("CONFIG SET appendonly yes"));
            let remedy = remedy.because("now, and in the server's configuration file");
            seen.add(Problem::new(Code::NotPersistent, summary).fixed_by(remedy));
        }
        for (what, is_used) in [
            ("rdb_last_bgsave_status", saves != Some(false)),
            ("aof_last_write_status", is_appended),
        ] {
            if is_used && fact(what).is_some_and(|status| status != "ok") {
                let summary = "the server cannot save its data to disk";
                let remedy = self.cli(Suggestion::of("BGSAVE"));
                let problem = Problem::new(Code::PersistenceFailing, summary).fixed_by(remedy);
                seen.add(problem.seen(what, fact(what).unwrap_or_default()));
            }
        }
    }

    fn replicas(&self, info: &str, seen: &mut Examined) {
        let lines = info.lines().map(str::trim);
        for line in lines.filter(|it| it.contains("state=")) {
            let fact = |name: &str| {
                let mut pairs = line.split([',', ':']).filter_map(|it| it.split_once('='));
                let found = pairs.find(|(it, _)| *it == name);
                found.map_or("", |(_, value)| value)
            };
            let lag = fact("lag").parse().unwrap_or(0_u64);
            if lag > LAG || fact("state") != "online" {
                let (host, port) = (fact("ip"), fact("port"));
                let summary = format!("the replica {host}:{port} lags behind");
                let remedy = self.cli(Suggestion::of("INFO replication"));
                let problem = Problem::new(Code::ReplicaLagging, summary).fixed_by(remedy);
                seen.add(problem.seen("state", fact("state")).seen("seconds", lag));
            }
        }
    }

    async fn keys(&self, highest: Option<i64>, seen: &mut Examined) -> Result<()> {
        let keys = &self.keys;
        let named = [
            (keys.listings(), "hash"),
            (keys.trash(), "hash"),
            (keys.sequence(), "string"),
            (keys.fence(), "string"),
            (keys.paused(), "hash"),
            (keys.moves(), "hash"),
            (keys.history(), "stream"),
        ];
        let mut asked = Pipeline::new();
        for (key, _) in &named {
            asked.cmd("TYPE").arg(key);
        }
        let counters = [keys.fence(), keys.sequence()];
        for key in &counters {
            asked.cmd("GET").arg(key);
        }
        let mut answers = self.client.exchange(READ, &asked).await?;
        let values = answers.split_off(named.len());
        let mut wrong = Vec::new();
        for ((key, wanted), answer) in named.iter().zip(answers) {
            let found = match answer {
                Ok(found) => text(&found),
                Err(error) => {
                    let why = self.client.refusal(READ, &error, Some(key));
                    seen.unseen(format!("the type of {key}"), why);
                    continue;
                }
            };
            let found = found.trim();
            if found != *wanted && found != "none" {
                wrong.push(key);
                let summary = format!("{key} is a {found}, not a {wanted}");
                seen.add(Problem::new(Code::WrongType, summary).fixed_by(self.aside(key)));
            }
        }
        for (key, value) in counters.iter().zip(values) {
            match value {
                _ if wrong.contains(&key) => {}
                Ok(value) if *key == keys.fence() => self.fence(counter(&value), seen),
                Ok(value) => self.numbers(counter(&value), highest, seen),
                Err(error) => {
                    let why = self.client.refusal(READ, &error, Some(key));
                    seen.unseen(format!("the counter {key}"), why);
                }
            }
        }
        Ok(())
    }

    fn fence(&self, value: Option<i64>, seen: &mut Examined) {
        let key = self.keys.fence();
        if value.is_none_or(|it| it >= MAX_NUMBER) {
            let summary = format!("{key} is not a valid counter, so no job can be claimed");
            // A missing counter restarts at the server's clock, above all earlier fences.
            seen.add(Problem::new(Code::WrongType, summary).fixed_by(self.aside(&key)));
        }
    }

    fn aside(&self, key: &str) -> Fix {
        self.cli(Suggestion::of("RENAMENX").with([key, &format!("{key}.aside")]))
    }

    fn numbers(&self, last: Option<i64>, highest: Option<i64>, seen: &mut Examined) {
        let key = self.keys.sequence();
        if let Some(highest) = highest
            && last.is_none_or(|last: i64| last < highest)
        {
            let summary = "the sequence counter is behind the numbers of existing jobs";
            // The fix must not lower a counter that has grown, nor raise it to its limit.
            let remedy = match last.and_then(|last| highest.checked_sub(last)) {
                Some(_) if highest > MAX_NUMBER => Fix::show(&format!("@{highest}")),
                Some(behind) => self.cli(Suggestion::of("INCRBY").with([key, behind.to_string()])),
                None => self.cli(Suggestion::of("GET").with([key])),
            };
            let problem = Problem::new(Code::SequenceBehind, summary).fixed_by(remedy);
            let last = last.map_or("not a number".to_owned(), |last| last.to_string());
            seen.add(problem.seen("stored", last).seen("highest", highest));
        } else if last.is_none_or(|it| it >= MAX_NUMBER) {
            let summary = format!("{key} is not a valid counter, so no job can be posted");
            let remedy = match highest {
                Some(highest) => self
                    .cli(Suggestion::of("SET").with([key, highest.to_string()]))
                    .because("if no ended job had a higher number, set the counter to the highest number on the board"),
                // Other jobs may have numbers.
                None => self
                    .cli(Suggestion::of("GET").with([&key]))
                    .because("set the counter to the highest number ever assigned; if none was assigned, delete the counter"),
            };
            seen.add(Problem::new(Code::WrongType, summary).fixed_by(remedy));
        }
    }

    async fn names(&self, seen: &mut Examined) -> Result<()> {
        let mut strays = Vec::new();
        let mut pages = pin!(self.client.key_names(self.keys.all()));
        while strays.len() <= MAX_STRAYS
            && let Some(names) = pages.try_next().await?
        {
            for names in names.chunks(NAMES_PER_REQUEST) {
                strays.append(&mut self.without_a_job(names).await?);
            }
        }
        strays.sort_unstable();
        strays.dedup();
        self.report_keys(Code::StrayKeys, "keys that belong to no job", strays, seen);
        Ok(())
    }

    pub(super) fn report_keys(
        &self,
        code: Code,
        what: &str,
        keys: Vec<String>,
        seen: &mut Examined,
    ) {
        if let Some(first) = keys.first() {
            let remedy = self.cli(Suggestion::of("DEL").with(keys.iter().take(MAX_NAMED_KEYS)));
            let problem = Problem::new(code, format!("{what}: {}", keys.len()));
            seen.add(problem.fixed_by(remedy).seen("key", first));
        }
    }

    async fn without_a_job(&self, names: &[Vec<u8>]) -> Result<Vec<String>> {
        let of_jobs = names.iter().filter_map(|name| {
            let field = field_of(self.keys.part(name)?.job()?);
            // Anything else may be of another board, whose namespace begins like ours.
            standard_uuid(&field).is_some().then_some((name, field))
        });
        let of_jobs: Vec<_> = of_jobs.collect();
        let mut commands = Pipeline::new();
        for (name, field) in &of_jobs {
            for location in Location::LIVE {
                let hash = self.keys.hash(location);
                commands.cmd("HEXISTS").arg(hash).arg(field);
            }
            // Query the expiry last: keys of ended jobs are gone by then, and expiring keys need no fix.
            commands.cmd("PTTL").arg(name);
        }
        let answers = self.client.exchange(READ, &commands).await?;
        let stray = of_jobs
            .iter()
            .zip(answers.chunks(3))
            .filter(|(_, answers)| {
                matches!(
                    answers,
                    [Ok(Value::Int(0)), Ok(Value::Int(0)), Ok(Value::Int(-1))]
                )
            });
        Ok(stray
            .map(|((name, _), _)| String::from_utf8_lossy(name).into_owned())
            .collect())
    }
}

/// Returns the value of a counter, 0 if it is missing, or `None` if it is no number.
fn counter(value: &Value) -> Option<i64> {
    match value {
        Value::Nil => Some(0),
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

fn text(answer: &Value) -> String {
    match answer {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned() + "\n",
        Value::SimpleString(text) => text.clone() + "\n",
        Value::VerbatimString { text, .. } => text.clone() + "\n",
        Value::Array(values) => values.iter().map(text).collect(),
        Value::Map(pairs) => pairs
            .iter()
            .map(|(key, value)| text(key) + &text(value))
            .collect(),
        _ => "\n".to_owned(),
    }
}

/// Judges the limit of the server's memory; the command of the fix is one for `redis-cli`.
fn judge_memory(info: &str) -> Option<(Code, String, Suggestion)> {
    let fact = |name: &str| {
        let mut lines = info.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        Some(value.trim())
    };
    let number = |name: &str| fact(name)?.parse::<u64>().ok();
    let (policy, limit) = (fact("maxmemory_policy")?, number("maxmemory")?);
    // The server does not count these buffers towards its limit.
    let buffers = number("mem_not_counted_for_evict").unwrap_or(0);
    let used = number("used_memory").unwrap_or(0).saturating_sub(buffers);
    match (limit, policy) {
        (0, _) => None,
        (_, "noeviction") if used <= limit => None,
        (_, "noeviction") => Some((
            Code::MemoryFull,
            format!("the server is full and rejects writes: used {used} of {limit} bytes"),
            Suggestion::of("CONFIG SET maxmemory").with([used.saturating_mul(2).to_string()]),
        )),
        _ => Some((
            Code::EvictsKeys,
            format!(
                "a full server removes keys (maxmemory-policy {policy}), so a claim can vanish \
                 and its job can run twice; a board needs `maxmemory-policy noeviction`"
            ),
            Suggestion::of("CONFIG SET maxmemory-policy noeviction"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evicting_and_full_servers_are_detected() {
        let (evicts, full) = (Some(Code::EvictsKeys), Some(Code::MemoryFull));
        for (limit, policy, used, buffers, code) in [
            (0, "allkeys-lru", 9, "0", None),
            (0, "noeviction", 9, "0", None),
            (1, "allkeys-lru", 0, "0", evicts),
            (1, "volatile-ttl", 9, "0", evicts),
            (8, "noeviction", 7, "0", None),
            (8, "noeviction", 8, "0", None),
            (8, "noeviction", 9, "0", full),
            (8, "noeviction", 9, "4", None),
            (8, "noeviction", 9, "?", full),
        ] {
            let info = format!(
                "# Memory\r\nused_memory:{used}\r\nused_memory_human:1B\r\nmaxmemory:{limit}\r\n\
                 maxmemory_human:1B\r\nmaxmemory_policy:{policy}\r\n\
                 mem_not_counted_for_evict:{buffers}\r\n"
            );
            let problem = judge_memory(&info);
            let found = problem.as_ref().map(|(code, ..)| *code);
            assert_eq!(found, code, "{problem:?}");
        }
        assert_eq!(judge_memory(&text(&Value::Nil)), None);
    }
}
