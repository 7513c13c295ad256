//! The common part of abandon, consume and trash.

use chrono::TimeDelta;

use super::{
    dry_run::dry_run,
    forgotten::Forgotten,
    reason::ReasonArgs,
    select::{Chosen, Named, Selection, confirm, confirm_bulk, count},
    under_claim::LEASE,
    verb::{Verb, act},
};
use crate::{
    board::{Board, BoardError, Result, Settled},
    context::{Consent, Context},
    exit::CommandError,
    job::{
        Aftermath, Authority, Entry, Failure, Identity, Lease, Outcome, Owner, Remark, Settlement,
        Shelf, Witness,
    },
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
) -> anyhow::Result<()> {
    let stated = stated_owner(args.owner.as_deref())?;
    args.selection.require()?;
    let board = args.selection.board(ctx)?;
    let chosen = args
        .selection
        .look_up(ctx, &*board, &[Shelf::Board])
        .await?;
    let mut chosen = args.selection.bounded(ctx, chosen)?;
    if !args.force {
        foresee_refusals(ctx, &chosen);
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
        let answers = batch(&*board, entries, (&outcome, &remark), &right).await?;
        let answers = entries.iter().zip(answers);
        Ok(answers.map(|(entry, it)| right.judged(entry, it)).collect())
    };
    let forgotten = Forgotten::default();
    act(ctx, verb, chosen, settle, |settled: &Settled, done| {
        let replaced = || {
            let note = "replaced a job with the same uuid in the trash";
            settled.replaced_namesake.then(|| note.to_owned())
        };
        let note = forgotten.warning(settled).or_else(replaced);
        match outcome {
            Outcome::GiveUp(_) => (done.with("outcome", "failed"), note),
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
            (Self::ForceFrom(owner), Err(BoardError::Changed)) => {
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
    batch(board, seen, (outcome, &Some(remark)), &Right::Force).await
}

async fn batch(
    board: &dyn Board,
    entries: &[&Entry],
    (outcome, remark): (&Outcome, &Option<Remark>),
    right: &Right,
) -> Result<Vec<Result<Settled>>> {
    let settlements: Vec<_> = entries
        .iter()
        .map(|entry| Settlement {
            key: entry.key().clone(),
            outcome: match (outcome, right) {
                (Outcome::Abandon(_), Right::Force | Right::ForceFrom(_)) => {
                    Outcome::Abandon(aftermath(entry))
                }
                (outcome, _) => outcome.clone(),
            },
            authority: right.over(entry),
            job: entry.job().filter(|_| outcome.is_end()).map(Identity::from),
            remark: remark.clone(),
            commit: None,
        })
        .collect();
    board.settle(&settlements).await
}

/// Returns the consequence for a job after an operator ends its claim.
///
/// The old owner may still run the job, and learns of it at the next renewal. Conductors wait until the old command has
/// certainly ended.
fn aftermath(entry: &Entry) -> Aftermath {
    let performed = entry.job().filter(|job| job.history.attempts > 0);
    let lapses_in = performed
        .and_then(|job| job.holding.as_ref())
        .filter(|holding| holding.fence.is_some())
        .and_then(|holding| match holding.lease {
            Lease::None => None,
            Lease::Timed | Lease::Session => {
                let known = holding.expires_in.or(holding.outlives);
                Some(known.unwrap_or(LEASE))
            }
        });
    let Some(lapses_in) = lapses_in.and_then(|it| TimeDelta::from_std(it).ok()) else {
        return Aftermath::None;
    };
    let owner = entry.holding().and_then(|it| it.owner.as_ref());
    let owner = owner.map_or_else(String::new, Owner::to_string);
    let failure = Failure::told("the claim was released by force", &owner);
    Aftermath::Failed {
        not_before: failure.time.checked_add_signed(lapses_in),
        failure,
    }
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
