//! Reads the keys beside postings: owners, expiries, sidecars.

use std::time::Duration;

use redis::{Pipeline, Value, cmd};

use super::record::CompanionValues;
use crate::{
    board::{
        Result,
        redis::{
            Redis,
            keys::SidecarNames,
            link::{CommandReply, READ},
        },
    },
    job::Location,
};

/// The server's TTL of a missing key.
const GONE: i64 = -2;

impl Redis {
    pub(crate) async fn sidecars(
        &self,
        location: Location,
        fields: &[&[u8]],
    ) -> Result<Vec<CompanionValues>> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let names = fields.iter().map(|it| self.keys.sidecar_names(it));
        let names: Vec<_> = names.collect();
        let mut command = cmd("MGET");
        names.iter().for_each(|name| name.add_to(&mut command));
        let found: Vec<Option<Vec<u8>>> = self.client.read(&command).await?;
        let mut found = found.into_iter();
        let mut next = || found.next().flatten();
        let all = names.iter().map(|_| CompanionValues {
            // In the trash an owner key belongs to a namesake on the board.
            owner: next().filter(|_| location == Location::Board),
            left: None,
            last_modified: next(),
            side: next(),
        });
        let mut all: Vec<_> = all.collect();
        if location == Location::Board {
            self.add_lives(&names, &mut all).await?;
        }
        Ok(all)
    }

    pub(crate) async fn is_any_claimed(&self, fields: &[&[u8]]) -> Result<bool> {
        if fields.is_empty() {
            return Ok(false);
        }
        let mut command = cmd("EXISTS");
        for field in fields {
            command.arg(self.keys.owner(field));
        }
        Ok(self.client.read::<u64>(&command).await? > 0)
    }

    /// Adds the claims' remaining time, and finds owners and sidecars that are no text.
    async fn add_lives(&self, names: &[SidecarNames], all: &mut [CompanionValues]) -> Result<()> {
        let mut questions = Pipeline::new();
        let mut exists = cmd("EXISTS");
        let mut free = 0;
        for (name, one) in names.iter().zip(&*all) {
            if one.owner.is_some() {
                questions.cmd("PTTL").arg(name.owner.as_slice());
            } else {
                exists.arg(name.owner.as_slice());
                if one.side.is_none() {
                    exists.arg(name.side.as_slice());
                }
                free += 1;
            }
        }
        if free > 0 {
            questions.add_command(exists);
        }
        let mut answers = self.client.exchange(READ, &questions).await?;
        let hidden = if free > 0 { answers.pop() } else { None };
        let claimed = all.iter_mut().filter(|one| one.owner.is_some());
        for (one, answer) in claimed.zip(answers) {
            let owner = one.owner.take();
            one.claim(owner, self.number(answer)?);
        }
        match hidden.map(|answer| self.number(answer)).transpose()? {
            // Jobs without an owner key are unclaimed.
            None | Some(0) => Ok(()),
            Some(_) => self.add_nameless(names, all).await,
        }
    }

    async fn add_nameless(
        &self,
        names: &[SidecarNames],
        all: &mut [CompanionValues],
    ) -> Result<()> {
        let mut questions = Pipeline::new();
        let free = names.iter().zip(all);
        let free: Vec<_> = free.filter(|(_, one)| one.owner.is_none()).collect();
        for (name, _) in &free {
            questions.cmd("TYPE").arg(name.owner.as_slice());
            questions.cmd("PTTL").arg(name.owner.as_slice());
            questions.cmd("TYPE").arg(name.side.as_slice());
        }
        let mut answers = self.client.exchange(READ, &questions).await?.into_iter();
        for (_, one) in free {
            let (Some(kind), Some(left), Some(side)) =
                (answers.next(), answers.next(), answers.next())
            else {
                break;
            };
            if self.is_no_text(kind)? {
                one.claim(None, self.number(left)?);
            }
            if self.is_no_text(side)? {
                // An empty value is an unreadable sidecar.
                one.side = Some(Vec::new());
            }
        }
        Ok(())
    }

    /// Whether the value is no text; a text may have replaced it between the queries.
    fn is_no_text(&self, kind: CommandReply) -> Result<bool> {
        let kind = kind.map_err(|error| self.client.refusal(READ, &error, None))?;
        Ok(!matches!(&kind, Value::SimpleString(kind) if kind == "none" || kind == "string"))
    }

    fn number(&self, answer: CommandReply) -> Result<i64> {
        match answer {
            Ok(Value::Int(number)) => Ok(number),
            Ok(_) => Ok(-1),
            Err(error) => Err(self.client.refusal(READ, &error, None)),
        }
    }
}

impl CompanionValues {
    /// TaskFlow takes any value under this key for a claim. The claim may have expired between two queries.
    pub(crate) fn claim(&mut self, owner: Option<Vec<u8>>, left: i64) {
        self.owner = (left != GONE).then(|| owner.unwrap_or_default());
        self.left = u64::try_from(left).ok().map(Duration::from_millis);
    }
}
