//! Shows what a conductor tells, on a thread of its own: a reader who is slow must not hold it up.

use std::{
    io::{self, Write},
    thread,
};

use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;

use crate::{
    conductor::progress::{Note, Progress, Stream},
    output::{Console, Output, Side, Text},
};

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
pub(super) fn start(progress: Receiver<Progress>, format: LogFormat) -> io::Result<()> {
    // Not waited for: whoever told the last of it waits for that to have been shown.
    thread::Builder::new()
        .name("show".to_owned())
        .spawn(move || show(progress, format))?;
    Ok(())
}

fn show(mut progress: Receiver<Progress>, format: LogFormat) {
    let mut console = Console::new();
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
                Progress::Bytes(file, bytes) => _ = (&*file).write_all(&bytes),
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
    let time = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    match format {
        LogFormat::Text => console.note(words(&time, note)),
        LogFormat::Json => console.object(&object(time, note)),
    }
}

fn words(time: &str, note: &Note) -> String {
    let mut line = format!("{time} {}", note.event);
    if let Some(job) = &note.job {
        line = format!("{line} {job}");
    }
    for (name, value) in &note.facts {
        line = match value {
            Value::String(text) if !text.contains([' ', '"', '=']) => {
                format!("{line} {name}={text}")
            }
            value => format!("{line} {name}={value}"),
        };
    }
    line
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
