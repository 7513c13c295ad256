//! The scripts that the server runs, each one atomic step, and their replies.

use std::{collections::BTreeSet, sync::OnceLock};

use redis::{Pipeline, Script as Hashed, Value, cmd};

use crate::{
    board::{
        BoardError, Detail,
        net::cause::ServerCause,
        redis::{
            keys::field_of,
            link::{CommandReply, RedisClient, RequestFailure, WRITE, bounded::PLACEHOLDER},
            read::record::{Reading, posted},
        },
        wire::sidecar::Sidecar,
    },
    job::{Attempts, Entry, JobKey, Location, MAX_RECORD_BYTES, Owner},
};

const SIDECAR: &str = include_str!("scripts/sidecar.lua");

const PRELUDE: &str = include_str!("scripts/prelude.lua");

macro_rules! scripts {
    ($($name:ident $file:literal,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Script {
            $($name,)*
        }

        impl Script {
            const ALL: &[Self] = &[$(Self::$name,)*];

            fn body(self) -> &'static str {
                match self {
                    $(Self::$name => include_str!(concat!("scripts/", $file)),)*
                }
            }
        }
    };
}

scripts! {
    Post "post.lua",
    PostNew "post_new.lua",
    Claim "claim.lua",
    Renew "renew.lua",
    Settle "settle.lua",
    Revise "revise.lua",
    Purge "purge.lua",
    Load "load.lua",
    Register "register.lua",
}

impl Script {
    /// Returns the functions that only some scripts share.
    fn library(self) -> &'static str {
        match self {
            Self::Post | Self::Load => include_str!("scripts/posting.lua"),
            _ => "",
        }
    }

    /// Returns the names of the keys and arguments in the script's header, which ends with the replies.
    fn names(self) -> Vec<&'static str> {
        let header = self.body().split("-- Replies").next().unwrap_or_default();
        header.split('`').skip(1).step_by(2).collect()
    }
}

/// A script call: each value has the name that the script uses.
///
/// Shared values come first, then the same names for each job. A script has one caller, since the names generate the
/// first lines of the script.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    script: Script,
    keys: NamedValues,
    args: NamedValues,
    jobs: usize,
}

#[derive(Debug, Clone, Default)]
struct NamedValues {
    names: Vec<&'static str>,
    shared: usize,
    values: Vec<Vec<u8>>,
}

impl NamedValues {
    /// The first job defines the names; the later jobs add their values in the same order.
    fn add(&mut self, name: &'static str, value: Vec<u8>, jobs: usize) {
        if jobs > 1 {
            let each = self.names.len() - self.shared;
            let at = self.shared + (self.values.len() - self.shared) % each;
            debug_assert_eq!(name, self.names[at], "each job has different names");
        } else {
            self.names.push(name);
            self.shared += usize::from(jobs == 0);
        }
        self.values.push(value);
    }

    fn named(&self, table: &str) -> (String, String) {
        let (shared, own) = self.names.split_at(self.shared);
        let each = own.len();
        let set = |(at, name)| format!("local {name} = {table}[{at}]\n");
        let turn = |(at, name)| format!("{name} = {table}[{at} + (job - 1) * {each}]\n");
        let declared = own.iter().map(|name| format!("local {name}\n"));
        let before = (1..).zip(shared).map(set).chain(declared).collect();
        (before, (self.shared + 1..).zip(own).map(turn).collect())
    }
}

impl Call {
    pub(crate) fn of(script: Script) -> Self {
        Self {
            script,
            keys: NamedValues::default(),
            args: NamedValues::default(),
            jobs: 0,
        }
    }

    pub(crate) fn job(&mut self) -> &mut Self {
        self.jobs += 1;
        self
    }

    pub(crate) fn key(&mut self, name: &'static str, key: impl Into<Vec<u8>>) -> &mut Self {
        self.keys.add(name, key.into(), self.jobs);
        self
    }

    pub(crate) fn arg(&mut self, name: &'static str, arg: impl Into<Vec<u8>>) -> &mut Self {
        self.args.add(name, arg.into(), self.jobs);
        self
    }

    fn code(&self) -> String {
        let (keys, key_turns) = self.keys.named("KEYS");
        let (args, arg_turns) = self.args.named("ARGV");
        let (shared, each) = (self.args.shared, self.args.names.len() - self.args.shared);
        let (library, body) = (self.script.library(), self.script.body());
        debug_assert_eq!(
            BTreeSet::from_iter(self.keys.names.iter().chain(&self.args.names)),
            BTreeSet::from_iter(&self.script.names()),
            "the header of {:?} lists its keys and arguments",
            self.script
        );
        let (failures, side) = (Attempts::MAX_FAILURES, MAX_RECORD_BYTES);
        format!(
            "{keys}{args}local first, jobs = {shared} + 1, (#ARGV - {shared}) / {each}\n\
             local function turn_to(job)\n{key_turns}{arg_turns}end\n\
             local MAX_FAILURES, MAX_SIDE, PLACEHOLDER = {failures}, {side}, \"\\{PLACEHOLDER}\"\n\
             {SIDECAR}\n{PRELUDE}\n{library}\n{body}"
        )
    }

    fn hash(&self) -> &'static str {
        static HASHED: [OnceLock<Hashed>; Script::ALL.len()] =
            [const { OnceLock::new() }; Script::ALL.len()];
        let hashed = HASHED[self.script as usize].get_or_init(|| Hashed::new(&self.code()));
        debug_assert_eq!(
            hashed.get_hash(),
            Hashed::new(&self.code()).get_hash(),
            "{:?} has the same names each time",
            self.script
        );
        hashed.get_hash()
    }

    pub(crate) async fn run(&self, client: &RedisClient) -> Result<Vec<Reply>, RequestFailure> {
        if self.jobs == 0 {
            return Ok(Vec::new());
        }
        Reply::all(self.answer(client, WRITE).await?)
            .filter(|replies| match self.script {
                // A claim ends with the last wanted job.
                Script::Claim => replies.len() <= self.jobs,
                Script::PostNew if Reply::for_all(replies).is_some() => true,
                _ => replies.len() == self.jobs,
            })
            .ok_or_else(|| RequestFailure::Lost(Reply::unexpected(client)))
    }

    /// A server without the script gets its source; its error guarantees that nothing ran before.
    pub(crate) async fn answer(
        &self,
        client: &RedisClient,
        doing: &'static str,
    ) -> Result<Value, RequestFailure> {
        let mut answer = self.send(client, doing, "EVALSHA", self.hash()).await?;
        if matches!(&answer, Err(error) if error.code() == "NOSCRIPT") {
            answer = self.send(client, doing, "EVAL", &self.code()).await?;
        }
        answer.map_err(|error| {
            // A script reads its first key first.
            let key = self
                .keys
                .values
                .first()
                .map(|key| String::from_utf8_lossy(key));
            RequestFailure::NotSent(client.refusal(doing, &error, key.as_deref()))
        })
    }

    async fn send(
        &self,
        client: &RedisClient,
        doing: &'static str,
        how: &str,
        script: &str,
    ) -> Result<CommandReply, RequestFailure> {
        let mut command = cmd(how);
        command.arg(script).arg(self.keys.values.len());
        for part in self.keys.values.iter().chain(&self.args.values) {
            command.arg(part.as_slice());
        }
        let mut commands = Pipeline::with_capacity(1);
        commands.add_command(command);
        let mut answers = client.exchange(doing, &commands).await?;
        Ok(answers.pop().unwrap_or(Ok(Value::Nil)))
    }
}

/// A script's reply for one job: a word and its values.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) word: String,
    facts: Vec<Vec<u8>>,
}

impl Reply {
    fn all(answer: Value) -> Option<Vec<Self>> {
        match answer {
            Value::Array(replies) => replies.into_iter().map(Self::one).collect(),
            _ => None,
        }
    }

    /// A single reply for all jobs of the call.
    pub(super) fn for_all(replies: &[Self]) -> Option<&Self> {
        match replies {
            [all] if all.word == "all" => Some(all),
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

    pub(crate) fn fact(&self, at: usize) -> &[u8] {
        self.facts.get(at).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.fact(at)).into_owned()
    }

    /// The script may or may not have changed the jobs.
    pub(super) fn unexpected(client: &RedisClient) -> BoardError {
        let error = client.error(WRITE, ServerCause::UnexpectedReply);
        RequestFailure::Lost(error).into_unknown(client.name())
    }

    fn malformed(client: &RedisClient, key: &JobKey, posting: &[u8]) -> BoardError {
        let reading = Reading {
            location: Location::Board,
            detail: Detail::Brief,
            limit: client.limit,
        };
        match posted(reading, &field_of(key), posting) {
            Entry::Malformed(record) => BoardError::from(&record),
            Entry::Job(_) => BoardError::Changed,
        }
    }

    pub(crate) fn done(
        self,
        client: &RedisClient,
        key: &JobKey,
        wanted: Option<&Owner>,
    ) -> Result<Self, BoardError> {
        // An unreadable owner has no name.
        let owner = || Some(Owner::from_stored(self.fact(0))).filter(|_| !self.fact(0).is_empty());
        Err(match (self.word.as_str(), wanted) {
            ("ok", _) => return Ok(self),
            ("no-such-job", _) => BoardError::NoSuchJob,
            ("already-claimed", _) => BoardError::AlreadyClaimed { owner: owner() },
            ("not-claimed", _) => BoardError::NotClaimed,
            ("not-delayed", _) => BoardError::NotDelayed,
            ("not-owner", Some(wanted)) => BoardError::NotOwner {
                owner: owner(),
                wanted: wanted.clone(),
            },
            ("delayed", _) => match self.text(0).parse() {
                Ok(until) => BoardError::Delayed { until },
                Err(_) => Self::unexpected(client),
            },
            ("exists", _) => BoardError::exists(key),
            ("unreadable", _) => BoardError::unclaimable(Some(Sidecar::problem(self.fact(0)))),
            ("malformed", _) => Self::malformed(client, key, self.fact(0)),
            ("changed", _) => BoardError::Changed,
            ("failed", _) => client.refusal_in_script(&self.text(0)),
            _ => Self::unexpected(client),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{board::wire::sidecar::MEMBERS, job::AuditEntry};

    /// Returns the names in a Lua table of the sidecar's rules, in order.
    fn names(begin: &str, end: &str) -> Vec<&'static str> {
        let (_, table) = SIDECAR.split_once(begin).unwrap();
        let (table, _) = table.split_once(end).unwrap();
        let members = table.split(',').filter_map(|it| it.split_once('='));
        let mut names: Vec<_> = members.map(|(name, _)| name.trim()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn scripts_use_each_name_of_their_headers_and_hide_none() {
        for &script in Script::ALL {
            let names = script.names();
            let mut call = Call::of(script);
            for &name in &names {
                call.key(name, "");
            }
            let generated = call.code();
            let script = [SIDECAR, PRELUDE, script.library(), script.body()].concat();
            let code = script.lines().filter(|line| !line.starts_with("--"));
            let is_in_name = |it: char| it.is_alphanumeric() || it == '_';
            let used: Vec<_> = code
                .flat_map(|line| line.split(|it| !is_in_name(it)))
                .collect();
            let unused: Vec<_> = names.iter().filter(|it| !used.contains(it)).collect();
            assert!(unused.is_empty(), "{unused:?} in {script}");
            assert!(!names.is_empty(), "{script}");
            let declared = generated.lines().filter_map(|it| it.strip_prefix("local "));
            let declared = declared.map(|it| it.strip_prefix("function ").unwrap_or(it));
            let declared = declared.filter_map(|it| it.split(['=', '(']).next());
            let declared = declared.flat_map(|it| it.split(',').map(str::trim));
            let mut known = BTreeSet::new();
            let hidden: Vec<_> = declared.filter(|it| !known.insert(*it)).collect();
            assert!(hidden.is_empty(), "declared twice: {hidden:?} in {script}");
            let is_constant = |it: &str| it.contains('_') && it.to_uppercase() == it;
            let unknown = |it: &&str| is_constant(it) && it.len() > 1 && !known.contains(it);
            let unknown: Vec<_> = used.iter().copied().filter(unknown).collect();
            assert!(unknown.is_empty(), "not declared: {unknown:?} in {script}");
        }
    }

    #[test]
    fn scripts_know_each_member_of_a_sidecar() {
        let mut members = MEMBERS.to_vec();
        members.retain(|name| *name != "v");
        members.sort_unstable();
        assert_eq!(names("\n  return {\n", "\n  }\nend"), members);
        let audit = AuditEntry::now("abandoned", "olga", Some("a reason"));
        let audit = serde_json::json!(audit);
        let mut written: Vec<_> = audit.as_object().unwrap().keys().collect();
        written.sort_unstable();
        assert_eq!(names("local REMARK = {", "}"), written);
    }
}
