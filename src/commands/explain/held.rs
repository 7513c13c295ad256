//! Explains a claimed job.

use std::time::Duration;

use super::{
    finding::{Code, Finding, Severity},
    scene::{Case, Scene},
    takers::Taker,
};
use crate::{
    commands::parts::liveness::{is_copy_of_move, process_of},
    duration,
    job::{Entry, Holding, Job, Lease, Owner},
    process::living::has_ended,
};

/// The time left of a claim by hand that is worth a note.
const SOON: Duration = Duration::from_secs(10);

const OCTAVIA: &str = "octavia-task-flow-conductor-";

impl Scene {
    pub(super) fn held(&self, job: &Job, holding: &Holding, case: &Case<'_>) -> (Finding, bool) {
        let Some(owner) = &holding.owner else {
            let problem = job.problem.as_deref().unwrap_or("the owner cannot be read");
            let finding = self.bad(Code::LockBroken, problem);
            let text = "if no worker runs the job, release the claim";
            return (
                self.mend(finding, case, text, &["abandon", "--force"]),
                false,
            );
        };
        let taker = self.takers.iter().find(|taker| taker.is_named(owner));
        let finding = match taker {
            _ if is_copy_of_move(holding) => self.unfinished_move(job),
            Some(taker) => self.held_by_conductor(job, holding, taker, case),
            None => self.held_by_other(owner, holding, case),
        };
        let code = finding.code;
        let finding = finding
            .seen("owner", owner.text())
            .at("held", job.held_since(), self.now);
        let finding = match (holding.lease, holding.expires_in) {
            (Lease::None, _) => finding.seen("expires", "never"),
            (Lease::Session, _) => finding.seen("expires", "with the owner's session"),
            (Lease::Timed, left) => {
                let left = left.map(duration::brief).unwrap_or_default();
                finding.seen("expires", format!("in {left} unless renewed"))
            }
        };
        let lapses = holding.lease != Lease::None;
        let will_run = match code {
            Code::Held | Code::Lapsing => true,
            Code::HeldByDead => lapses,
            _ => false,
        };
        (self.mended(finding, (owner, taker, lapses), case), will_run)
    }

    fn unfinished_move(&self, job: &Job) -> Finding {
        let summary = "an unfinished move from another board holds the claim";
        let finding = self.bad(Code::UnfinishedMove, summary);
        let Some(from) = job.moved_from() else {
            return finding;
        };
        let command = self.command(&["copy", "--resume", "--from", from]);
        finding.seen("from", from).mend("finish the move", command)
    }

    /// Returns the fix for a claim of this owner.
    fn mended(
        &self,
        finding: Finding,
        (owner, taker, lapses): (&Owner, Option<&Taker>, bool),
        case: &Case<'_>,
    ) -> Finding {
        let free = &["abandon", "--force"][..];
        match finding.code {
            Code::HeldForever => {
                let text = format!("if {owner} is gone, release the claim");
                self.mend(finding, case, &text, free)
            }
            Code::HeldByDead if lapses => self.mend(
                finding,
                case,
                "wait until the claim expires, or release it now",
                free,
            ),
            Code::HeldByDead => self.mend(finding, case, "release the claim", free),
            Code::NotRenewed => match taker {
                Some(taker) => {
                    let command = self.command(&["conductors"]).operand(&taker.conductor.name);
                    finding.mend("restart the conductor; this shows its state", command)
                }
                None if owner.text().starts_with(OCTAVIA) => {
                    let text = "restart the octavia-worker whose log contains that name; after the \
                        claim expires, a second worker runs the job too";
                    self.mend(finding, case, text, &["show"])
                }
                None => {
                    let text = "restart the owner; after the claim expires, a second worker runs the job too";
                    self.mend(finding, case, text, &["show"])
                }
            },
            Code::Unsettled => self.mend(
                finding,
                case,
                "fix the cause; to remove the job",
                &["consume", "--force"],
            ),
            _ => finding,
        }
    }

    fn held_by_conductor(
        &self,
        job: &Job,
        holding: &Holding,
        taker: &Taker,
        case: &Case<'_>,
    ) -> Finding {
        let told = &taker.conductor.told;
        if taker.is_silent {
            let silence = taker.conductor.silence.map(duration::brief);
            let summary = format!(
                "the conductor that holds the claim is silent{}",
                silence.map(|it| format!(" for {it}")).unwrap_or_default()
            );
            return Finding::new(Code::HeldByDead, Severity::Warning, summary);
        }
        if let Some(stuck) = told.unsettled.iter().find(|it| it.uuid == job.reference()) {
            let reason = &stuck.reason;
            let summary =
                format!("the conductor ran the job but could not record its end: {reason}");
            return self.bad(Code::Unsettled, summary);
        }
        let least = taker.lease().map(|lease| lease / 3);
        if let Some(finding) = self.not_renewed(holding, least, case) {
            return finding;
        }
        match told.runs.iter().find(|run| run.uuid == job.reference()) {
            Some(run) => {
                let summary = "its command is running";
                let finding = Finding::new(Code::Held, Severity::Ok, summary);
                let finding = finding.at("started", Some(run.since), self.now);
                finding.seen("attempt", run.attempt.to_string())
            }
            None => Finding::new(
                Code::Held,
                Severity::Ok,
                "a running conductor holds the claim",
            ),
        }
    }

    fn held_by_other(&self, owner: &Owner, holding: &Holding, case: &Case<'_>) -> Finding {
        // The name contains a process of this machine.
        let process = process_of(&owner.text()).map(|(host, pid)| has_ended(host, pid, None));
        if process == Some(Some(true)) {
            let summary = "the owner's process on this machine no longer exists";
            return match holding.lease {
                Lease::None => self.bad(Code::HeldByDead, summary),
                _ => Finding::new(Code::HeldByDead, Severity::Warning, summary),
            };
        }
        if holding.lease == Lease::None {
            let summary = "the claim has no expiry and its owner is not a running conductor";
            return self.bad(Code::HeldForever, summary);
        }
        let quarter = self.octavia_expiry.unwrap_or_default().quarter();
        let is_of_octavia = owner.text().starts_with(OCTAVIA);
        if let Some(finding) = self.not_renewed(holding, is_of_octavia.then_some(quarter), case) {
            return finding;
        }
        match holding.expires_in {
            Some(left) if left < SOON && case.has_aged != Some(false) => {
                let left = duration::brief(left);
                let summary =
                    format!("the claim ends in {left} unless renewed; the job is then claimable");
                Finding::new(Code::Lapsing, Severity::Ok, summary)
            }
            _ if is_of_octavia => {
                let summary = "an Octavia worker holds the claim";
                Finding::new(Code::Held, Severity::Ok, summary)
            }
            _ => Finding::new(Code::Held, Severity::Ok, "the owner is not a conductor"),
        }
    }

    /// Reports a claim that has less time left than renewal allows, at both looks.
    fn not_renewed(
        &self,
        holding: &Holding,
        least: Option<Duration>,
        case: &Case<'_>,
    ) -> Option<Finding> {
        let (left, least) = (holding.expires_in?, least?);
        let is_late = left < least && case.has_aged != Some(false);
        is_late.then(|| {
            let (left, least) = (duration::brief(left), duration::brief(least));
            let summary = format!(
                "the owner stopped renewing: the claim ends in {left}, and a renewed claim never has \
                    less than {least}"
            );
            self.bad(Code::NotRenewed, summary)
        })
    }

    /// Whether the claim needs a second look.
    pub(super) fn is_doubtful(&self, entry: &Entry) -> bool {
        let Some(job) = entry.job() else { return false };
        let (Some(owner), Some(left)) = (
            job.owner(),
            job.holding.as_ref().and_then(|it| it.expires_in),
        ) else {
            return false;
        };
        let lease = self.takers.iter().find(|taker| taker.is_named(owner));
        let least = lease.and_then(Taker::lease).map_or(SOON, |lease| lease / 3);
        let of_octavia = owner
            .text()
            .starts_with(OCTAVIA)
            .then(|| self.octavia_expiry.unwrap_or_default().quarter());
        left < least.max(of_octavia.unwrap_or_default())
    }
}
