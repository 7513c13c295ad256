//! What may be the matter with a board on Redis: rights, how the server is set up, keys of no job.

use redis::{Cmd, Pipeline, Value};

use super::{
    Redis,
    keys::{Part as KeyPart, field_of},
    link::eviction,
    read::{field::Field, scan::hash},
};
use crate::{
    board::{
        BoardError, Result,
        examine::{Code, Examined, Finding, Part, Remedy},
    },
    job::Shelf,
    shell,
};

/// Asks of each command in ARGV whether we may use it on the key behind it.
const MAY: &str = "local denied = {} \
    for at = 1, #ARGV, 2 do \
      local words = {} \
      for word in string.gmatch(ARGV[at], '%S+') do words[#words + 1] = word end \
      if words[2] == '@' then words[2] = ARGV[at + 1] end \
      if not redis.acl_check_cmd(unpack(words)) then denied[#denied + 1] = words[1] end \
    end return denied";

/// How many seconds a replica may have said nothing, which it does every second.
const LAG: u64 = 10;

/// The highest number that a counter is to be set to.
const MOST_NUMBER: i64 = 1 << 53;

/// How many strays are named in a command.
const NAMED: usize = 20;

impl Redis {
    /// Looks at a part of the board; changes nothing.
    pub(super) async fn look_at(&self, part: Part) -> Result<Examined> {
        let mut seen = Examined::default();
        match part {
            Part::Connection => {
                self.client.look_at_certificate(&mut seen).await;
                self.rights(&mut seen).await?;
            }
            Part::Server => self.server(&mut seen).await?,
            Part::Keys { highest } => self.keys(highest, &mut seen).await?,
        }
        Ok(seen)
    }

    /// Returns a command line for the server, and for whoever may use it.
    fn cli(&self, command: &str) -> Remedy {
        let name = self.client.name();
        let url = name.split('?').next().unwrap_or(name);
        let url = match (url.split_once("://"), url.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => &format!("{scheme}://{host}"),
            _ => url,
        };
        let place = match url.split_once("://") {
            Some(("redis+unix", path)) => format!("-s {}", shell::word(path)),
            _ => format!("-u {}", shell::word(url)),
        };
        Remedy::Elsewhere(format!("redis-cli {place} {command}"))
    }

    async fn rights(&self, seen: &mut Examined) -> Result<()> {
        let needed = self.needed();
        let mut command = Cmd::new();
        command.arg("EVAL").arg(MAY).arg(0);
        for (words, key, _) in &needed {
            command.arg(*words).arg(key);
        }
        let denied: Vec<String> = match self.client.read(&command).await {
            Ok((denied, _)) => denied,
            Err(error @ BoardError::Denied { .. }) => {
                let finding = self.lacks(&["EVAL".to_owned()]);
                seen.add(finding.seen("denied", "EVAL: claiming and settling jobs"));
                seen.unseen("other rights", error);
                return Ok(());
            }
            Err(error) if error.is_retryable() => return Err(error),
            Err(_) => {
                seen.unseen("rights, of which only Redis 7 tells", None);
                return Ok(());
            }
        };
        if denied.is_empty() {
            return Ok(());
        }
        let finding = self.lacks(&denied);
        let breaks = |command: &String| {
            let of = needed
                .iter()
                .filter(|(words, ..)| words.split(' ').next() == Some(command));
            let of: Vec<_> = of.map(|(.., what)| *what).collect();
            format!("{command}: {}", of.join(", "))
        };
        let denied = denied.iter().map(breaks);
        seen.add(denied.fold(finding, |finding, it| finding.seen("denied", it)));
        Ok(())
    }

    /// Returns each command with what it takes, the key, and what breaks without it.
    fn needed(&self) -> Vec<(&'static str, String, &'static str)> {
        let keys = &self.keys;
        let (job, past) = (keys.beside(b"x"), keys.past());
        let owner = String::from_utf8_lossy(&job.owner).into_owned();
        let (telling, hearing) = (
            "telling whoever watches at once",
            "hearing of changes at once",
        );
        vec![
            ("HGET @ x", keys.listings(), "listing and claiming jobs"),
            ("HSCAN @ 0", keys.listings(), "listing jobs"),
            ("HSET @ x x", keys.listings(), "posting jobs"),
            ("HDEL @ x", keys.listings(), "settling jobs"),
            ("INCRBY @ 1", keys.sequence(), "posting and claiming jobs"),
            ("GET @", owner.clone(), "seeing who has a job"),
            ("SET @ x", owner.clone(), "claiming jobs"),
            ("PEXPIRE @ 1", owner.clone(), "keeping claims alive"),
            ("DEL @", owner, "giving jobs back"),
            ("HSET @ x x", keys.trash(), "trashing jobs"),
            (
                "XADD @ * x x",
                past.clone(),
                "remembering jobs that have ended",
            ),
            ("XREVRANGE @ + -", past, "`list --past`"),
            ("SCAN 0", String::new(), "`conductors`"),
            ("PUBLISH @ x", keys.events(), telling),
            ("SUBSCRIBE @", keys.events(), hearing),
            ("CLIENT TRACKING ON", String::new(), hearing),
        ]
    }

    fn lacks(&self, commands: &[String]) -> Finding {
        let user = self.client.user().unwrap_or("default");
        let mut commands: Vec<_> = commands.iter().map(|it| it.to_lowercase()).collect();
        commands.dedup();
        let rights: Vec<_> = commands.iter().map(|it| format!("+{it}")).collect();
        let grant = format!("ACL SETUSER {} {}", shell::word(user), rights.join(" "));
        let summary = format!("{user} may not use {}", commands.join(", "));
        Finding::new(Code::RightsMissing, summary, self.cli(&grant))
    }

    async fn server(&self, seen: &mut Examined) -> Result<()> {
        let mut commands = Pipeline::new();
        for section in ["memory", "persistence", "replication"] {
            commands.cmd("INFO").arg(section);
        }
        commands.cmd("CONFIG").arg("GET").arg("save");
        commands.cmd("CONFIG").arg("GET").arg("replica-read-only");
        let mut answers = Vec::new();
        for (answer, what) in self.client.read_all(&commands).await?.into_iter().zip([
            "memory",
            "persistence",
            "replication",
            "whether it saves",
            "whether a replica can be written to",
        ]) {
            if let Err(error) = &answer {
                seen.unseen(what, self.client.refusal("read", error));
            }
            answers.push(answer.ok());
        }
        let [memory, persistence, replication, save, read_only] = &answers[..] else {
            return Ok(());
        };
        if let Some(warning) = memory.as_ref().and_then(eviction::warning) {
            let remedy = self.cli("CONFIG SET maxmemory-policy noeviction");
            seen.add(Finding::new(Code::Evicts, warning, remedy));
        }
        let facts = [persistence, replication].map(|it| it.as_ref().map(text).unwrap_or_default());
        let fact = |name: &str| {
            let mut lines = facts.iter().flat_map(|text| text.lines());
            lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
        };
        let is_appended = fact("aof_enabled") == Some("1");
        let saves = save.as_ref().map(text).map(|text| text.trim() != "save");
        if !is_appended && saves == Some(false) {
            let summary = "the server keeps nothing on its disk";
            let remedy = self.cli("CONFIG SET appendonly yes");
            seen.add(Finding::new(Code::NotPersistent, summary, remedy));
        }
        for (what, is_used) in [
            ("rdb_last_bgsave_status", saves != Some(false)),
            ("aof_last_write_status", is_appended),
        ] {
            if is_used && fact(what).is_some_and(|status| status != "ok") {
                let summary = "the server cannot write what it has to its disk";
                let remedy = self.cli("BGSAVE");
                let finding = Finding::new(Code::PersistenceFails, summary, remedy);
                seen.add(finding.seen(what, fact(what).unwrap_or_default()));
            }
        }
        self.replicas(&facts[1], seen);
        let is_writable = read_only
            .as_ref()
            .is_some_and(|it| text(it).ends_with("no\n"));
        if fact("role") == Some("slave") && is_writable {
            let [host, port] = ["master_host", "master_port"].map(|it| fact(it).unwrap_or("?"));
            let summary = format!("the server is a replica of {host}:{port} that takes writes");
            let remedy = self.cli("CONFIG SET replica-read-only yes");
            seen.add(Finding::new(Code::WritableReplica, summary, remedy));
        }
        Ok(())
    }

    /// Looks whether those who repeat what the server has keep up with it.
    fn replicas(&self, told: &str, seen: &mut Examined) {
        let value = |line: &str, name: &str| {
            let mut pairs = line.split([',', ':']).filter_map(|it| it.split_once('='));
            pairs
                .find(|(it, _)| *it == name)
                .map(|(_, value)| value.to_owned())
        };
        for line in told
            .lines()
            .map(str::trim)
            .filter(|it| it.contains("state="))
        {
            let fact = |name: &str| value(line, name).unwrap_or_default();
            let lag = fact("lag").parse().unwrap_or(0_u64);
            if lag > LAG || fact("state") != "online" {
                let (host, port) = (fact("ip"), fact("port"));
                let summary = format!("the replica {host}:{port} does not keep up");
                let remedy = self.cli("INFO replication");
                let finding = Finding::new(Code::ReplicaLags, summary, remedy);
                seen.add(finding.seen("state", fact("state")).seen("seconds", lag));
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
            (keys.past(), "stream"),
        ];
        let mut types = Pipeline::new();
        for (key, _) in &named {
            types.cmd("TYPE").arg(key);
        }
        let answers = self.client.read_all(&types).await?;
        let mut is_sound = true;
        for ((key, wanted), answer) in named.iter().zip(answers) {
            let found = match answer {
                Ok(found) => text(&found),
                Err(error) => {
                    let why = self.client.refusal_of("read", &error, key);
                    seen.unseen(format!("the type of {key}"), why);
                    continue;
                }
            };
            let found = found.trim();
            if found != *wanted && found != "none" {
                is_sound = false;
                let (from, to) = (shell::word(key), shell::word(&format!("{key}.aside")));
                let summary = format!("{key} is a {found}, not a {wanted}");
                let remedy = self.cli(&format!("RENAMENX {from} {to}"));
                seen.add(Finding::new(Code::WrongType, summary, remedy));
            }
        }
        if is_sound {
            if let Some(highest) = highest {
                self.numbers(highest, seen).await?;
            }
            self.strays(seen).await?;
        }
        Ok(())
    }

    /// Looks whether the next number may be given that a job has already.
    async fn numbers(&self, highest: i64, seen: &mut Examined) -> Result<()> {
        let mut get = Cmd::new();
        get.arg("GET").arg(self.keys.sequence());
        // Behind the jobs: it only grows.
        let (last, _) = self.client.read::<Option<String>>(&get).await?;
        let last = last.map_or(Some(0), |last| last.parse().ok());
        if last.is_none_or(|last: i64| last < highest) {
            let (key, summary) = (
                shell::word(&self.keys.sequence()),
                "the number of the last job is behind the jobs",
            );
            // It may have grown by then, and is never to be set back, nor so far that it ends.
            let remedy = match last.and_then(|last| highest.checked_sub(last)) {
                Some(_) if highest > MOST_NUMBER => Remedy::shows(&format!("show @{highest}")),
                Some(behind) => self.cli(&format!("INCRBY {key} {behind}")),
                None => self.cli(&format!("GET {key}")),
            };
            let finding = Finding::new(Code::SequenceBehind, summary, remedy);
            let last = last.map_or("no number".to_owned(), |last| last.to_string());
            seen.add(finding.seen("stored", last).seen("highest", highest));
        }
        Ok(())
    }

    /// Looks for what is kept beside jobs that are nowhere.
    async fn strays(&self, seen: &mut Examined) -> Result<()> {
        let (mut cursor, mut strays) = (0_u64, Vec::new());
        loop {
            let mut scan = Cmd::new();
            scan.arg("SCAN").arg(cursor);
            scan.arg("MATCH")
                .arg(self.keys.all())
                .arg("COUNT")
                .arg(1000);
            let ((next, names), _) = self.client.read::<(u64, Vec<Vec<u8>>)>(&scan).await?;
            strays.append(&mut self.without_a_job(names).await?);
            if next == 0 {
                break;
            }
            cursor = next;
        }
        strays.sort_unstable();
        strays.dedup();
        if strays.is_empty() {
            return Ok(());
        }
        let words: Vec<_> = strays
            .iter()
            .take(NAMED)
            .map(|it| shell::word(it))
            .collect();
        let remedy = self.cli(&format!("DEL {}", words.join(" ")));
        let summary = format!("keys of no job: {}", strays.len());
        let finding = Finding::new(Code::StrayKeys, summary, remedy);
        seen.add(finding.seen("key", &strays[0]));
        Ok(())
    }

    /// Returns those of some keys whose jobs are neither on the board nor in the trash.
    async fn without_a_job(&self, names: Vec<Vec<u8>>) -> Result<Vec<String>> {
        let of_jobs = names.into_iter().filter_map(|name| {
            let field = match self.keys.part(&name)? {
                KeyPart::Owner(key) | KeyPart::Modified(key) | KeyPart::Sidecar(key) => {
                    field_of(&key)
                }
                KeyPart::Postings | KeyPart::Trash | KeyPart::Conductor(_) => return None,
            };
            // Anything else may be of another board, whose namespace begins like ours.
            matches!(Field::of(&field), Field::Uuid(_)).then_some((name, field))
        });
        let of_jobs: Vec<_> = of_jobs.collect();
        let mut commands = Pipeline::new();
        for (name, field) in &of_jobs {
            for shelf in [Shelf::Board, Shelf::Trash] {
                commands
                    .cmd("HEXISTS")
                    .arg(hash(&self.keys, shelf))
                    .arg(field);
            }
            // Last: what goes with its job is gone by now. What lapses goes by itself.
            commands.cmd("PTTL").arg(name);
        }
        let answers = self.client.read_all(&commands).await?;
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

/// Returns the texts in an answer, a line each.
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
