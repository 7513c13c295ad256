//! Plans: what a verb would do, in a file, for `apply` to do later.

use std::{cell::RefCell, collections::HashMap, path::Path};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    act::BATCH,
    action::Action,
    report::{Done, Results},
    select::{Choice, Chosen, Named},
};
use crate::{
    board::{self, Board, BoardError, JobRef},
    context::Context,
    diagnosis::is_left_by_move,
    exit::CommandError,
    job::{Entry, Fence, JobKey, Location, Owner, State, shortened},
    output::{count_jobs, rfc3339},
    suggest::Hint,
    transfer::{
        lines::LineReader,
        sealed::{self, SealedKind, SealedWriter, Trailer},
    },
};

const VERSION: u32 = 1;

pub(crate) const SKIPPED: &str = "skipped, already done or changed since the plan";

#[derive(Debug, Serialize, Deserialize)]
struct Header {
    jobboard_plan: u32,
    board: String,
    version: String,
    created_on: String,
    who: String,
    reason: Option<String>,
    action: PlannedAction,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PlannedAction {
    Move(MoveAction),
    #[serde(untagged)]
    Bulk(Action),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct MoveAction {
    /// The target: its name in the configuration, or its address.
    pub(crate) to: String,
    /// The address that the plan was made for.
    pub(crate) target: String,
    pub(crate) fresh: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct PlanItem {
    /// A reference for people; the key identifies the record.
    job: String,
    name: String,
    key: String,
    expected: Expected,
}

/// The state that must be unchanged. A running owner renews its claim, so the expiry is not part of it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Expected {
    state: State,
    owner: Option<String>,
    fence: Option<Fence>,
    created_on: Option<DateTime<Utc>>,
    trashed_on: Option<DateTime<Utc>>,
    /// Of an unclaimed job. The fence and the owner identify a claim.
    last_modified: Option<DateTime<Utc>>,
    attempts: u32,
    not_before: Option<DateTime<Utc>>,
    action_on: Option<DateTime<Utc>>,
}

impl Expected {
    fn of(entry: &Entry) -> Self {
        let (job, holding) = (entry.job(), entry.holding());
        let attempts = job.map(|job| &job.attempts);
        let owner = holding.and_then(|it| it.owner.as_ref());
        Self {
            state: entry.state(),
            owner: owner.map(|owner| owner.brief().text().into_owned()),
            fence: holding.and_then(|it| it.fence.clone()),
            created_on: job.and_then(|job| job.created_on),
            trashed_on: job.and_then(|job| job.trashed_on),
            last_modified: job
                .filter(|_| holding.is_none())
                .and_then(|job| job.last_modified),
            attempts: attempts.map_or(0, |attempts| attempts.count),
            not_before: attempts.and_then(|attempts| attempts.not_before),
            action_on: attempts.and_then(|attempts| attempts.audit.as_ref()?.on),
        }
    }

    /// Ignores the traces of an interrupted move, so that it can be repeated: its claims, and the time of their end.
    fn of_move(entry: &Entry) -> Self {
        let expected = Self {
            last_modified: None,
            ..Self::of(entry)
        };
        match entry.holding().is_some_and(is_left_by_move) {
            true => Self {
                state: State::Unclaimed,
                owner: None,
                fence: None,
                ..expected
            },
            false => expected,
        }
    }
}

#[derive(Debug)]
pub(crate) struct PlannedMove {
    pub(crate) action: MoveAction,
    pub(crate) who: Owner,
    /// The jobs that were not seen as planned so far, with their places in the plan.
    items: RefCell<HashMap<JobKey, (usize, PlanItem)>>,
}

impl PlannedMove {
    pub(crate) fn new(action: MoveAction, plan: Plan) -> Self {
        let items = plan.items.into_iter().enumerate();
        let items = items.map(|(place, item)| (JobKey::new(&item.key), (place, item)));
        Self {
            action,
            who: plan.who,
            items: RefCell::new(items.collect()),
        }
    }

    /// Whether to move a job; each moves once.
    pub(crate) fn takes(&self, entry: &Entry) -> bool {
        let mut items = self.items.borrow_mut();
        let planned = items.get(entry.key());
        let is_unchanged = planned.is_some_and(|(_, it)| it.expected == Expected::of_move(entry));
        is_unchanged && items.remove(entry.key()).is_some()
    }

    pub(crate) fn len(&self) -> u64 {
        self.items.borrow().len() as u64
    }

    pub(crate) fn skipped(&self) -> Vec<Done> {
        let mut items: Vec<_> = self.items.take().into_values().collect();
        items.sort_by_key(|(place, _)| *place);
        let skipped = |(_, item): (_, PlanItem)| Done::skipped(&item.job, item.name);
        items.into_iter().map(skipped).collect()
    }
}

pub(crate) fn write(
    ctx: &mut Context,
    file: &Path,
    action: PlannedAction,
    who: &Owner,
    reason: Option<String>,
    entries: Vec<Entry>,
    results: Results,
) -> anyhow::Result<()> {
    let mut writer = SealedWriter::open(Some(file))?;
    let header = Header {
        jobboard_plan: VERSION,
        board: ctx.board()?.url().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_on: rfc3339(Utc::now()),
        who: who.text().into_owned(),
        reason,
        action,
    };
    writer.line(&mut ctx.out, &header)?;
    let mut trailer = Trailer::default();
    for entry in &entries {
        let item = PlanItem {
            job: entry.reference().into_owned(),
            name: entry.name().into_owned(),
            key: entry.key().text().into_owned(),
            expected: match header.action {
                PlannedAction::Move(_) => Expected::of_move(entry),
                PlannedAction::Bulk(_) => Expected::of(entry),
            },
        };
        writer.line(&mut ctx.out, &item)?;
        trailer.count(entry);
    }
    writer.seal(&mut ctx.out, "planned in", trailer)?;
    results.end(ctx)
}

pub(crate) struct Plan {
    pub(crate) action: PlannedAction,
    pub(crate) who: Owner,
    pub(crate) reason: Option<String>,
    board: String,
    items: Vec<PlanItem>,
}

impl Plan {
    pub(crate) async fn read(mut lines: LineReader) -> anyhow::Result<Self> {
        let source = lines.source().to_owned();
        let first = sealed::first(&mut lines).await?.unwrap_or_default();
        let hint = "write the plan again with --plan; a plan cannot be edited by hand";
        let wrong = |what: String| CommandError::usage(shortened(&what)).hint(hint);
        let header: Header = serde_json::from_slice(&first).map_err(|_| {
            wrong(format!(
                "{source} is not a plan: its first line is not a plan header"
            ))
        })?;
        if header.jobboard_plan != VERSION {
            let version = header.jobboard_plan;
            let message = format!("the plan has version {version}; this jobboard reads {VERSION}");
            return Err(CommandError::usage(message).into());
        }
        let (mut lines, trailer) = sealed::whole(lines, &first, SealedKind::Plan).await?;
        let mut items = Vec::new();
        for number in 2..trailer.total() + 2 {
            let line = lines
                .next()
                .await?
                .context("the plan changed while it was read")?;
            let item = serde_json::from_slice(&line?);
            items.push(item.map_err(|_| wrong(format!("line {number} of {source} is damaged")))?);
        }
        Ok(Self {
            action: header.action,
            who: Owner::from_stored(header.who),
            reason: header.reason,
            board: header.board,
            items,
        })
    }

    pub(crate) fn require(&self, board: &dyn Board) -> anyhow::Result<()> {
        let (theirs, ours) = (&self.board, board.url());
        if theirs == ours {
            return Ok(());
        }
        let message =
            format!("the plan is for the board {theirs}, not for {ours}; nothing changed");
        let hint = Hint::new("use --board {}", [&[theirs]]);
        Err(CommandError::refused(message).hint(hint).into())
    }

    /// Empties the plan. Returns the jobs that have not changed since then, and a result for each of the others.
    pub(crate) async fn look_up(
        &mut self,
        ctx: &Context,
        board: &dyn Board,
        locations: &[Location],
    ) -> anyhow::Result<(Chosen, Vec<Done>)> {
        let all = self.items.len();
        let (mut jobs, mut skipped) = (Vec::new(), Vec::new());
        let mut items = std::mem::take(&mut self.items).into_iter().peekable();
        while items.peek().is_some() {
            let batch: Vec<_> = items.by_ref().take(BATCH).collect();
            let expected = batch.iter().map(|it| (JobKey::new(&it.key), &it.expected));
            let found = unchanged(board, locations, expected.collect()).await;
            let found = found.with_context(|| ctx.trying("look up", "the jobs of the plan"))?;
            for (item, entry) in batch.into_iter().zip(found) {
                match entry {
                    Some(entry) => jobs.push(Named {
                        name: item.name,
                        reference: item.job,
                        entry: Ok(entry),
                    }),
                    None => skipped.push(Done::skipped(&item.job, item.name)),
                }
            }
        }
        if !skipped.is_empty() {
            let (skipped, all) = (skipped.len(), count_jobs(all as u64));
            ctx.out.note(format!("{SKIPPED}: {skipped} of {all}"));
        }
        let choice = Choice::Planned;
        Ok((Chosen { jobs, choice }, skipped))
    }
}

async fn unchanged(
    board: &dyn Board,
    locations: &[Location],
    expected: Vec<(JobKey, &Expected)>,
) -> board::Result<Vec<Option<Entry>>> {
    let keys = expected.iter().map(|(key, _)| JobRef::Key(key.clone()));
    let keys: Vec<_> = keys.collect();
    let mut unchanged: Vec<_> = keys.iter().map(|_| None).collect();
    for location in locations {
        let found = board.find(*location, &keys).await?;
        for ((place, (_, expected)), found) in unchanged.iter_mut().zip(&expected).zip(found) {
            let mut found = found.into_iter();
            if let Some(entry) = found.find(|entry| Expected::of(entry) == **expected) {
                *place = Some(entry);
            }
        }
    }
    Ok(unchanged)
}

/// Reads some jobs again and acts on those that are unchanged: at a slow pace, their turn comes long after the start.
pub(super) async fn act_on_unchanged<T>(
    board: &dyn Board,
    action: &Action,
    entries: &[&Entry],
    must_read: impl Fn(&Entry) -> bool,
    act: impl AsyncFnOnce(&[&Entry]) -> board::Result<Vec<anyhow::Result<T>>>,
) -> board::Result<Vec<anyhow::Result<T>>> {
    let old: Vec<_> = entries.iter().filter(|it| must_read(it)).collect();
    let seen: Vec<_> = old.iter().map(|entry| Expected::of(entry)).collect();
    let expected = old.iter().map(|entry| entry.key().clone()).zip(&seen);
    let read = unchanged(board, action.locations(), expected.collect()).await?;
    let mut read = read.iter();
    let present: Vec<Option<&Entry>> = (entries.iter())
        .map(|entry| match must_read(entry) {
            true => read.next().and_then(Option::as_ref),
            false => Some(*entry),
        })
        .collect();
    let mut answers = act(&present.iter().flatten().copied().collect::<Vec<_>>())
        .await?
        .into_iter();
    let answers = present.iter().map(|entry| {
        let answer = entry.and_then(|_| answers.next());
        answer.unwrap_or_else(|| Err(BoardError::Changed.into()))
    });
    Ok(answers.collect())
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;

    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused, same};

    fn round_trips<T: Serialize + DeserializeOwned>(input: &[u8]) -> Result<Answer, String> {
        let text = |it: &T| serde_json::to_string(it).unwrap();
        let once = match serde_json::from_slice::<T>(input) {
            Ok(it) => text(&it),
            Err(error) => return refused(&shortened(&error.to_string())),
        };
        let again = serde_json::from_str::<T>(&once).map_err(|it| it.to_string())?;
        same("read again", &once, &text(&again))?;
        Ok(Answer::Read)
    }

    #[test]
    fn untrusted_plans_round_trip() {
        let line = |action: &str| {
            format!(
                r#"{{"jobboard_plan":1,"board":"b","version":"1","created_on":"","who":"ada","reason":null,"action":{action}}}"#
            )
        };
        let actions = [
            r#"{"abandon":{"force":{"of":"night"},"now":true}}"#,
            r#"{"consume":{"force":"any","failed":false}}"#,
            r#"{"change":{"name":null,"priority":"HIGH","details":{"a":[1.5]},"set":[["n",null]],"unset":["m"]}}"#,
            r#""purge""#,
        ];
        Corpus::of(Bounds::STORED, actions.map(line)).hold(round_trips::<Header>);
        let item = r#"{"job":"key:a","name":"\u202e","key":"a","expected":{"state":"CLAIMED","owner":"ada","fence":"7",
            "created_on":"2026-01-01T00:00:00.123456Z","trashed_on":null,"last_modified":null,"attempts":2,
            "not_before":null,"action_on":null}}"#;
        Corpus::of(Bounds::STORED, [item]).hold(round_trips::<PlanItem>);
    }
}
