//! Tasks: an action on chosen jobs, from the preview to the report.

use std::cell::Cell;

use super::{
    act::{Effect, Pace, act},
    action::{Action, Force},
    plan,
    report::{dry_run, sorted_out},
    select::{Choice, Chosen, PreviewArgs, confirm},
    settle::{Release, authority, foresee_refusals, judged, moved},
};
use crate::{
    board::{self, Board, Settled},
    commands::parts::{notes::no_history, reason::ReasonArgs},
    context::{Consent, Context},
    job::{
        Aftermath, AuditEntry, Decision, Entry, Failure, Identity, Job, JobChange, Location,
        Origin, Owner, Purge, Revision, Settlement,
    },
    output::{count_jobs, rfc3339, short},
    suggest::Suggestion,
};

pub(crate) struct Task {
    pub(crate) action: Action,
    pub(crate) who: Owner,
    pub(crate) reason: Option<String>,
    pub(crate) chosen: Chosen,
    pub(crate) pace: Pace,
    pub(crate) resume: Option<Suggestion>,
}

impl Task {
    pub(crate) fn new(ctx: &Context, action: Action, reason: &ReasonArgs, chosen: Chosen) -> Self {
        Self {
            action,
            who: ctx.who().clone(),
            reason: reason.given(),
            chosen,
            pace: Pace::FULL,
            resume: None,
        }
    }

    pub(crate) async fn finish(
        self,
        ctx: &mut Context,
        board: &dyn Board,
        preview: &PreviewArgs,
        consent: &Consent,
    ) -> anyhow::Result<()> {
        match self.agreed(ctx, board, preview, consent).await? {
            Some(task) => task.carry_out(ctx, board).await,
            None => Ok(()),
        }
    }

    /// Asks for confirmation; `None` after a preview.
    pub(crate) async fn agreed(
        mut self,
        ctx: &mut Context,
        board: &dyn Board,
        preview: &PreviewArgs,
        consent: &Consent,
    ) -> anyhow::Result<Option<Self>> {
        match self.action.force() {
            Some(Force::None) => foresee_refusals(ctx, &mut self.chosen, &self.who),
            Some(_) => {
                let entries = self.chosen.entries();
                let warning = Release::foreseen(&self.action, board, entries).await;
                let warnings = [warning, moved(self.chosen.entries())];
                warnings
                    .into_iter()
                    .flatten()
                    .for_each(|it| ctx.out.note(it));
            }
            None => {}
        }
        if preview.dry_run {
            dry_run(ctx, board, self.action.verb().now, self.chosen).await?;
            return Ok(None);
        }
        if let Some(file) = &preview.plan {
            let (entries, results) = sorted_out(ctx, self.action.verb().now, self.chosen)?;
            plan::write(
                ctx,
                file,
                plan::PlannedAction::Bulk(self.action),
                &self.who,
                self.reason,
                entries,
                results,
            )?;
            return Ok(None);
        }
        let count = self.chosen.entries().count() as u64;
        match self.action.question(&self.chosen) {
            Some(question) => confirm(ctx, consent, &question, &self.chosen)?,
            // A protected board asks for its name before any change of several jobs.
            None if self.action.force().is_none() && count > 1 => {
                let question = format!("{} {}?", self.action.verb().now, count_jobs(count));
                ctx.confirm_protected(&[&ctx.config], consent, &question)?;
            }
            None => {}
        }
        Ok(Some(self))
    }

    pub(crate) async fn carry_out(
        self,
        ctx: &mut Context,
        board: &dyn Board,
    ) -> anyhow::Result<()> {
        let is_planned = self.chosen.choice == Choice::Planned;
        let verb = self.action.verb();
        let executor = Executor::new(board, &self.action, self.who, self.reason).await;
        // Cut entries lack the texts that a change may need.
        let must_read = |entry: &Entry| is_planned || entry.is_cut();
        let each = async |entries: &[&Entry]| match entries.iter().any(|it| must_read(it)) {
            true => {
                let act = async |entries: &[&Entry]| executor.act(entries).await;
                plan::act_on_unchanged(board, &self.action, entries, must_read, act).await
            }
            false => executor.act(entries).await,
        };
        let notes = match self.action {
            Action::Change(_) => notes_on_change(ctx, board, &self.chosen),
            _ => Vec::new(),
        };
        act(ctx, verb, self.pace, self.resume, self.chosen, each).await?;
        notes.into_iter().for_each(|it| ctx.out.note(it));
        Ok(())
    }
}

fn notes_on_change(ctx: &Context, board: &dyn Board, chosen: &Chosen) -> Vec<String> {
    let is_trashed = |it: &&Entry| it.job().is_some_and(|job| job.location == Location::Trash);
    let (trashed, others): (Vec<_>, Vec<_>) = chosen.entries().partition(is_trashed);
    let mut notes = Vec::new();
    if !others.is_empty() && board.capabilities().has_peers() {
        let note = "Python services may use the old version until they list the board again";
        notes.push(note.to_owned());
    }
    let retry = ctx.program().with(["retry"]);
    match trashed.as_slice() {
        [] => {}
        [one] => {
            let retry = retry.with([short(&one.reference())]);
            notes.push(format!(
                "the job is still in the trash; to run it: `{retry}`"
            ));
        }
        _ => notes.push(format!(
            "still in the trash: {}",
            count_jobs(trashed.len() as u64)
        )),
    }
    notes
}

pub(crate) struct Executor<'a> {
    board: &'a dyn Board,
    action: &'a Action,
    owner: Owner,
    /// `None` for a normal action without a reason.
    audit: Option<AuditEntry>,
    release: Option<Release>,
    has_warned: Cell<bool>,
}

const FAILED_BY_HAND: &str = "marked as failed by hand";

impl<'a> Executor<'a> {
    pub(crate) async fn new(
        board: &'a dyn Board,
        action: &'a Action,
        owner: Owner,
        reason: Option<String>,
    ) -> Self {
        // The reason of a failure, so that the trashing counts as one (`Job::fatal_failure`).
        let reason = reason.or_else(|| action.is_failure().then(|| FAILED_BY_HAND.to_owned()));
        // Consuming a job, or releasing one's own claim, is the normal course.
        let is_ordinary = matches!(action, Action::Abandon { .. } | Action::Consume { .. });
        let is_ordinary = is_ordinary && !action.is_forced() && reason.is_none();
        let audit = || AuditEntry::now(action.verb().past, &owner.text(), reason.as_deref());
        Self {
            board,
            action,
            audit: (!is_ordinary).then(audit),
            owner,
            release: Release::of(action, board).await,
            has_warned: Cell::default(),
        }
    }

    pub(crate) async fn act(
        &self,
        entries: &[&Entry],
    ) -> board::Result<Vec<anyhow::Result<Effect>>> {
        match self.action {
            Action::Abandon { .. } => {
                self.settle(entries, &Decision::Abandon(Aftermath::None))
                    .await
            }
            Action::Consume { failed: false, .. } => self.settle(entries, &Decision::Consume).await,
            Action::Consume { failed: true, .. } => {
                let decision = Decision::ConsumeFailed(self.failure());
                self.settle(entries, &decision).await
            }
            Action::Trash { failed, .. } => {
                let aftermath = match failed {
                    true => Aftermath::failed(self.failure()),
                    false => Aftermath::None,
                };
                self.settle(entries, &Decision::Trash(aftermath)).await
            }
            Action::Restore | Action::Retry { .. } | Action::Change(_) => {
                let jobs: Vec<_> = entries.iter().map(|entry| self.revision(entry)).collect();
                let answers = self.board.revise(&jobs).await?.into_iter();
                Ok(answers
                    .map(|it| Ok(it.map(|()| Effect::default())?))
                    .collect())
            }
            Action::Purge => {
                let jobs: Vec<_> = entries.iter().map(|entry| self.purge(entry)).collect();
                let answers = self.board.purge(&jobs).await?.into_iter();
                Ok(answers.map(|it| Ok(self.effect(&it?))).collect())
            }
        }
    }

    fn failure(&self) -> Failure {
        let reason = self.audit.as_ref().and_then(|it| it.reason.as_deref());
        Failure::reported(reason.unwrap_or(FAILED_BY_HAND), &self.owner.text())
    }

    async fn settle(
        &self,
        entries: &[&Entry],
        decision: &Decision,
    ) -> board::Result<Vec<anyhow::Result<Effect>>> {
        let force = self.action.force().unwrap_or(&Force::None);
        let settlement = |entry: &&Entry| self.settlement(entry, decision, force);
        let settlements: Vec<_> = entries.iter().map(settlement).collect();
        let answers = self.board.settle(&settlements).await?;
        let answers = entries.iter().zip(&settlements).zip(answers);
        let judged = |((entry, settlement), answer): ((&&Entry, &Settlement), _)| {
            let mut effect = self.effect(&judged(entry, force, answer)?);
            effect.field = match decision {
                Decision::ConsumeFailed(_) => Some(("outcome", "failed".into())),
                Decision::Abandon(_) if *force != Force::None => {
                    let not_before = settlement.decision.not_before().map(rfc3339);
                    Some(("not_before", not_before.into()))
                }
                _ => None,
            };
            Ok(effect)
        };
        Ok(answers.map(judged).collect())
    }

    fn settlement(&self, entry: &Entry, decision: &Decision, force: &Force) -> Settlement {
        let decision = match (decision, &self.release) {
            (Decision::Abandon(_), Some(release)) => Decision::Abandon(release.aftermath(entry)),
            (Decision::Trash(_), Some(release)) => {
                Decision::Trash(release.aftermath_in_trash(entry))
            }
            (decision, _) => decision.clone(),
        };
        Settlement {
            job: entry
                .job()
                .filter(|_| decision.is_end())
                .map(Identity::from),
            audit: self.audit.clone(),
            ..Settlement::of(
                entry.key().clone(),
                decision,
                authority(force, entry, &self.owner),
            )
        }
    }

    fn revision(&self, entry: &Entry) -> Revision {
        let job = entry.job();
        let seen = job.map_or(Location::Trash, |job| job.location);
        let (location, change) = match self.action {
            Action::Change(edit) => {
                let location = job.map_or(Location::Board, |job| job.location);
                (location, JobChange::Edit(edit.clone()))
            }
            Action::Retry {
                keep_attempts: true,
            } => (seen, JobChange::Continue),
            _ => (seen, JobChange::Restart),
        };
        Revision {
            key: entry.key().clone(),
            location,
            change,
            audit: match (self.action, location) {
                (Action::Change(_), Location::Trash) => self.audit_in_trash(job),
                _ => self.audit.clone(),
            },
        }
    }

    /// Returns the audit entry, with the reason of the trashing if it has none.
    fn audit_in_trash(&self, job: Option<&Job>) -> Option<AuditEntry> {
        let trashed = job.and_then(|job| job.attempts.audit.as_ref()?.reason.clone());
        let audit = self.audit.clone()?;
        Some(AuditEntry {
            reason: audit.reason.or(trashed),
            ..audit
        })
    }

    fn purge(&self, entry: &Entry) -> Purge {
        let job = entry.job();
        Purge {
            key: entry.key().clone(),
            // Another board's job does not belong into this board's history.
            job: job
                .filter(|job| !matches!(job.origin, Origin::Beside(_)))
                .map(Identity::from),
            audit: self.audit_in_trash(job),
        }
    }

    /// Returns the note on a job that left the board; a missing history is reported once.
    fn effect(&self, settled: &Settled) -> Effect {
        let replaced = "replaced a job with the same uuid in the trash";
        let note = match &settled.forgotten {
            Some(why) if !self.has_warned.replace(true) => Some(no_history(why)),
            _ => settled.replaced_namesake.then(|| replaced.to_owned()),
        };
        Effect { field: None, note }
    }
}
