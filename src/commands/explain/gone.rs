//! Explains a job that has left the board.

use super::{
    finding::{Code, Finding, Severity},
    scene::{Case, Scene, with_attempts},
};
use crate::job::{Departure, Job};

impl Scene {
    pub(super) fn trashed(&self, job: &Job, case: &Case<'_>) -> (Finding, bool) {
        let remark = job.history.remark.as_ref();
        let last = job.history.failures.last();
        let reason = job.history.reason();
        let reason = reason.or_else(|| last.map(|it| it.headline().into()));
        let why = reason
            .map(|reason| format!(": {reason}"))
            .unwrap_or_default();
        let mut finding = self.bad(Code::Trashed, format!("the job is in the trash{why}"));
        finding = finding.at("trashed", job.trashed_on, self.now);
        if let Some(remark) = remark {
            finding = finding.seen("by", &remark.by);
        }
        finding = with_attempts(finding, job, self.now);
        let text = "fix the cause, then retry the job";
        (self.mend(finding, case, text, &["retry"]), false)
    }

    pub(super) fn ended(&self, job: &Job) -> (Finding, bool) {
        let Some(ended) = &job.ended else {
            return (
                Finding::new(Code::Ended, Severity::Ok, "the job has left the board"),
                true,
            );
        };
        let (severity, how) = match ended.departure {
            Departure::Consumed if job.is_moved() => {
                (Severity::Ok, "the job continues on another board")
            }
            Departure::Consumed => (Severity::Ok, "the job is complete"),
            Departure::Failed => (Severity::Warning, "the job was consumed as failed"),
            Departure::Purged => (Severity::Ok, "the job was purged"),
        };
        let mut finding =
            Finding::new(Code::Ended, severity, how).at("ended", Some(ended.on), self.now);
        if let Some(remark) = &job.history.remark {
            finding = finding.seen("by", &remark.by);
            finding = match job.history.reason() {
                Some(reason) => finding.seen("reason", reason),
                None => finding,
            };
        }
        let is_well = ended.departure != Departure::Failed;
        (with_attempts(finding, job, self.now), is_well)
    }
}
