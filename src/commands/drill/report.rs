//! The report of a drill.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::output::{Page, Report, Tone, count_jobs};

#[derive(Debug, Serialize)]
pub(super) struct DrillReport {
    pub(super) board: String,
    pub(super) jobs: usize,
    /// In seconds, as all durations here.
    pub(super) lease: f64,
    pub(super) crash: Pickups,
    pub(super) stop: Pickups,
    pub(super) stopped_for: f64,
    /// Results of the stopped conductor that the board refused; `None` if the board does not show it.
    pub(super) refused: Option<u64>,
    pub(super) finished: usize,
    pub(super) finished_twice: usize,
    pub(super) finished_by_former_owner: usize,
    pub(super) lost: usize,
    pub(super) events_missed: usize,
    pub(super) took_over: BTreeSet<String>,
}

/// The jobs of a failed conductor, and the time until others claimed them.
#[derive(Debug, Serialize)]
pub(super) struct Pickups {
    pub(super) conductor: String,
    pub(super) jobs: usize,
    pub(super) picked_up: usize,
    pub(super) p50: Option<f64>,
    pub(super) max: Option<f64>,
}

impl DrillReport {
    pub(super) fn works(&self) -> bool {
        let wrong = self.finished_twice + self.finished_by_former_owner + self.lost;
        let is_whole = self.crash.is_whole() && self.stop.is_whole();
        is_whole && wrong == 0 && self.finished == self.jobs
    }

    fn problems(&self) -> Vec<String> {
        let counted = |count: usize, what: &str| {
            (count > 0).then(|| format!("{} {what}", count_jobs(count as u64)))
        };
        let waiting = |it: &Pickups| it.jobs - it.picked_up;
        let left = waiting(&self.crash) + waiting(&self.stop);
        let problems = [
            counted(self.lost, "lost"),
            counted(self.finished_twice, "finished twice"),
            counted(
                self.finished_by_former_owner,
                "finished by a conductor that no longer owned them",
            ),
            counted(left, "not taken over"),
            counted(
                self.jobs - self.finished.min(self.jobs),
                "not finished in time",
            ),
        ];
        problems.into_iter().flatten().collect()
    }
}

impl Pickups {
    fn is_whole(&self) -> bool {
        self.jobs > 0 && self.picked_up == self.jobs
    }

    fn line(&self, deed: &str) -> String {
        let Self {
            conductor, jobs, ..
        } = self;
        let jobs = count_jobs(*jobs as u64);
        match (self.p50, self.max) {
            (Some(p50), Some(max)) => format!(
                "{deed} {conductor} with {jobs}: taken over after {p50:.1}s (median), {max:.1}s at most"
            ),
            _ => format!("{deed} {conductor} with {jobs}: not taken over"),
        }
    }
}

impl Report for DrillReport {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.fact("crash", self.crash.line("killed"));
        page.fact("stop", self.stop.line("stopped"));
        let refused = match self.refused {
            Some(refused) => format!("{refused} of its results came too late and were refused"),
            None => "whether its results were refused is unknown".to_owned(),
        };
        page.fact(
            "",
            format!("continued after {:.1}s; {refused}", self.stopped_for),
        );
        page.fact(
            "jobs",
            format!("{} of {} finished", self.finished, self.jobs),
        );
        let by: Vec<_> = self.took_over.iter().map(String::as_str).collect();
        if !by.is_empty() {
            page.fact("taken by", by.join(", "));
        }
        page.fact(
            "events",
            match self.events_missed {
                0 => "a subscriber saw all of them".to_owned(),
                missed => format!("a subscriber missed some of {}", count_jobs(missed as u64)),
            },
        );
        page.line();
        match self.works() {
            true => {
                let line = page.sentence(0).add(Tone::Good, "failover works");
                line.plain(
                    ": no job was lost or finished twice, and a former owner could not finish any.",
                );
            }
            false => {
                let line = page.sentence(0).add(Tone::Bad, "failover does not work");
                line.plain(format!(": {}.", self.problems().join(", ")));
            }
        }
    }
}
