//! The common part of abandon, consume and trash.

use super::{
    dry_run::dry_run,
    forgotten::Forgotten,
    reason::ReasonArgs,
    release::Release,
    select::{Chosen, Named, Selection, confirm, confirm_bulk, count},
    verb::{Verb, act},
};
use crate::{
    board::{Board, BoardError, Result, Settled},
    context::{Consent, Context},
    exit::CommandError,
    job::{Authority, Entry, Identity, Outcome, Owner, Remark, Settlement, Shelf, Witness},
    output::rfc3339,
};

/// The jobs to settle, and whether by force.
#[derive(Debug, clap::Args)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    selection: Selection,

    /// Act on jobs of any owner
    ///
    /// Shows the state of the jobs, asks, and acts only if that state is unchanged.
    #[arg(long)]
    force: bool,

    /// With --force: act only if this owner holds the claim
    #[arg(long, value_name = "NAME", requires = "force")]
    owner: Option<String>,

    #[command(flatten)]
    pub(crate) reason: ReasonArgs,

    #[command(flatten)]
    consent: Consent,
}

pub(crate) async fn settle(
    ctx: &mut Context,
    args: SettleArgs,
    verb: Verb,
    outcome: Outcome,
    release: Option<Release>,
) -> anyhow::Result<()> {
    let stated = stated_owner(args.owner.as_deref())?;
    args.selection.require()?;
    let board = args.selection.board(ctx)?;
    let chosen = args
        .selection
        .look_up(ctx, &*board, &[Shelf::Board])
        .await?;
    let mut chosen = args.selection.bounded(ctx, chosen)?;
    let release = match (&outcome, args.force, release) {
        (Outcome::Abandon(_), true, None) => Some(Release::checked(&*board).await),
        (_, _, release) => release,
    };
    match &release {
        _ if !args.force => foresee_refusals(ctx, &chosen),
        Some(release) => release
            .warning(chosen.entries())
            .into_iter()
            .for_each(|it| ctx.out.note(it)),
        None => {}
    }
    if args.selection.dry_run {
        return dry_run(ctx, verb.now, chosen);
    }
    match args.force {
        true => confirm(
            ctx,
            &args.consent,
            &format!("{} {{}} by force?", verb.now),
            &chosen,
        )?,
        false => confirm_bulk(ctx, &args.consent, verb.now, &chosen)?,
    }
    let right = match (args.force, stated) {
        (false, _) => Right::Owner(ctx.who().clone()),
        (true, None) => Right::Force,
        (true, Some(owner)) => Right::ForceFrom(owner),
    };
    // Consuming a job, or releasing one's own claim, is the normal course.
    let is_ordinary = !args.force && matches!(outcome, Outcome::Consume | Outcome::Abandon(_));
    let remark = args.reason.remark(ctx, verb, is_ordinary);
    if let Right::Owner(_) = right {
        refuse_malformed(&mut chosen);
    }
    let settle = async |entries: &[&Entry]| {
        let settlements = settlements(entries, (&outcome, &remark), (&right, release.as_ref()));
        let answers = board.settle(&settlements).await?;
        let answers = entries.iter().zip(settlements).zip(answers);
        let judged = |((entry, settlement), answer): ((&&Entry, Settlement), _)| {
            let settled = right.judged(entry, answer);
            settled.map(|settled| (settled, settlement.outcome.not_before()))
        };
        Ok(answers.map(judged).collect())
    };
    let forgotten = Forgotten::default();
    act(ctx, verb, chosen, settle, |(settled, not_before), done| {
        let replaced = || {
            let note = "replaced a job with the same uuid in the trash";
            settled.replaced_namesake.then(|| note.to_owned())
        };
        let note = forgotten.warning(settled).or_else(replaced);
        match outcome {
            Outcome::GiveUp(_) => (done.with("outcome", "failed"), note),
            Outcome::Abandon(_) if args.force => {
                (done.with("not_before", not_before.map(rfc3339)), note)
            }
            _ => (done, note),
        }
    })
    .await
}

enum Right {
    Owner(Owner),
    /// An operator's decision about the job as seen.
    Force,
    /// An operator's decision about this owner's claim.
    ForceFrom(Owner),
}

impl Right {
    fn over(&self, entry: &Entry) -> Authority {
        match self {
            Self::Owner(owner) => Authority::Owner(owner.clone()),
            Self::Force => Authority::Override(Witness::of(entry)),
            // Another claim of the same name is not the claim that the operator saw.
            Self::ForceFrom(owner) if entry.is_owned_by(owner) => {
                Authority::Override(Witness::of(entry))
            }
            Self::ForceFrom(owner) => Authority::Override(Witness::Claimed {
                owner: Some(owner.clone()),
                fence: None,
            }),
        }
    }

    /// Explains a rejection for a malformed record or a stated owner.
    fn judged(&self, entry: &Entry, answer: Result<Settled>) -> anyhow::Result<Settled> {
        match (self, answer) {
            (_, Err(error @ BoardError::NotClaimed)) => Err(match entry {
                Entry::Job(_) => error.into(),
                // Being unclaimed is not its problem.
                Entry::Malformed(record) => BoardError::from(record).into(),
            }),
            (Self::ForceFrom(owner), Err(BoardError::Changed)) if !entry.is_owned_by(owner) => {
                Err(CommandError::NotHeldBy(owner.clone()).into())
            }
            (_, answer) => Ok(answer?),
        }
    }
}

/// Settles records of any owner, each only if it is unchanged.
pub(crate) async fn by_force(
    board: &dyn Board,
    seen: &[&Entry],
    outcome: &Outcome,
    remark: Remark,
) -> Result<Vec<Result<Settled>>> {
    let release = match outcome {
        Outcome::Abandon(_) => Some(Release::checked(board).await),
        _ => None,
    };
    let (right, remark) = ((&Right::Force, release.as_ref()), Some(remark));
    board
        .settle(&settlements(seen, (outcome, &remark), right))
        .await
}

fn settlements(
    entries: &[&Entry],
    (outcome, remark): (&Outcome, &Option<Remark>),
    (right, release): (&Right, Option<&Release>),
) -> Vec<Settlement> {
    entries
        .iter()
        .map(|entry| Settlement {
            key: entry.key().clone(),
            outcome: match release {
                Some(release) => Outcome::Abandon(release.aftermath(entry)),
                None => outcome.clone(),
            },
            authority: right.over(entry),
            job: entry.job().filter(|_| outcome.is_end()).map(Identity::from),
            remark: remark.clone(),
            commit: None,
        })
        .collect()
}

pub(crate) fn stated_owner(name: Option<&str>) -> anyhow::Result<Option<Owner>> {
    name.map(Owner::new)
        .transpose()
        .map_err(|error| CommandError::usage(format!("--owner: {error}")).into())
}

/// Warns how many jobs of a selection belong to other owners.
fn foresee_refusals(ctx: &Context, chosen: &Chosen) {
    let is_ours = |entry: &&Entry| {
        let holding = entry.holding();
        holding.and_then(|it| it.owner.as_ref()) == Some(ctx.who())
    };
    let all = chosen.entries().count();
    let others = all - chosen.entries().filter(is_ours).count();
    if chosen.is_bulk && others > 0 {
        ctx.out.note(format!(
            "not claimed by {}, skipped without --force: {others} of {}",
            ctx.who(),
            count(all as u64)
        ));
    }
}

/// Skips malformed records without --force.
fn refuse_malformed(chosen: &mut Chosen) {
    for Named { entry, .. } in &mut chosen.jobs {
        if let Ok(Entry::Malformed(record)) = entry {
            *entry = Err(BoardError::from(&*record).into());
        }
    }
}
