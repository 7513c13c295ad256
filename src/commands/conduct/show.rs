//! Prints the log of a conductor, on a thread of its own: a slow reader must not delay the conductor.

use std::{
    io::{self, IsTerminal as _},
    thread,
};

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;

use super::sentence::Sentence;
use crate::{
    conductor::log::{LogItem, Note, OutputStream},
    output::{Console, Output, Side, Text, Tone},
    secret::covered_text,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LogFormat {
    /// text on a terminal, otherwise logfmt; json if --json is given
    #[default]
    Auto,
    /// Human-readable sentences
    Text,
    /// One JSON object per event; with some --output values, mixed with command output
    Json,
    /// One line of KEY=VALUE per event
    Logfmt,
}

impl LogFormat {
    fn on(self, out: &Output) -> Self {
        match self {
            Self::Auto if out.is_json() => Self::Json,
            Self::Auto if io::stderr().is_terminal() => Self::Text,
            Self::Auto => Self::Logfmt,
            format => format,
        }
    }
}

pub(super) fn start(
    progress: Receiver<LogItem>,
    format: LogFormat,
    out: &Output,
) -> io::Result<()> {
    let console = Console::new(out.colours_errors());
    let (format, is_loud) = (format.on(out), !out.is_quiet());
    // Not joined: the sender of the last event waits until it has been printed.
    thread::Builder::new()
        .name("show".to_owned())
        .spawn(move || show(console, progress, format, is_loud))?;
    Ok(())
}

fn show(mut console: Console, mut progress: Receiver<LogItem>, format: LogFormat, is_loud: bool) {
    while let Some(mut next) = progress.blocking_recv() {
        // Events that arrived together are written together.
        loop {
            match next {
                LogItem::Note(note) => print(&mut console, format, &note),
                LogItem::Line { job, stream, text } => {
                    let side = match stream {
                        OutputStream::Output => Side::Output,
                        OutputStream::Errors => Side::Errors,
                    };
                    console.line(side, &Text::from(job.to_string()), &text);
                }
                // A full disk stops no job.
                LogItem::Bytes(log, bytes) => {
                    if let Some(note) = log.write(&bytes).filter(|_| is_loud) {
                        print(&mut console, format, &note);
                    }
                }
                LogItem::Missed(count) => {
                    let note = Note::new("missed").with("notes", count);
                    print(&mut console, format, &note);
                }
                LogItem::End(shown) => {
                    console.flush();
                    // The receiver may have timed out.
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

fn print(console: &mut Console, format: LogFormat, note: &Note) {
    let now = Utc::now();
    let time = || now.to_rfc3339_opts(SecondsFormat::Millis, true);
    match format {
        LogFormat::Json => console.object(&object(time(), note)),
        LogFormat::Auto | LogFormat::Logfmt => {
            console.note(&[(Tone::Plain, Text::from(logfmt(&object(time(), note))))]);
        }
        LogFormat::Text => {
            let room = console.room();
            // A terminal user knows the day.
            let time = match room {
                Some(_) => now.format("%H:%M:%SZ").to_string(),
                None => time(),
            };
            for sentence in Sentence::of(note, now) {
                let tone = match sentence.is_bad {
                    true => Tone::Bad,
                    false => Tone::Plain,
                };
                let (text, job) =
                    sentence.within(room.map(|room| room.saturating_sub(time.len() + 1)));
                let parts = [Text::from(format!("{time} ")), text, Text::from(job)];
                let [time, text, job] = parts;
                console.note(&[(Tone::Faint, time), (tone, text), (Tone::Faint, job)]);
            }
        }
    }
}

fn object(time: String, note: &Note) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("time".to_owned(), json!(time));
    object.insert("event".to_owned(), json!(note.event));
    if let Some(job) = &note.job {
        object.insert("uuid".to_owned(), json!(job.uuid));
        object.insert("name".to_owned(), json!(job.name));
    }
    for (name, value) in &note.facts {
        // Output of commands may contain secrets, and other users may read the log.
        let value = match value {
            Value::String(text) if matches!(*name, "stdout" | "stderr") => {
                covered_text(text).into()
            }
            value => value.clone(),
        };
        object.insert((*name).to_owned(), value);
    }
    object
}

/// Formats an event for programs: a value with special characters is a JSON string.
fn logfmt(object: &Map<String, Value>) -> String {
    let is_plain = |text: &str| {
        let is_odd = |it: char| it.is_whitespace() || it.is_control() || "\"=\\".contains(it);
        !text.is_empty() && !text.contains(is_odd)
    };
    let pairs = object.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        match is_plain(&text) {
            true => format!("{name}={text}"),
            false => format!("{name}={}", Value::from(text)),
        }
    });
    pairs.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logfmt_prints_every_fact_on_one_line() {
        let note = Note::new("job_abandoned")
            .with("attempt", 3)
            .with("reason", "exit 3: \"a=b\"\nc")
            .with("empty", "")
            .with("names", json!(["a", "b c"]));
        assert_eq!(
            logfmt(&object("T".to_owned(), &note)),
            r#"time=T event=job_abandoned attempt=3 reason="exit 3: \"a=b\"\nc" empty="" names="[\"a\",\"b c\"]""#
        );
    }
}
