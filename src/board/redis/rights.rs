//! The permissions that a board on Redis needs, and a check for them.

use redis::cmd;

use super::Redis;
use crate::{
    board::{BoardError, Result, examine::Examined},
    problem::{Code, Problem},
    suggest::Suggestion,
};

const DENIED_RIGHTS: &str = include_str!("write/scripts/denied_rights.lua");

/// A command, with `@` for its key, the key, and what fails without it.
type RequiredRight = (&'static str, String, &'static str);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MissingRight {
    Command,
    Key,
    Channel,
}

impl MissingRight {
    fn of(message: &str) -> Self {
        // Match after the user's name, which may be any word.
        let message = message
            .split_once(" has no permissions")
            .map_or(message, |it| it.1);
        if message.contains("' key") || message.contains(" keys ") {
            Self::Key
        } else if message.contains("channel") {
            Self::Channel
        } else {
            Self::Command
        }
    }
}

impl Redis {
    pub(super) async fn rights(&self, seen: &mut Examined) -> Result<()> {
        let needed = self.needed();
        let mut command = cmd("EVAL");
        command.arg(DENIED_RIGHTS).arg(0);
        for need in &needed {
            command.arg(need.0).arg(&need.1);
        }
        let denied: Vec<String> = match self.client.read(&command).await {
            Ok(denied) => denied,
            Err(error @ BoardError::Denied { .. }) => {
                let problem = self.lacks(&[("EVAL", MissingRight::Command)]);
                seen.add(problem.seen("denied", "EVAL: claiming and settling jobs"));
                seen.unseen("other rights", error);
                return Ok(());
            }
            Err(error) if error.is_retryable() => return Err(error),
            Err(_) => {
                seen.unseen("rights, which only Redis 7 or later reports", None);
                return Ok(());
            }
        };
        let (pairs, _) = denied.as_chunks();
        let mut denied = Vec::new();
        for [command, message] in pairs {
            let lack = (command.as_str(), MissingRight::of(message));
            if !denied.contains(&lack) {
                denied.push(lack);
            }
        }
        // Scripts cannot subscribe. A user who may not publish on the channel may not subscribe to it.
        if denied.contains(&("PUBLISH", MissingRight::Channel)) {
            denied.retain(|it| *it != ("SUBSCRIBE", MissingRight::Command));
        }
        if denied.is_empty() {
            return Ok(());
        }
        let breaks = |(command, _): &(&str, MissingRight)| {
            let of = needed.iter();
            let of = of.filter(|it| it.0.split(' ').next() == Some(*command));
            let mut of: Vec<_> = of.map(|it| it.2).collect();
            of.dedup();
            format!("{command}: {}", of.join(", "))
        };
        let problem = self.lacks(&denied);
        let denied = denied.iter().map(breaks);
        seen.add(denied.fold(problem, |problem, it| problem.seen("denied", it)));
        Ok(())
    }

    fn needed(&self) -> Vec<RequiredRight> {
        let keys = &self.keys;
        let (jobs, trash, number) = (keys.listings(), keys.trash(), keys.sequence());
        let (history, events, none) = (keys.history(), keys.events(), String::new());
        let (paused, moves, fence) = (keys.paused(), keys.moves(), keys.fence());
        let entries = [
            keys.conductor("x"),
            keys.conductor_seen("x"),
            keys.conductor_status("x"),
        ];
        let names = keys.sidecar_names(b"x");
        let of_job = [names.owner, names.last_modified, names.side];
        let of_job = of_job.map(|it| String::from_utf8_lossy(&it).into_owned());
        let [owner, modified, sidecar] = &of_job;
        let (sending, receiving) = ("sending events to subscribers", "receiving events");
        let recording = "recording ended jobs in the history";
        let needed = [
            ("HGET @ x", &jobs, "listing, claiming and settling jobs"),
            ("HMGET @ x", &jobs, "problem jobs"),
            ("HEXISTS @ x", &jobs, "posting jobs and renewing claims"),
            ("HSCAN @ 0", &jobs, "listing jobs"),
            ("HSET @ x x", &jobs, "posting jobs"),
            ("HDEL @ x", &jobs, "settling jobs"),
            ("INCRBY @ 1", &number, "posting jobs"),
            ("INCRBY @ 1", &fence, "claiming jobs"),
            ("SET @ 1", &fence, "claiming jobs"),
            ("GET @", owner, "reading the owner of a job"),
            ("GET @", sidecar, "reading the attempts of a job"),
            ("MGET @", owner, "reading the owner of a job"),
            ("MGET @", modified, "reading the last change of a job"),
            ("MGET @", sidecar, "reading the attempts of a job"),
            ("PTTL @", owner, "reading the expiry of a claim"),
            ("SET @ x", owner, "claiming jobs"),
            ("SET @ x", modified, "claiming jobs"),
            ("SET @ x", sidecar, "claiming jobs"),
            ("PEXPIRE @ 1", owner, "renewing claims"),
            ("PEXPIRE @ 1", sidecar, "renewing claims"),
            ("DEL @", owner, "releasing jobs"),
            ("DEL @", modified, "settling jobs"),
            ("DEL @", sidecar, "settling jobs"),
            ("TIME", &none, "claiming and settling jobs"),
            ("HSET @ x x", &trash, "trashing jobs"),
            ("XADD @ * x x", &history, recording),
            ("XREVRANGE @ + -", &history, "listing ended jobs"),
            ("SCAN 0", &none, "listing conductors"),
            ("HLEN @", &jobs, "counting jobs"),
            ("HSCAN @ 0", &paused, "obeying pauses"),
            ("HSET @ x x", &paused, "pausing jobs"),
            ("HSCAN @ 0", &moves, "finishing moves"),
            ("HSET @ x x", &moves, "moving jobs to other boards"),
            ("HKEYS @", &jobs, "removing scratch boards"),
            ("PUBLISH @ x", &events, sending),
            ("SUBSCRIBE @", &events, receiving),
            ("CLIENT TRACKING ON", &none, receiving),
            ("MULTI", &none, receiving),
            ("EXEC", &none, receiving),
        ];
        let registry = entries.iter().flat_map(|key| {
            let registering = ["GET @", "SET @ x", "PEXPIRE @ 1", "DEL @"];
            let registering = registering.map(|it| (it, key, "registering conductors"));
            [&[("MGET @", key, "listing conductors")][..], &registering].concat()
        });
        let needed = needed.into_iter().chain(registry);
        needed
            .map(|(command, key, what)| (command, key.clone(), what))
            .collect()
    }

    fn lacks(&self, denied: &[(&str, MissingRight)]) -> Problem {
        let user = self.client.url.user.as_deref().unwrap_or("default");
        let lacking = |lack: MissingRight| denied.iter().filter(move |(_, it)| *it == lack);
        let mut commands: Vec<_> = lacking(MissingRight::Command)
            .map(|(command, _)| command.to_lowercase())
            .collect();
        commands.dedup();
        let mut rights: Vec<_> = commands.iter().map(|it| format!("+{it}")).collect();
        let mut objects = Vec::new();
        if !commands.is_empty() {
            objects.push(commands.join(", "));
        }
        for (lack, sign, what, names) in [
            (MissingRight::Key, '~', "the keys", self.keys.all()),
            (
                MissingRight::Channel,
                '&',
                "the channel",
                self.keys.events(),
            ),
        ] {
            if lacking(lack).next().is_some() {
                objects.push(format!("{what} {names}"));
                rights.push(format!("{sign}{names}"));
            }
        }
        let grant = Suggestion::of("ACL SETUSER").with([user]).with(rights);
        let summary = format!("the user {user} has no right to use {}", objects.join(", "));
        Problem::new(Code::RightsMissing, summary).fixed_by(self.cli(grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_is_recognised_from_all_server_versions() {
        for (message, lack) in [
            (
                "ERR The user executing the script can't run this command or subcommand",
                MissingRight::Command,
            ),
            (
                "ERR The user executing the script can't access at least one of the keys mentioned in the command \
                 arguments",
                MissingRight::Key,
            ),
            (
                "ERR The user executing the script can't publish to the channel mentioned in the command",
                MissingRight::Channel,
            ),
            (
                "ERR ACL failure in script: User keyed has no permissions to run the 'hget' command",
                MissingRight::Command,
            ),
            (
                "NOPERM ACL failure in script: User eve has no permissions to access the 'channel:b' key",
                MissingRight::Key,
            ),
            (
                "ERR This Redis command is not allowed from script script: 1, on @user_script:1.",
                MissingRight::Command,
            ),
        ] {
            assert_eq!(MissingRight::of(message), lack, "{message}");
        }
    }
}
