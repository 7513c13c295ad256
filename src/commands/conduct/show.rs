//! Shows what a conductor tells, on a thread of its own: a reader who is slow must not hold it up.

use std::{io, thread};

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;

use crate::{
    conductor::progress::{Note, Progress, Stream},
    output::{Console, Output, Side, Text, Tone},
    secret::covered_text,
};

/// How many columns a text that is told keeps on a narrow terminal.
const SHORTEST: usize = 20;

/// The log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// One line per event, for people
    Text,
    /// One JSON object per event; --output may add lines of commands
    Json,
}

impl LogFormat {
    pub(super) fn suiting(out: &Output) -> Self {
        match out.is_json() {
            true => Self::Json,
            false => Self::Text,
        }
    }
}

pub(super) fn start(
    progress: Receiver<Progress>,
    format: LogFormat,
    out: &Output,
) -> io::Result<()> {
    let console = Console::new(out.colours_errors());
    let tells = !out.is_quiet();
    // Not waited for: whoever told the last of it waits for that to have been shown.
    thread::Builder::new()
        .name("show".to_owned())
        .spawn(move || show(console, progress, format, tells))?;
    Ok(())
}

fn show(mut console: Console, mut progress: Receiver<Progress>, format: LogFormat, tells: bool) {
    while let Some(mut next) = progress.blocking_recv() {
        // What has come together goes out together.
        loop {
            match next {
                Progress::Note(note) => tell(&mut console, format, &note),
                Progress::Line { job, stream, text } => {
                    let side = match stream {
                        Stream::Output => Side::Output,
                        Stream::Errors => Side::Errors,
                    };
                    console.line(side, &Text::from(job.to_string()), &text);
                }
                // A disk that is full stops no job.
                Progress::Bytes(log, bytes) => {
                    if let Some(note) = log.write(&bytes).filter(|_| tells) {
                        tell(&mut console, format, &note);
                    }
                }
                Progress::Missed(count) => {
                    tell(
                        &mut console,
                        format,
                        &Note::new("missed").with("notes", count),
                    );
                }
                Progress::End(shown) => {
                    console.flush();
                    // Nobody may be waiting any more.
                    let _ = shown.send(());
                    return;
                }
            }
            match progress.try_recv() {
                Ok(more) => next = more,
                Err(_) => break,
            }
        }
        console.flush();
    }
}

fn tell(console: &mut Console, format: LogFormat, note: &Note) {
    let now = Utc::now();
    let time = || now.to_rfc3339_opts(SecondsFormat::Millis, true);
    match (format, console.room()) {
        (LogFormat::Json, _) => console.object(&object(time(), note)),
        (LogFormat::Text, None) => console.note(&words(time(), note, usize::MAX)),
        // The last thing that is said is said whole.
        (LogFormat::Text, Some(_)) if note.event == "summary" => {
            console.note(&words(
                now.format("%H:%M:%SZ").to_string(),
                note,
                usize::MAX,
            ));
        }
        // Whoever watches knows the day, and a line that is broken is hard to read.
        (LogFormat::Text, Some(room)) => {
            console.note(&words(now.format("%H:%M:%SZ").to_string(), note, room));
        }
    }
}

/// Words a note as a line that fits: its texts lose their middle, and then it its last facts.
fn words(time: String, note: &Note, room: usize) -> [(Tone, Text); 3] {
    let tone = match is_bad(note) {
        true => Tone::Bad,
        false => Tone::Plain,
    };
    let job = note.job.as_ref();
    let job = job.map(|job| Part::new("", job.to_string(), true));
    let facts = note.facts.iter().map(|fact| match (fact.0, told(fact)) {
        (name, Value::String(text)) if !text.contains([' ', '"', '=']) => {
            Part::new(name, text, false)
        }
        (name, value) => Part::new(
            name,
            value.to_string(),
            value.is_string() || value.is_object(),
        ),
    });
    let mut rest: Vec<_> = job.into_iter().chain(facts).collect();
    let begin = time.len() + 1 + note.event.len();
    let end = fit(&mut rest, room.saturating_sub(begin));
    let rest: String = rest.iter().map(Part::text).collect();
    [
        (Tone::Faint, Text::from(time + " ")),
        (tone, Text::from(note.event)),
        (Tone::Plain, Text::from(rest + end)),
    ]
}

struct Part {
    name: String,
    value: Text,
    /// Whether it still says something when a part of it is left out.
    gives_way: bool,
}

impl Part {
    fn new(name: &str, value: impl AsRef<str>, gives_way: bool) -> Self {
        let name = match name {
            "" => " ".to_owned(),
            name => format!(" {name}="),
        };
        Self {
            name,
            value: Text::from(value),
            gives_way,
        }
    }

    fn width(&self) -> usize {
        self.name.len() + self.value.width()
    }

    fn text(&self) -> String {
        format!("{}{}", self.name, self.value)
    }
}

/// Makes parts fit, and returns what stands for those at the end that are left out.
fn fit(parts: &mut Vec<Part>, room: usize) -> &'static str {
    let mut end = "";
    loop {
        let width = parts.iter().map(Part::width).sum::<usize>() + Text::from(end).width();
        let surplus = width.saturating_sub(room);
        if surplus == 0 {
            return end;
        }
        let longest = parts.iter_mut().filter(|part| part.gives_way);
        let longest = longest.max_by_key(|part| part.value.width());
        if let Some(part) = longest.filter(|part| part.value.width() > SHORTEST) {
            let left = part.value.width().saturating_sub(surplus);
            part.value = part.value.shortened(SHORTEST.max(left));
        } else if parts.len() > 1 {
            parts.pop();
            end = " …";
        } else {
            return end;
        }
    }
}

fn is_bad(note: &Note) -> bool {
    let tells = |fact: &str| note.facts.iter().any(|(name, _)| *name == fact);
    match note.event {
        "board_unreachable" | "claim_lost" | "missed" | "not_remembered" | "not_settled"
        | "not_notified" | "not_reloaded" | "not_started" | "not_watched" | "output_not_kept"
        | "job_trashed" => true,
        "job_abandoned" => tells("reason"),
        _ => tells("failure"),
    }
}

/// Returns a fact as it is told: nobody knows what a command writes, and who keeps the log.
fn told((name, value): &(&'static str, Value)) -> Value {
    match value {
        Value::String(said) if matches!(*name, "stdout" | "stderr") => covered_text(said).into(),
        value => value.clone(),
    }
}

fn object(time: String, note: &Note) -> Value {
    let mut object = Map::new();
    object.insert("time".to_owned(), json!(time));
    object.insert("event".to_owned(), json!(note.event));
    if let Some(job) = &note.job {
        object.insert("uuid".to_owned(), json!(job.uuid));
        object.insert("name".to_owned(), json!(job.name));
    }
    for fact in &note.facts {
        object.insert(fact.0.to_owned(), told(fact));
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_fits_and_no_fact_is_left_in_part() {
        let note = Note::new("job_abandoned")
            .with("attempts", 3)
            .with(
                "reason",
                "exit code 3, and more than that is not known of it here",
            )
            .with("not_before", "2026-11-22T03:04:05.123456Z")
            .with("again", true);
        let line = |room| {
            let parts = words("03:04:05Z".to_owned(), &note, room);
            parts.map(|(_, text)| text.as_str().to_owned()).concat()
        };
        for room in 30..200 {
            let line = line(room);
            assert!(Text::from(&line).width() <= room.max(45), "{room}: {line}");
            let facts = line.split_once("attempts=3").unwrap().1;
            let is_whole = facts.contains(" not_before=2026-11-22T03:04:05.123456Z");
            assert!(is_whole || !facts.contains("not_b"), "{room}: {line}");
        }
        assert_eq!(
            line(80),
            "03:04:05Z job_abandoned attempts=3 reason=\"exit code… it here\" …"
        );
    }
}
