//! The style of the output: format, colours, tones and extras.

use std::fmt;

use anstyle::AnsiColor;
use clap::{ColorChoice, ValueEnum};

use super::text::Text;
use crate::job::State;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Tables and text for people
    Table,
    /// Tab-separated lines
    Tsv,
    /// JSON
    Json,
    /// One JSON object per line
    Jsonl,
    /// Only references, one per line: uuids, or key:TEXT for records without one
    Uuid,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.to_possible_value();
        f.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Verbosity {
    Quiet,
    #[default]
    Normal,
    Verbose,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Style {
    /// `None`: chosen by the type of stdout.
    pub(crate) format: Option<Format>,
    pub(crate) color: ColorChoice,
    pub(crate) verbosity: Verbosity,
    pub(crate) is_plain: bool,
}

impl Style {
    pub(super) fn colours(self, is_terminal: bool) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => is_terminal && !self.is_plain,
        }
    }
}

/// How a piece of text stands out. Meaning never depends on it alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Strong,
    Faint,
    Active,
    /// Finished work, or a sound state.
    Good,
    Warning,
    Bad,
}

impl Tone {
    pub(crate) fn of(state: State) -> Self {
        match state {
            State::Unclaimed => Self::Plain,
            State::Claimed => Self::Active,
            State::Complete => Self::Good,
            State::Trashed => Self::Faint,
            State::Malformed => Self::Bad,
        }
    }

    pub(super) fn style(self) -> anstyle::Style {
        match self {
            Self::Plain => anstyle::Style::new(),
            Self::Strong => anstyle::Style::new().bold(),
            Self::Faint => anstyle::Style::new().dimmed(),
            Self::Active => AnsiColor::BrightBlue.on_default(),
            Self::Good => AnsiColor::Green.on_default(),
            Self::Warning => AnsiColor::Yellow.on_default(),
            Self::Bad => AnsiColor::Red.on_default().bold(),
        }
    }

    pub(super) fn style_if(self, is_coloured: bool) -> anstyle::Style {
        match is_coloured {
            true => self.style(),
            false => anstyle::Style::new(),
        }
    }
}

pub(crate) type Pieces = Vec<(Tone, Text)>;

pub(crate) fn width(line: &[(Tone, Text)]) -> usize {
    line.iter().map(|(_, text)| text.width()).sum()
}

pub(super) fn styled(line: &[(Tone, Text)], is_coloured: bool) -> String {
    let parts = line.chunk_by(|(one, _), (other, _)| one == other);
    let parts = parts.map(|part| {
        let style = part[0].0.style_if(is_coloured);
        let text: String = part.iter().map(|(_, text)| text.as_str()).collect();
        format!("{style}{text}{style:#}")
    });
    parts.collect()
}

pub(super) fn trim(line: &mut Pieces) {
    while let Some((tone, text)) = line.pop() {
        let kept = text.as_str().trim_end_matches(' ');
        if !kept.is_empty() {
            return line.push((tone, Text::from(kept)));
        }
    }
}
