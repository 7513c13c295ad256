//! The permissions that a board on Redis needs, and a check for them.

use redis::cmd;

use super::Redis;
use crate::{
    board::{
        BoardError, Result,
        examine::{Access, Examined},
    },
    problem::{Code, Problem},
    suggest::Suggestion,
};

const DENIED_RIGHTS: &str = include_str!("write/scripts/denied_rights.lua");

/// The commands that change a board.
const CHANGES: [&str; 8] = [
    "HSET", "HDEL", "INCRBY", "SET", "PEXPIRE", "DEL", "XADD", "PUBLISH",
];

/// A command, with `@` for its key, the key, and what fails without it.
pub(super) type RequiredRight = (&'static str, String, &'static str);

/// A command that is denied for one reason, and what fails without it.
struct DeniedRight {
    command: &'static str,
    lack: MissingRight,
    breaks: Vec<&'static str>,
}

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

fn owned(needed: &[(&'static str, &String, &'static str)]) -> Vec<RequiredRight> {
    let needed = needed.iter();
    let needed = needed.map(|(command, key, what)| (*command, (*key).clone(), *what));
    needed.collect()
}

impl Redis {
    pub(super) async fn rights(&self, access: Access, seen: &mut Examined) -> Result<()> {
        // Connects: a refused login concerns the password, not the rights.
        self.client.software().await?;
        let needed = self.needed();
        let mut command = cmd("EVAL");
        command.arg(DENIED_RIGHTS).arg(0);
        for need in &needed {
            command.arg(need.0).arg(&need.1);
        }
        let refusals: Vec<(usize, String)> = match self.client.read(&command).await {
            Ok(refusals) => refusals,
            // Every change is a script.
            Err(BoardError::Denied { .. }) if access == Access::Read => return Ok(()),
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
        let mut denied: Vec<DeniedRight> = Vec::new();
        for (place, message) in refusals {
            let Some((words, _, what)) = needed.get(place) else {
                continue;
            };
            let command = words.split(' ').next().unwrap_or_default();
            let lack = MissingRight::of(&message);
            let mut known = denied.iter_mut();
            match known.find(|it| (it.command, it.lack) == (command, lack)) {
                Some(known) if known.breaks.contains(what) => {}
                Some(known) => known.breaks.push(*what),
                None => denied.push(DeniedRight {
                    command,
                    lack,
                    breaks: vec![*what],
                }),
            }
        }
        // Scripts cannot subscribe. A user who may not publish on the channel may not subscribe to it.
        let is = |it: &DeniedRight, command, lack| (it.command, it.lack) == (command, lack);
        if (denied.iter()).any(|it| is(it, "PUBLISH", MissingRight::Channel)) {
            denied.retain(|it| !is(it, "SUBSCRIBE", MissingRight::Command));
        }
        if access == Access::Read {
            denied.retain(|it| !CHANGES.contains(&it.command));
        }
        if denied.is_empty() {
            return Ok(());
        }
        let lacks: Vec<_> = denied.iter().map(|it| (it.command, it.lack)).collect();
        let problem = self.lacks(&lacks);
        seen.add(denied.iter().fold(problem, |problem, it| {
            let breaks = format!("{}: {}", it.command, it.breaks.join(", "));
            problem.seen("denied", breaks)
        }));
        Ok(())
    }

    /// Returns the documented rights, without those for the connection and the scripts themselves.
    pub(super) fn needed(&self) -> Vec<RequiredRight> {
        [self.on_board(), self.on_jobs(), self.on_conductors()].concat()
    }

    fn on_board(&self) -> Vec<RequiredRight> {
        let keys = &self.keys;
        let (jobs, trash, number) = (keys.listings(), keys.trash(), keys.sequence());
        let (history, events, none) = (keys.history(), keys.events(), String::new());
        let (paused, moves, fence) = (keys.paused(), keys.moves(), keys.fence());
        let (sending, receiving) = ("sending events to subscribers", "receiving events");
        let recording = "recording ended jobs in the history";
        let needed = [
            ("HGET @ x", &jobs, "listing, claiming and settling jobs"),
            ("HMGET @ x", &jobs, "reading jobs"),
            ("HEXISTS @ x", &jobs, "posting jobs and renewing claims"),
            ("HSCAN @ 0", &jobs, "listing jobs"),
            ("HLEN @", &jobs, "counting jobs"),
            ("HKEYS @", &jobs, receiving),
            ("HSET @ x x", &jobs, "posting jobs"),
            ("HDEL @ x", &jobs, "settling jobs"),
            ("HGET @ x", &trash, "restoring and purging jobs"),
            ("HMGET @ x", &trash, "reading trashed jobs"),
            ("HEXISTS @ x", &trash, "trashing jobs"),
            ("HSCAN @ 0", &trash, "listing trashed jobs"),
            ("HLEN @", &trash, "counting jobs"),
            ("HKEYS @", &trash, receiving),
            ("HSET @ x x", &trash, "trashing jobs"),
            ("HDEL @ x", &trash, "restoring and purging jobs"),
            ("EXISTS @", &number, "testing the board"),
            ("GET @", &number, receiving),
            ("INCRBY @ 1", &number, "posting jobs"),
            ("INCRBY @ 1", &fence, "claiming jobs"),
            ("SET @ 1", &fence, "claiming jobs"),
            ("TIME", &none, "claiming and settling jobs"),
            ("XADD @ * x x", &history, recording),
            ("XREVRANGE @ + -", &history, "listing ended jobs"),
            ("SCAN 0", &none, "listing conductors"),
            ("HSCAN @ 0", &paused, "obeying pauses"),
            ("HLEN @", &paused, "obeying pauses"),
            ("HSET @ x x", &paused, "pausing jobs"),
            ("HDEL @ x", &paused, "ending pauses"),
            ("HSCAN @ 0", &moves, "finishing moves"),
            ("HSET @ x x", &moves, "moving jobs to other boards"),
            ("HDEL @ x", &moves, "finishing moves"),
            ("PUBLISH @ x", &events, sending),
            ("SUBSCRIBE @", &events, receiving),
            ("CLIENT TRACKING ON", &none, receiving),
            ("MULTI", &none, receiving),
            ("EXEC", &none, receiving),
        ];
        owned(&needed)
    }

    fn on_jobs(&self) -> Vec<RequiredRight> {
        let names = self.keys.sidecar_names(b"x");
        let of_job = [names.owner, names.last_modified, names.side];
        let of_job = of_job.map(|it| String::from_utf8_lossy(&it).into_owned());
        let [owner, modified, sidecar] = &of_job;
        owned(&[
            ("GET @", owner, "reading the owner of a job"),
            ("GET @", sidecar, "reading the attempts of a job"),
            ("MGET @", owner, "reading the owner of a job"),
            ("MGET @", modified, "reading the last change of a job"),
            ("MGET @", sidecar, "reading the attempts of a job"),
            ("EXISTS @", owner, "reading the owner of a job"),
            ("EXISTS @", sidecar, "reading the attempts of a job"),
            ("TYPE @", owner, "reading the owner of a job"),
            ("TYPE @", sidecar, "reading the attempts of a job"),
            ("PTTL @", owner, "reading the expiry of a claim"),
            ("SET @ x", owner, "claiming jobs"),
            ("SET @ x", modified, "claiming jobs"),
            ("SET @ x", sidecar, "claiming jobs"),
            ("PEXPIRE @ 1", owner, "renewing claims"),
            ("PEXPIRE @ 1", sidecar, "renewing claims"),
            ("DEL @", owner, "releasing jobs"),
            ("DEL @", modified, "settling jobs"),
            ("DEL @", sidecar, "settling jobs"),
        ])
    }

    fn on_conductors(&self) -> Vec<RequiredRight> {
        let keys = &self.keys;
        let (entry, copy) = (keys.conductor("x"), keys.conductor_seen("x"));
        let status = keys.conductor_status("x");
        let (listing, registering) = ("listing conductors", "registering conductors");
        let mut needed = vec![
            ("PTTL @", &entry, listing),
            ("PTTL @", &copy, listing),
            ("EXISTS @", &entry, "receiving events"),
        ];
        for key in [&entry, &copy, &status] {
            let changes = ["GET @", "SET @ x", "PEXPIRE @ 1", "DEL @"];
            needed.push(("MGET @", key, listing));
            needed.extend(changes.map(|it| (it, key, registering)));
        }
        owned(&needed)
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
        Problem::new(Code::MissingRights, summary).fixed_by(self.cli(grant))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::rows;

    #[test]
    fn denial_is_recognised_from_all_server_versions() {
        for [message, lack] in rows(
            "
            ERR The user executing the script can't run this command or subcommand => Command
            ERR The user executing the script can't access at least one of the keys mentioned in the command arguments => Key
            ERR The user executing the script can't publish to the channel mentioned in the command => Channel
            ERR ACL failure in script: User keyed has no permissions to run the 'hget' command => Command
            NOPERM ACL failure in script: User eve has no permissions to access the 'channel:b' key => Key
            ERR This Redis command is not allowed from script script: 1, on @user_script:1. => Command
            ",
        ) {
            let found = format!("{:?}", MissingRight::of(message));
            assert_eq!(found, lack, "{message}");
        }
    }
}
