//! The command that helps against a cause, for one job or for all.

use super::{
    Cause, CauseSubject,
    causes::{CLAIMED, NO_OWNER},
    holder::Death,
};
use crate::{
    board::url::BoardUrl,
    job::Location,
    problem::{Code, Fix, Repair, Risk, no_job_code},
    secret::is_covered,
    suggest::Suggestion,
};

/// The jobs that a command is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum FixTarget<'a> {
    Job(&'a str, Location),
    All {
        /// The value of `--problem`.
        selector: &'a str,
        /// Whether a retry tries one job first.
        canary: bool,
    },
}

impl FixTarget<'_> {
    fn jobs(&self) -> Vec<&str> {
        match self {
            Self::Job(reference, _) => vec![reference],
            Self::All { selector, .. } => vec!["--problem", selector],
        }
    }

    fn list(self) -> Fix {
        Fix::look(Suggestion::of("list").with(self.jobs()))
    }

    fn run(self, risk: Risk, repair: Repair) -> Fix {
        let (verb, option) = match repair {
            Repair::Abandon { now: false } => ("abandon --force", None),
            Repair::Abandon { now: true } => ("abandon --force --now", None),
            Repair::Trash { reason } => ("trash --force", reason.map(|it| ["--reason", it])),
            Repair::Retry { canary } => ("retry", canary.then_some(["--canary", "1"])),
        };
        let command = Suggestion::of(verb).with(self.jobs());
        Fix {
            risk: Some(risk),
            repair: Some(repair),
            ..Fix::act(command.with(option.into_iter().flatten()))
        }
    }

    pub(super) fn retry(self) -> Fix {
        let canary = matches!(self, Self::All { canary: true, .. });
        self.run(Risk::Decision, Repair::Retry { canary })
    }

    /// For problems that need a look at each job: offers to trash one job only.
    fn trash_one(self) -> Fix {
        match self {
            Self::Job(..) => self.run(Risk::Destructive, Repair::Trash { reason: None }),
            Self::All { .. } => self.list(),
        }
    }
}

/// Returns what helps against a cause, for one job or for all; `explain` knows more about some jobs.
pub(super) fn fix(cause: &Cause, target: FixTarget<'_>) -> Option<Fix> {
    let fix = match cause.code {
        Code::OwnerDead
        | Code::OwnerStopped
        | Code::ClaimNeverExpires
        | Code::BrokenLock
        | Code::UnfinishedMove => fix_of_claim(cause, target),
        Code::UnreadableRecord => fix_of_record(cause, target),
        Code::InvalidCommand => {
            let reason = Some(cause.code.name());
            let trash = target.run(Risk::Destructive, Repair::Trash { reason });
            trash.because("if `jobboard change JOB -- COMMAND` cannot correct it, move it to the trash")
        }
        Code::UnreadableSidecar => target.trash_one().because(
            "a later version of jobboard may have written it: use that version, claim the job by hand, or trash it",
        ),
        Code::UuidMismatch => target
            .trash_one()
            .because("if the job is not needed, move it to the trash"),
        Code::BlocksPosters => target.trash_one().because(
            "if `jobboard flow` shows no progress, restart the worker, then remove the job",
        ),
        Code::RetriesExhausted | Code::Failed if cause.about == CauseSubject::NoFailure => target
            .retry()
            .because("check why the conductor ended, then retry"),
        Code::RetriesExhausted | Code::Failed => target.retry().because("after fixing the cause"),
        Code::Trashed => target.retry().because("bring the job back"),
        Code::BackingOff | Code::ExcessiveDelay => target.retry().because("retry the job now"),
        Code::Paused => {
            let names = cause.about.to_string();
            Fix::act(Suggestion::of("resume").operand(&names))
                .because("if it is no longer needed, end the pause")
        }
        Code::ClaimNotRenewed => {
            let look = Suggestion::of("list --filter expires<10s --sort expires");
            Fix::look(look).because(
                "restart the owner; after the claim expires, a second worker runs the job too",
            )
        }
        Code::UnsettledJob => Fix::look(Suggestion::of("conductors"))
            .because("fix the cause on the conductor's machine"),
        Code::ConductorRefuses => {
            let look = Suggestion::of("conductors");
            match &cause.about {
                CauseSubject::Refusal(it) => {
                    Fix::look(look.operand(&it.conductor)).because(&*it.remedy)
                }
                _ => Fix::look(look).because("several refusals; each needs its own fix"),
            }
        }
        Code::NoMatchingConductor => Fix::look(Suggestion::of("conductors"))
            .because("add a handler, or start another conductor"),
        Code::NoConductor => Fix::advice(
            "start `jobboard conduct --handlers DIR` or a TaskFlow conductor, or run a command with \
                 `jobboard claim JOB -- COMMAND`",
        ),
        Code::ClockSkew => Fix::advice("correct the clocks of this machine and of the posters"),
        Code::BreaksPeers => target.list(),
        Code::Ready | Code::Running | Code::Waiting | Code::ClaimExpiresSoon | Code::Ended => {
            return None;
        }
        Code::UnknownJob | Code::Unavailable | Code::FlowWithoutClaim => return None,
        no_job_code!() => return None,
    };
    Some(fix)
}

fn fix_of_claim(cause: &Cause, target: FixTarget<'_>) -> Fix {
    let release = |risk| target.run(risk, Repair::Abandon { now: false });
    match (cause.code, &cause.about) {
        (Code::OwnerDead, CauseSubject::Host(_, Death::Certain)) => {
            release(Risk::Safe).because("the owner is gone; release the claim")
        }
        (Code::OwnerStopped, CauseSubject::Host(_, Death::Stopped(pid))) => resume_process(*pid),
        (Code::OwnerStopped, _) => Fix::look(Suggestion::of("conductors"))
            .because("resume each stopped process with `kill -CONT PID`"),
        (Code::OwnerDead, _) => target
            .run(Risk::Decision, Repair::Abandon { now: true })
            .because("if the process is gone, release the claim"),
        (Code::ClaimNeverExpires, CauseSubject::Owner(owner)) => {
            release(Risk::Decision).because(format!("if {owner} is gone, release the claim"))
        }
        (Code::ClaimNeverExpires, _) => {
            release(Risk::Decision).because("if the owners are gone, release the claims")
        }
        (Code::UnfinishedMove, CauseSubject::Text(from)) if !from.is_empty() => {
            finish_move("--from", from)
        }
        (Code::UnfinishedMove, _) => Fix::look(Suggestion::of("list --filter owner=move:*")),
        (_, about) if about.is(NO_OWNER) => {
            release(Risk::Safe).because("the lock names no owner; remove the lock")
        }
        _ => release(Risk::Decision).because("if no worker is running the job, release the claim"),
    }
}

pub(super) fn resume_process(pid: u32) -> Fix {
    let resume = Suggestion::of("kill -CONT").with([pid.to_string()]);
    Fix::elsewhere(resume).because("resume the conductor, or kill it")
}

fn fix_of_record(cause: &Cause, target: FixTarget<'_>) -> Fix {
    match (&cause.about, target) {
        (about, _) if about.is(CLAIMED) => target.list().because("ask the owner first"),
        (_, FixTarget::Job(reference, Location::Trash)) => {
            let mut purge = Fix::act(Suggestion::of("purge").with([reference]));
            purge.risk = Some(Risk::Destructive);
            purge.because("remove the record")
        }
        _ => target
            .run(Risk::Destructive, Repair::Trash { reason: None })
            .because("move it to the trash"),
    }
}

/// Suggests finishing a move. A peer may have written the address, so --fix does not use it, and no command names a
/// file that it would send to that address.
pub(super) fn finish_move(option: &str, board: &str) -> Fix {
    let is_harmless = |url: BoardUrl| !url.names_files();
    if is_covered(board) || !board.parse().is_ok_and(is_harmless) {
        return Fix::advice(match option {
            "--to" => "finish the move: `jobboard copy --resume --to` with the URL of that board",
            _ => "finish the move: `jobboard copy --resume --from` with the URL of that board",
        });
    }
    let command = Suggestion::of("copy --resume").with([option, board]);
    Fix::act(command).because("finish the move")
}
