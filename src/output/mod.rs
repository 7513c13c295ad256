//! Prints results for people and for programs through one interface.
//!
//! Results go to stdout, everything else to stderr. Nothing outside this directory prints.
//!
//! | result | function |
//! |---|---|
//! | one result, complete | [`Output::report`]; while other tasks continue, [`Output::report_aside`] |
//! | one result of a running command | [`Output::print`], later [`Output::flush`] |
//! | several results of one kind, in JSON an array | [`Output::reports`] |
//! | a table, in JSON an array | [`Output::table`]; row by row [`Output::rows`] |
//! | sentences, in JSON one object | [`Output::sentences`] |
//! | a document, in JSON an object with its text | [`Output::document`] |
//! | part of a stream with its own format | [`Output::pass`], finally [`Output::flush`] |
//! | the answer of a monitoring plugin: lines, in JSON one object | [`Output::answer`] |

mod chart;
mod console;
mod html;
mod job;
mod json;
mod page;
mod pager;
mod progress;
mod prometheus;
mod rows;
mod stderr;
mod style;
mod table;
mod text;

use std::{
    borrow::Cow,
    io::{self, BufWriter, IsTerminal, Write},
    os::fd::AsFd,
};

use clap::builder::StyledStr;
use rustix::{
    fs::{FileType, fstat},
    termios,
};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

pub(crate) use self::{
    chart::{shares, sparkline},
    console::{Console, Side},
    html::{Attribute, Html, element, list, tag},
    job::{ColumnChange, JobColumns, JobView, count_jobs, grouped, rfc3339, short, titled},
    json::line as json_line,
    page::Page,
    pager::is_program,
    progress::Progress,
    prometheus::{Exposition, timestamp},
    rows::{Report, Row, Rows},
    stderr::{can_ask, complain_json, complain_of},
    style::{Format, Pieces, Style, Tone, Verbosity, width},
    table::{ABSENT, Cell, Column, Fit, laid_out},
    text::{Text, counted, ends, listed},
};

use self::style::styled;
use crate::watched_fd::WatchedFd;

/// Output waits in at most this much buffer for the next flush: the capacity of a pipe.
const BUFFER: usize = 64 << 10;

/// The reader of our output went away, which is no failure.
#[derive(Debug, Error)]
#[error("the reader closed the output")]
pub(crate) struct Closed;

#[derive(Debug)]
pub(crate) struct Output {
    style: Style,
    is_coloured: bool,
    stdout: BufWriter<io::Stdout>,
    record: Vec<u8>,
    /// Collects output that must not reach the reader yet.
    aside: Option<Vec<u8>>,
    withheld: Option<WithheldReports>,
    /// Whether work continues without a reader.
    outlives_reader: bool,
    is_terminal: bool,
}

/// Reports that are not printed.
#[derive(Debug, Default)]
struct WithheldReports {
    count: usize,
    only: Option<Value>,
}

impl Output {
    pub(crate) fn new(style: Style) -> Self {
        let is_terminal = io::stdout().is_terminal();
        Self {
            style,
            is_coloured: style.colours(is_terminal),
            stdout: BufWriter::with_capacity(BUFFER, io::stdout()),
            record: Vec::new(),
            aside: None,
            withheld: None,
            outlives_reader: false,
            is_terminal,
        }
    }

    pub(crate) fn silence(&mut self) {
        self.style.verbosity = Verbosity::Quiet;
    }

    /// From here on a closed output stops nothing: stopping halfway would leave the work incomplete.
    pub(crate) fn outlive_reader(&mut self) {
        self.outlives_reader = true;
    }

    pub(crate) fn format(&self) -> Format {
        self.style.format.unwrap_or(if self.is_terminal {
            Format::Table
        } else {
            Format::Tsv
        })
    }

    pub(crate) fn style(&self) -> Style {
        self.style
    }

    pub(crate) fn is_json(&self) -> bool {
        matches!(self.format(), Format::Json | Format::Jsonl)
    }

    pub(crate) fn report(&mut self, report: &impl Report) -> anyhow::Result<()> {
        self.print(report)?;
        self.flush()
    }

    pub(crate) fn sentences(&mut self, all: &[String], object: &Value) -> anyhow::Result<()> {
        match self.format() {
            Format::Uuid => Ok(()),
            Format::Table | Format::Tsv | Format::Json | Format::Jsonl => self.answer(all, object),
        }
    }

    pub(crate) fn answer(
        &mut self,
        lines: &[String],
        object: &impl Serialize,
    ) -> anyhow::Result<()> {
        match self.is_json() {
            true => self.json("", object, "\n")?,
            false => (lines.iter())
                .try_for_each(|line| self.write(&format!("{}\n", Text::from(line))))?,
        }
        self.flush()
    }

    /// Prints one report and flushes, without blocking other tasks on a slow reader.
    ///
    /// The report may still appear if this is cancelled.
    pub(crate) async fn report_aside(&mut self, report: &impl Report) -> anyhow::Result<()> {
        self.flush()?;
        self.aside = Some(Vec::new());
        let result = self.write_report(report);
        let bytes = self.aside.take().unwrap_or_default();
        result?;
        // A full pipe or a stopped terminal can only block a thread.
        let write = move || {
            let mut stdout = io::stdout();
            stdout.write_all(&bytes)?;
            stdout.flush()
        };
        let result = written(tokio::task::spawn_blocking(write).await?);
        self.unless_outlived(result)
    }

    /// Prints no report until [`take_withheld`](Self::take_withheld).
    pub(crate) fn withhold(&mut self) {
        self.withheld = Some(WithheldReports::default());
    }

    /// Ends the withholding, and returns the report if there was exactly one.
    pub(crate) fn take_withheld(&mut self) -> Option<Value> {
        self.withheld.take()?.only
    }

    pub(crate) fn print(&mut self, report: &impl Report) -> anyhow::Result<()> {
        let result = self.write_report(report);
        self.unless_outlived(result)
    }

    fn unless_outlived(&self, result: anyhow::Result<()>) -> anyhow::Result<()> {
        match result {
            Err(error) if self.outlives_reader && error.is::<Closed>() => Ok(()),
            result => result,
        }
    }

    fn write_report<R: Report>(&mut self, report: &R) -> anyhow::Result<()> {
        if let Some(withheld) = &mut self.withheld {
            withheld.count += 1;
            withheld.only = match withheld.count {
                1 => Some(serde_json::to_value(report)?),
                _ => None,
            };
            return Ok(());
        }
        let fields = match self.format() {
            Format::Json | Format::Jsonl => return self.json("", report, "\n"),
            Format::Uuid => return self.reference(report.reference()),
            Format::Tsv if self.style.format.is_some() || !R::IS_TEXT => report.fields(),
            Format::Tsv | Format::Table => Vec::new(),
        };
        if !fields.is_empty() {
            return self.line(&fields);
        }
        let mut page = Page::new(size_of(io::stdout()));
        report.human(&mut page);
        self.print_lines(&page.rows())
    }

    /// Prints several reports as one answer: an array in JSON.
    pub(crate) fn reports<R: Report>(&mut self, reports: &[R]) -> anyhow::Result<()> {
        if self.format() == Format::Json {
            for (at, report) in reports.iter().enumerate() {
                self.element(at, report)?;
            }
            self.end_array(reports.len())?;
        } else {
            reports.iter().try_for_each(|report| self.print(report))?;
        }
        self.flush()
    }

    pub(crate) fn rows(&mut self, columns: &[Column]) -> Rows<'_> {
        Rows::new(self, columns)
    }

    pub(crate) fn table<R: Row>(
        &mut self,
        columns: &[Column],
        rows: impl IntoIterator<Item = R>,
    ) -> anyhow::Result<()> {
        let mut table = self.rows(columns);
        rows.into_iter().try_for_each(|row| table.push(&row))?;
        table.finish()
    }

    fn reference(&mut self, reference: Option<Cow<'_, str>>) -> anyhow::Result<()> {
        match reference {
            Some(reference) => self.write(&format!("{}\n", Text::from(reference))),
            None => Ok(()),
        }
    }

    fn print_lines(&mut self, lines: &[Pieces]) -> anyhow::Result<()> {
        let mut lines = lines.iter();
        lines.try_for_each(|line| self.write(&(styled(line, self.is_coloured) + "\n")))
    }

    fn line<T: AsRef<str>>(&mut self, fields: &[T]) -> anyhow::Result<()> {
        self.write(&(Text::line(fields).into_string() + "\n"))
    }

    fn json(&mut self, before: &str, value: &impl Serialize, behind: &str) -> anyhow::Result<()> {
        let mut record = std::mem::take(&mut self.record);
        record.extend_from_slice(before.as_bytes());
        let made = json::write(&mut record, value);
        record.extend_from_slice(behind.as_bytes());
        let result = match made {
            Ok(()) => written(self.sink().write_all(&record)),
            Err(error) => Err(error.into()),
        };
        record.clear();
        // Free the room of one large record.
        record.shrink_to(BUFFER);
        self.record = record;
        result
    }

    /// Writes an element of a JSON array after `count` others.
    fn element(&mut self, count: usize, value: &impl Serialize) -> anyhow::Result<()> {
        self.json(if count == 0 { "[\n" } else { ",\n" }, value, "")
    }

    fn end_array(&mut self, count: usize) -> anyhow::Result<()> {
        self.write(if count == 0 { "[]\n" } else { "\n]\n" })
    }

    fn write(&mut self, text: &str) -> anyhow::Result<()> {
        written(self.sink().write_all(text.as_bytes()))
    }

    fn sink(&mut self) -> &mut dyn Write {
        match &mut self.aside {
            Some(aside) => aside,
            None => &mut self.stdout,
        }
    }

    pub(crate) fn help(&mut self, text: &StyledStr) -> anyhow::Result<()> {
        let text = match self.is_coloured {
            true => text.ansi().to_string(),
            false => text.to_string(),
        };
        pager::show(&text);
        self.write(&text)?;
        self.flush()
    }

    pub(crate) fn document(&mut self, text: &[u8]) -> anyhow::Result<()> {
        if self.is_json() {
            let text = String::from_utf8_lossy(text);
            self.json("", &serde_json::json!({ "text": text }), "\n")?;
        } else {
            self.pass(text)?;
        }
        self.flush()
    }

    /// Writes part of a document with its own format, independent of the output format.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        written(self.sink().write_all(bytes))
    }

    /// Returns a handle that becomes ready when the reader closes the output, if that can be detected.
    pub(crate) fn reader(&self) -> Option<io::Result<WatchedFd>> {
        let fd = io::stdout().as_fd().try_clone_to_owned().ok()?;
        let kind = FileType::from_raw_mode(fstat(&fd).ok()?.st_mode);
        matches!(kind, FileType::Fifo | FileType::Socket).then(|| WatchedFd::of_writer(fd))
    }

    pub(crate) fn flush(&mut self) -> anyhow::Result<()> {
        let flushed = written(self.stdout.flush());
        self.unless_outlived(flushed)
    }

    pub(crate) fn is_coloured(&self) -> bool {
        self.is_coloured
    }
}

fn width_of(terminal: impl AsFd) -> Option<usize> {
    size_of(terminal).map(|(columns, _)| columns)
}

pub(crate) fn size_of(terminal: impl AsFd) -> Option<(usize, usize)> {
    let size = termios::tcgetwinsize(terminal).ok()?;
    let size = (usize::from(size.ws_col), usize::from(size.ws_row));
    (size.0 > 0).then_some(size)
}

fn written(result: io::Result<()>) -> anyhow::Result<()> {
    result.map_err(|error| {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Closed.into()
        } else {
            anyhow::Error::from(error).context("cannot write the output")
        }
    })
}

#[cfg(test)]
mod tests {
    use serde::{Serializer, ser::Error};

    use super::*;

    struct Broken;

    impl Serialize for Broken {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_some(&["whole"])?;
            Err(Error::custom("it is broken"))
        }
    }

    #[test]
    fn record_is_written_completely_or_not_at_all() {
        let mut out = Output::new(Style::default());
        out.aside = Some(Vec::new());
        out.json("[\n", &"one", "").unwrap();
        assert!(out.json(",\n", &Broken, "").is_err());
        out.json(",\n", &"x".repeat(BUFFER), "\n]\n").unwrap();
        let written = String::from_utf8(out.aside.take().unwrap()).unwrap();
        assert_eq!(
            written,
            format!("[\n\"one\",\n\"{}\"\n]\n", "x".repeat(BUFFER))
        );
        assert!(out.record.capacity() <= BUFFER);
    }
}
