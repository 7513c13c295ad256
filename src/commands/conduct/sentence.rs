//! Words a conductor's log as human-readable sentences.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::{conductor::log::Note, duration, output::Text};

/// The columns that a reason keeps on a narrow terminal.
const MIN_REASON: usize = 20;

/// Sentences for events; a `!` marks bad news. The first one applies whose `{...}` are all known; a reason without a
/// place follows it.
const SENTENCES: &str = "
    !job_consumed: {name} failed ({reason}), consumed
    job_consumed: {name} done in {took}
    job_consumed: {name} done
    !job_abandoned: {name} failed ({reason}); attempt {next} of {max_attempts} starts in {delay}
    job_abandoned: {name} released, attempt not counted
    job_postponed: {name} postponed, retry in {delay}
    !job_trashed: {name} failed ({reason}), moved to the trash
    running_start: {name} started, attempt {attempt}
    running: {name} running for {took}, attempt {attempt}
    !claim_lost: {name}: claim lost, command ended
    !not_settled: cannot {wanted} {name}, retrying
    !left_claimed: did not {wanted} {name}; its claim expires
    !not_started: {name} not started, retrying later
    !not_watched: {name} not started, retrying later: no guard process
    !not_watched: no guard process, so no command starts
    !output_not_kept: {name}: output dropped
    !output_not_kept: output dropped
    skipped: skipping jobs such as {example} ({jobs})
    waiting: waiting for the owner of {example} ({jobs})
    delayed: waiting for delayed jobs; the first may start in {delay} ({jobs})
    held_without_expiry: not waiting for claims that never expire ({jobs})
    conducting: conductor {conductor} runs jobs from {board}, {jobs} at a time
    stopping: stopping; running jobs have {grace} to finish ({jobs})
    name_taken: another conductor is named {conductor}; waiting up to {waiting} for its name
    lease_granted: the server grants leases of {granted}, not of {wanted}
    !board_unreachable: board unreachable, retrying
    !board_failed: board failing, retrying
    board_reached: board reachable again
    pauses_unseen: cannot read pauses, so none applies
    quiet: quiet: claiming no jobs until the next SIGUSR1
    quiet_over: claiming jobs again
    reloaded: configuration reloaded; restart to apply {needs_restart}
    reloaded: configuration reloaded
    !not_reloaded: configuration not reloaded
    !not_remembered: cannot write the history of the board
    !not_notified: cannot reach the service manager
    metrics: serving metrics on {address}
    !metrics_not_written: metrics not written
    !missed: the reader of the log is too slow: {notes} events dropped
";

#[derive(Debug, Default)]
pub(super) struct Sentence {
    head: String,
    reason: String,
    tail: String,
    job: String,
    pub(super) is_bad: bool,
}

impl Sentence {
    /// Returns the lines of an event. The end of a command has none: the line about the job follows.
    pub(super) fn of(note: &Note, now: DateTime<Utc>) -> Vec<Self> {
        let about = |counts| Self {
            head: counted(note, counts),
            ..Self::default()
        };
        match note.event {
            "running_end" => Vec::new(),
            "state" => vec![about("running done failed postponed lost unsettled")],
            "summary" => {
                let counts = about("ran consumed abandoned trashed lost unsettled skipped");
                [counts].into_iter().chain(failed(note)).collect()
            }
            event => {
                let mut known = SENTENCES.lines().filter_map(|line| {
                    let (name, template) = line.trim_start().split_once(": ")?;
                    let (name, is_bad) = name
                        .strip_prefix('!')
                        .map_or((name, false), |it| (it, true));
                    let sentence = (name == event).then(|| Self::filled(template, note, now))??;
                    Some(Self { is_bad, ..sentence })
                });
                let plain = || Self::ending(event.replace('_', " "), note);
                vec![known.next().unwrap_or_else(plain)]
            }
        }
    }

    fn filled(template: &str, note: &Note, now: DateTime<Utc>) -> Option<Self> {
        let fill = |template: &str| {
            let mut pieces = template.split(['{', '}']).enumerate();
            pieces.try_fold(String::new(), |text, (at, piece)| {
                Some(match at % 2 {
                    0 => text + piece,
                    _ => text + &value(note, piece, now)?,
                })
            })
        };
        let sentence = match template.split_once("{reason}") {
            Some((head, tail)) => Self {
                head: fill(head)?,
                reason: value(note, "reason", now)?,
                tail: fill(tail)?,
                ..Self::default()
            },
            None => Self::ending(fill(template)?, note),
        };
        let id = note.job.as_ref().and_then(|job| job.uuid.split('-').next());
        let job = id.map_or_else(String::new, |id| format!("  {id}"));
        Some(Self { job, ..sentence })
    }

    fn ending(mut head: String, note: &Note) -> Self {
        let reason = text(note, "reason").unwrap_or_default();
        head += if reason.is_empty() { "" } else { ": " };
        Self {
            head,
            reason,
            tail: text(note, "hint").map_or_else(String::new, |hint| format!("; {hint}")),
            ..Self::default()
        }
    }

    pub(super) fn within(self, room: Option<usize>) -> (Text, String) {
        let [head, reason, tail] = [self.head, self.reason, self.tail].map(Text::from);
        let others = head.width() + tail.width() + self.job.len();
        let most = room.map_or(usize::MAX, |room| room.saturating_sub(others));
        let reason = reason.shortened(most.max(MIN_REASON));
        (Text::from(format!("{head}{reason}{tail}")), self.job)
    }
}

fn failed(note: &Note) -> Option<Sentence> {
    let names = note.fact("failed_jobs")?.as_array()?;
    let more = note
        .fact("failed")?
        .as_u64()?
        .saturating_sub(names.len() as u64);
    let names: Vec<_> = names.iter().filter_map(Value::as_str).collect();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let (names, next) = (names.join(", "), text(note, "next")?);
    Some(Sentence {
        head: format!("failed: {names}{more}; next: {next}"),
        ..Sentence::default()
    })
}

/// Returns the counts of an event: the first one always, the others unless they are 0.
fn counted(note: &Note, names: &str) -> String {
    let counts = names.split(' ').enumerate().filter_map(|(at, name)| {
        let count = note.fact(name)?.as_u64()?;
        let name = match name {
            "ran" if count == 1 => "command run",
            "ran" => "commands run",
            "abandoned" => "put back for a retry",
            name => name,
        };
        (at == 0 || count > 0).then(|| format!("{count} {name}"))
    });
    counts.collect::<Vec<_>>().join(", ")
}

fn value(note: &Note, name: &str, now: DateTime<Utc>) -> Option<String> {
    match name {
        "name" => Some(note.job.as_ref()?.name.clone()),
        "next" => Some((note.fact("attempt")?.as_u64()? + 1).to_string()),
        "took" => Some(brief(note.fact("seconds")?.as_f64()?)),
        "delay" => {
            let until = DateTime::parse_from_rfc3339(&text(note, "not_before")?).ok()?;
            let wait = (until.to_utc() - now).as_seconds_f64().max(0.0);
            Some(brief(if wait < 0.95 { wait } else { wait.round() }))
        }
        name => text(note, name),
    }
}

fn text(note: &Note, name: &str) -> Option<String> {
    Some(match note.fact(name)? {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    })
}

fn brief(seconds: f64) -> String {
    duration::brief(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::conductor::log::Tag;

    fn lines(note: &Note, room: Option<usize>) -> Vec<String> {
        let now = "2026-11-22T03:04:05Z".parse().unwrap();
        let lines = Sentence::of(note, now).into_iter();
        let line = |it: Sentence| {
            let (text, job) = it.within(room);
            format!("{text}{job}")
        };
        lines.map(line).collect()
    }

    fn failed() -> Note {
        let job = Tag {
            uuid: "1f0c9a58-0000-4000-8000-000000000000".to_owned(),
            name: "three".to_owned(),
        };
        Note::new("job_abandoned")
            .of(&Arc::new(job))
            .with("attempt", 2)
            .with("max_attempts", 5)
            .with("reason", "exit 3: disk full, and nothing was written")
            .with("not_before", "2026-11-22T03:04:06.990Z")
    }

    #[test]
    fn failure_names_reason_and_next_attempt() {
        assert_eq!(
            lines(&failed(), None),
            [
                "three failed (exit 3: disk full, and nothing was written); attempt 3 of 5 starts in 2s  \
                 1f0c9a58"
            ]
        );
    }

    #[test]
    fn long_reason_is_shortened_to_the_width_of_the_terminal() {
        for room in 30..120 {
            let line = &lines(&failed(), Some(room))[0];
            let (width, shortest) = (Text::from(line).width(), 78);
            assert!(width <= room.max(shortest), "{room}: {line}");
            assert!(
                line.ends_with("); attempt 3 of 5 starts in 2s  1f0c9a58"),
                "{line}"
            );
        }
    }

    #[test]
    fn summary_names_failed_jobs_and_the_next_command() {
        let note = Note::new("summary")
            .with("ran", 9)
            .with("consumed", 2)
            .with("lost", 0)
            .with("failed", 7)
            .with("failed_jobs", json!(["a", "b", "c", "d", "e"]))
            .with("next", "jobboard list --failed");
        assert_eq!(
            lines(&note, Some(40)),
            [
                "9 commands run, 2 consumed",
                "failed: a, b, c, d, e and 2 more; next: jobboard list --failed"
            ]
        );
    }
}
