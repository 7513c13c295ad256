//! Prometheus metrics in text format 0.0.4.

use chrono::{DateTime, Utc};
use indexmap::IndexMap;

use super::{Text, text::ends};

const MAX_LABEL_CHARS: usize = 100;

const FAMILIES: &str = "\
jobboard_up gauge 1 if the board could be read, otherwise 0.
jobboard_scrape_duration_seconds gauge Time it took to read the board.
jobboard_scrape_timestamp_seconds gauge Time at which the board was read.
jobboard_info gauge Version of jobboard and of the server; always 1.
jobboard_jobs gauge Jobs on the board and in the trash, and unreadable records, by state.
jobboard_jobs_claimable gauge Unclaimed jobs that can be claimed now.
jobboard_jobs_paused gauge Unclaimed jobs with a paused name.
jobboard_jobs_backing_off gauge Unclaimed jobs that are backing off.
jobboard_jobs_older_than gauge Claimable jobs older than the given number of seconds.
jobboard_oldest_unclaimed_seconds gauge Age of the oldest unclaimed job; 0 without one.
jobboard_longest_claim_seconds gauge Age of the oldest claim; 0 without one.
jobboard_jobs_with_problem gauge Jobs on the board with this problem, as `jobboard doctor` names it.
jobboard_problems gauge Problems by code, as `jobboard doctor` lists them, also those that are about no job.
jobboard_conductors_seen gauge 1 if the registry of conductors could be read, otherwise 0; the metrics of \
    conductors are then missing.
jobboard_conductors gauge Registered conductors by state: alive or silent.
jobboard_slots_free gauge Free slots of all live conductors.
jobboard_load_balancers_seen gauge 1 if Octavia's database could be read, otherwise 0; the metrics of load \
    balancers are then missing.
jobboard_load_balancers_pending gauge Pending load balancers by verdict, as `jobboard mend` names it.
jobboard_load_balancers_pending_older_than gauge Load balancers pending for more than the given number of seconds.
jobboard_conductor_running gauge Jobs that run now.
jobboard_conductor_slots gauge Maximum number of jobs that run concurrently.
jobboard_conductor_start_time_seconds gauge Start time of the conductor.
jobboard_conductor_last_board_contact_timestamp_seconds gauge Time of the last successful request to the board.
jobboard_conductor_claims_total counter Claimed jobs.
jobboard_conductor_runs_total counter Finished attempts by outcome and job name.
jobboard_conductor_run_duration_seconds histogram Run time of commands.
jobboard_conductor_wait_seconds histogram Time from posting to the first claim.
jobboard_conductor_renewals_total counter Requests to renew claims, by result.
jobboard_conductor_renewal_lateness_seconds gauge Delay of the last renewal after its due time.
jobboard_conductor_board_reconnects_total counter Reconnections to the board.
process_cpu_seconds_total counter CPU time of the conductor, without its commands.
process_resident_memory_bytes gauge Resident memory of the conductor, without its commands.
process_open_fds gauge Open files of the conductor.
";

#[derive(Debug)]
pub(crate) struct Exposition {
    labels: Vec<String>,
    families: Vec<Family>,
}

#[derive(Debug)]
pub(crate) struct Family {
    name: &'static str,
    head: String,
    shared: Vec<String>,
    figures: IndexMap<String, f64>,
}

impl Exposition {
    pub(crate) fn new(labels: &[(&'static str, &str)]) -> Self {
        Self {
            labels: written(labels).collect(),
            families: Vec::new(),
        }
    }

    pub(crate) fn family(&mut self, name: &'static str) -> &mut Family {
        if let Some(at) = self.families.iter().position(|it| it.name == name) {
            return &mut self.families[at];
        }
        let mut lines = FAMILIES.lines();
        let known = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let (kind, help) = known
            .and_then(|it| it.split_once(' '))
            .unwrap_or(("untyped", ""));
        let at = self.families.len();
        self.families.push(Family {
            name,
            head: format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"),
            shared: self.labels.clone(),
            figures: IndexMap::new(),
        });
        &mut self.families[at]
    }

    pub(crate) fn value(&mut self, name: &'static str, value: f64) {
        self.family(name).add(&[], value);
    }

    pub(crate) fn into_text(self) -> String {
        let mut text = String::new();
        for family in self.families {
            text += &family.head;
            for (labels, value) in family.figures {
                text += &format!("{}{labels} {value}\n", family.name);
            }
        }
        text
    }
}

impl Family {
    pub(crate) fn histogram(&mut self, within: &[(f64, u64)], count: u64, sum: f64) {
        let bounds = within
            .iter()
            .map(|(most, count)| (most.to_string(), *count));
        for (most, count) in bounds.chain([("+Inf".to_owned(), count)]) {
            self.figure("_bucket", &[("le", &most)], count as f64);
        }
        self.figure("_sum", &[], sum);
        self.figure("_count", &[], count as f64);
    }

    /// Adds a value. Values with equal labels, perhaps after cutting, are summed.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        self.figure("", labels, value);
    }

    fn figure(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<_> = self.shared.iter().cloned().chain(written(labels)).collect();
        let figure = match labels.is_empty() {
            true => suffix.to_owned(),
            false => format!("{suffix}{{{}}}", labels.join(",")),
        };
        *self.figures.entry(figure).or_default() += value;
    }
}

fn written(labels: &[(&str, &str)]) -> impl Iterator<Item = String> {
    labels.iter().map(|(name, value)| {
        let value = label(value).replace('\\', "\\\\").replace('"', "\\\"");
        format!("{name}=\"{value}\"")
    })
}

pub(crate) fn timestamp(time: DateTime<Utc>) -> f64 {
    time.timestamp_micros() as f64 / 1e6
}

/// Returns a valid label value for foreign text. Different texts may become equal.
fn label(text: &str) -> String {
    Text::from(ends(text, MAX_LABEL_CHARS)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_stays_within_its_label() {
        let mut exposition = Exposition::new(&[("board", "a\"b\\c\n")]);
        let family = exposition.family("jobboard_jobs_paused");
        family.add(&[("name", "\u{1b}[2J\"} 1\n# x")], 0.25);
        family.add(&[], 3.0);
        exposition.value("jobboard_up", 1.0);
        insta::assert_snapshot!(exposition.into_text(), @r##"
        # HELP jobboard_jobs_paused Unclaimed jobs with a paused name.
        # TYPE jobboard_jobs_paused gauge
        jobboard_jobs_paused{board="a\"b\\\\c\\n",name="\\u{1b}[2J\"} 1\\n# x"} 0.25
        jobboard_jobs_paused{board="a\"b\\\\c\\n"} 3
        # HELP jobboard_up 1 if the board could be read, otherwise 0.
        # TYPE jobboard_up gauge
        jobboard_up{board="a\"b\\\\c\\n"} 1
        "##);
    }

    #[test]
    fn family_that_is_named_again_has_one_head() {
        let mut exposition = Exposition::new(&[]);
        for verdict in ["stuck", "running"] {
            let family = exposition.family("jobboard_load_balancers_pending");
            family.add(&[("verdict", verdict)], 1.0);
            exposition.value("jobboard_up", 1.0);
        }
        let text = exposition.into_text();
        assert_eq!(text.matches("# TYPE").count(), 2, "{text}");
    }

    #[test]
    fn label_length_is_limited() {
        assert_eq!(label(&"x".repeat(10_000)).chars().count(), MAX_LABEL_CHARS);
    }
}
