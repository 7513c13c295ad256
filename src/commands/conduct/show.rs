//! Shows what a conductor tells, on a thread of its own: a reader who is slow must not hold it up.

use std::{io, thread};

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;

use crate::{
    conductor::progress::{Note, Progress, Stream},
    output::{Console, Output, Side, Text, Tone},
};

/// How many columns each fact keeps on a narrow terminal.
const SHORTEST: usize = 12;

/// The form in which is told what happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// A line each, for people
    Text,
    /// An object a line
    Json,
}

impl LogFormat {
    /// Returns the form that goes with how results are written.
    pub(super) fn suiting(out: &Output) -> Self {
        match out.is_json() {
            true => Self::Json,
            false => Self::Text,
        }
    }
}

/// Starts to show what arrives.
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
        // Whoever watches knows the day, and a line that is broken is hard to read.
        (LogFormat::Text, Some(room)) => {
            console.note(&words(now.format("%H:%M:%SZ").to_string(), note, room));
        }
    }
}

/// Words a note as a line; what does not fit is left out of the middle of its longest facts.
fn words(time: String, note: &Note, room: usize) -> [(Tone, Text); 3] {
    let tone = match is_bad(note) {
        true => Tone::Bad,
        false => Tone::Plain,
    };
    let job = note.job.as_ref().map(|job| format!(" {job}"));
    let facts = note.facts.iter().map(|(name, value)| match value {
        Value::String(text) if !text.contains([' ', '"', '=']) => format!(" {name}={text}"),
        value => format!(" {name}={value}"),
    });
    let mut rest: Vec<Text> = job.into_iter().chain(facts).map(Text::from).collect();
    let begin = time.len() + 1 + note.event.len();
    let width = |rest: &[Text]| begin + rest.iter().map(Text::width).sum::<usize>();
    while width(&rest) > room {
        let surplus = width(&rest) - room;
        let longest = rest.iter_mut().max_by_key(|part| part.width());
        let Some(longest) = longest.filter(|part| part.width() > SHORTEST) else {
            break;
        };
        *longest = longest.shortened(SHORTEST.max(longest.width().saturating_sub(surplus)));
    }
    let rest: String = rest.iter().map(Text::as_str).collect();
    [
        (Tone::Faint, Text::from(time + " ")),
        (tone, Text::from(note.event)),
        (Tone::Plain, Text::from(rest)),
    ]
}

/// Whether a note tells of a failure, so that it has to stand out.
fn is_bad(note: &Note) -> bool {
    let tells = |fact: &str| note.facts.iter().any(|(name, _)| *name == fact);
    match note.event {
        "board_unreachable" | "claim_lost" | "missed" | "not_settled" | "not_watched"
        | "output_not_kept" | "job_trashed" => true,
        "job_abandoned" => tells("reason"),
        _ => tells("failure"),
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
    for (name, value) in &note.facts {
        object.insert((*name).to_owned(), value.clone());
    }
    Value::Object(object)
}
