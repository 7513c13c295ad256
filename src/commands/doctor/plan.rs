//! The plan of `doctor --fix`: a step for each problem that a command repairs.

use serde::Serialize;
use serde_json::Value;

use crate::{
    commands::parts::problems::scope,
    exit::CommandError,
    output::{Page, Report, Tone, counted},
    problem::{Code, Problem, Repair, Risk},
    suggest::Suggestion,
};
#[derive(Debug, Clone, Serialize)]
pub(super) struct FixStep {
    pub(super) code: Code,
    pub(super) risk: Risk,
    pub(super) jobs: u64,
    pub(super) summary: String,
    pub(super) command: Suggestion,
    /// `planned`, `done`, `failed`, `stopped` (by Ctrl-C or its time limit) or `skipped`.
    pub(super) state: &'static str,
    #[serde(skip)]
    pub(super) repair: Repair,
    /// The value of `--problem` that selects the jobs.
    #[serde(skip)]
    pub(super) selector: String,
    #[serde(skip)]
    pub(super) advice: String,
    /// Whether the operator agreed to this step at a question.
    #[serde(skip)]
    pub(super) was_asked: bool,
    pub(super) message: Option<Value>,
}

impl FixStep {
    pub(super) fn has_canary(&self) -> bool {
        matches!(self.repair, Repair::Retry { canary: true })
    }

    pub(super) fn drop_canary(&mut self) {
        self.repair = Repair::Retry { canary: false };
        let words = self.command.words().iter().cloned();
        let words = words.take_while(|word| word != "--canary");
        self.command = Suggestion::default().with(words);
        self.advice += "; without a canary, because no conductor has a free slot";
    }
}

#[derive(Debug, Serialize)]
pub(super) struct FixPlan {
    #[serde(rename = "plan")]
    pub(super) steps: Vec<FixStep>,
}

impl FixPlan {
    pub(super) fn of(problems: &[Problem]) -> Self {
        let steps = problems.iter().filter_map(|it| {
            let fix = it.fix.as_ref()?;
            Some(FixStep {
                code: it.code,
                risk: fix.risk?,
                jobs: it.jobs,
                summary: scope(it),
                command: fix.command.clone()?,
                repair: fix.repair?,
                selector: it.selector.clone()?,
                state: "planned",
                advice: fix.text.clone().unwrap_or_default(),
                was_asked: false,
                message: None,
            })
        });
        Self::sorted(steps.collect())
    }

    fn sorted(mut steps: Vec<FixStep>) -> Self {
        // The other steps release jobs, which may take the slots that a canary needs.
        steps.sort_by_key(|it| (!it.has_canary(), it.risk));
        Self { steps }
    }

    fn count(&self, state: &str) -> usize {
        self.steps.iter().filter(|it| it.state == state).count()
    }

    pub(super) fn has_run(&self) -> bool {
        self.steps.iter().any(|it| it.state != "skipped")
    }

    /// Counts the steps, and names those that failed or stopped, with the command that continues each.
    pub(super) fn summary(&self) -> Vec<String> {
        let states = ["done", "failed", "stopped", "skipped"];
        let counts = states.map(|state| (self.count(state) as u64, state));
        let counts = format!("steps: {}", counted(counts));
        let steps = self.steps.iter().zip(1..);
        let open = steps.filter(|(it, _)| ["failed", "stopped"].contains(&it.state));
        let open = open.flat_map(|(step, number)| {
            let (state, summary) = (step.state, &step.summary);
            let step_in_words = format!("step {number} {state} ({summary}); to continue:");
            [step_in_words, format!("   {}", step.command)]
        });
        [counts].into_iter().chain(open).collect()
    }

    pub(super) fn result(&self) -> anyhow::Result<()> {
        CommandError::partly("steps", self.count("failed"), self.steps.len())
    }
}

impl Report for FixPlan {
    fn human(&self, page: &mut Page) {
        for (at, step) in self.steps.iter().enumerate() {
            let tone = match step.risk {
                Risk::Safe => Tone::Good,
                Risk::Decision => Tone::Warning,
                Risk::Destructive => Tone::Bad,
            };
            let line = page.sentence(3).plain(format!("{}. ", at + 1));
            let line = line.add(tone, step.risk.name());
            line.plain(format!("  {}", step.summary));
            page.command("   ", &step.command);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(repair: Repair, risk: Risk, command: &'static str) -> FixStep {
        FixStep {
            code: Code::Failed,
            risk,
            jobs: 2,
            summary: "failed: 2 jobs".to_owned(),
            command: Suggestion::of(command),
            state: "planned",
            repair,
            selector: "failed".to_owned(),
            advice: "after fixing the cause".to_owned(),
            was_asked: false,
            message: None,
        }
    }

    #[test]
    fn canary_takes_its_slot_before_jobs_are_released() {
        let release = Repair::Abandon { now: false };
        let canary = Repair::Retry { canary: true };
        let plan = FixPlan::sorted(vec![
            step(release, Risk::Safe, "abandon --problem owner-dead"),
            step(canary, Risk::Decision, "retry --problem failed --canary 1"),
            step(Repair::Retry { canary: false }, Risk::Decision, "retry"),
        ]);
        let first: Vec<_> = plan.steps.iter().map(|it| &it.command.words()[0]).collect();
        assert_eq!(first, ["retry", "abandon", "retry"]);
        assert!(plan.steps[0].has_canary());
    }

    #[test]
    fn retry_without_a_slot_needs_no_canary() {
        let canary = Repair::Retry { canary: true };
        let mut step = step(canary, Risk::Decision, "retry --problem failed --canary 1");
        step.drop_canary();
        assert!(!step.has_canary());
        assert_eq!(step.command.to_string(), "retry --problem failed");
        assert!(step.advice.contains("no conductor has a free slot"));
    }
}
