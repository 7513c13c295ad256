//! Turns command-line arguments into the draft of a job.

use std::io::{self, Read};

use serde_json::{Map, Value};
use uuid::Uuid;

use crate::{
    board::error::reason,
    bounded_read::input,
    commands::typing::corrected::DASHES,
    config::Config,
    exit::CommandError,
    job::{Book, Draft, Priority},
    output::is_program,
    suggest::Hint,
    transfer::{
        json,
        limits::{book, check_size, checked_name, identity, too_large, usage, uuid},
        lines::is_too_heavy,
    },
};

/// Properties of a new job.
#[derive(Debug, clap::Args)]
pub(crate) struct DraftArgs {
    /// Members of the details: KEY=TEXT, or KEY:=JSON for values other than text
    #[arg(value_name = "KEY=TEXT|KEY:=JSON")]
    facts: Vec<String>,

    /// Details: a JSON object, @FILE, or - for standard input; KEY=TEXT arguments are added to them
    #[arg(long, value_name = "JSON|@FILE|-")]
    details: Option<String>,

    /// Priority: VERY_HIGH, HIGH, NORMAL, LOW or VERY_LOW
    #[arg(long, value_name = "PRIORITY", default_value_t)]
    priority: Priority,

    /// Logbook of the job
    #[arg(long, value_name = "NAME:UUID", value_parser = book)]
    book: Option<Book>,

    /// Uuid of the job [default: random]
    #[arg(long, value_name = "UUID", value_parser = uuid, conflicts_with = "unique")]
    uuid: Option<Uuid>,

    /// Post nothing while the job posted under this key is on the board
    ///
    /// Once that job has been consumed or trashed, the key is free again. If the new job is trashed, too, it replaces
    /// the earlier one in the trash.
    #[arg(long, value_name = "KEY")]
    unique: Option<String>,
}

impl DraftArgs {
    pub(crate) fn is_unique(&self) -> bool {
        self.unique.is_some()
    }

    /// Shows how to post words that look like a command line.
    fn without_dashes(&self, name: &str, error: &anyhow::Error) -> anyhow::Error {
        let words: Vec<_> = self.facts.iter().map(String::as_str).collect();
        let hint = match words.as_slice() {
            [line] if line.contains(' ') => {
                Hint::new("`jobboard post {} -- sh -c {}`", [&[name][..], &words])
            }
            _ => {
                let program = [name].into_iter().filter(|it| is_program(it));
                let command: Vec<_> = program.chain(words).collect();
                Hint::new(DASHES, [&["post", name], &command])
            }
        };
        CommandError::usage(error.to_string()).hint(hint).into()
    }

    pub(crate) fn draft(
        &self,
        config: &Config,
        name: &str,
        command: &[String],
    ) -> anyhow::Result<Draft> {
        if self.details.as_deref() == Some("-") && config.takes_stdin() {
            return Err(usage("`-` (standard input) can be given only once"));
        }
        let max_details = config.max_details.value;
        let mut details = match &self.details {
            Some(text) => details(text, max_details)?,
            None => Map::new(),
        };
        for text in &self.facts {
            let (key, value) = fact(text).map_err(|error| match text.contains('=') {
                true => error,
                false => self.without_dashes(name, &error),
            })?;
            if details.insert(key.clone(), value).is_some() {
                return Err(usage(format!("the key `{key}` is given twice")));
            }
        }
        if !command.is_empty() {
            let command = Value::from(command.to_vec());
            if details.insert("command".to_owned(), command).is_some() {
                return Err(usage(
                    "the details already contain `command`; remove that key, or the command after `--`",
                ));
            }
        }
        let (uuid, chosen) = identity(self.uuid, self.unique.as_deref())?;
        let draft = Draft {
            chosen,
            priority: self.priority,
            book: self.book.clone(),
            ..Draft::new(uuid, checked_name(name)?, Value::Object(details))
        };
        check_size(&draft.details.value(), max_details)?;
        // Facts nest parsed JSON, and readers reject deep nesting.
        match serde_json::from_str::<Value>(&draft.details.value().to_string()) {
            Ok(_) => Ok(draft),
            Err(_) => Err(usage("the details are nested too deeply")),
        }
    }
}

fn fact(text: &str) -> anyhow::Result<(String, Value)> {
    let wanted = "use KEY=TEXT or KEY:=JSON";
    if text.is_empty() {
        return Err(usage(format!("a detail must not be empty: {wanted}")));
    }
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| usage(format!("`{text}` is not a detail: {wanted}")))?;
    let (key, value) = match key.strip_suffix(':') {
        None => (key, Value::from(value)),
        Some(key) => {
            let value = json::parse(value)
                .map_err(|error| usage(format!("`{key}`: {error}; use {key}=TEXT for text")))?;
            (key, value)
        }
    };
    match key {
        "" => Err(usage(format!("`{text}` has no key before `=`: {wanted}"))),
        key => Ok((key.to_owned(), value)),
    }
}

pub(crate) fn fact_of(text: &str) -> Result<(String, Value), String> {
    fact(text).map_err(|error| format!("{error:#}"))
}

/// Parses a JSON object, `@FILE`, or `-` for standard input.
pub(crate) fn details(text: &str, max: u64) -> anyhow::Result<Map<String, Value>> {
    let (source, text) = match text.strip_prefix('@') {
        Some(path) => (path, limited(path, input(path.as_ref()), max)?),
        None if text == "-" => {
            let source = "standard input";
            (source, limited(source, Ok(io::stdin().lock()), max)?)
        }
        None => ("--details", text.to_owned()),
    };
    match json::parse(&text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(other) => Err(usage(format!(
            "{source}: the details must be a JSON object, not {}",
            json::kind(&other)
        ))),
        Err(error) => Err(usage(format!("{source}: {error}"))),
    }
}

/// Stops soon after the limit, so that a wrong file does not fill the memory.
fn limited(name: &str, source: io::Result<impl Read>, max: u64) -> anyhow::Result<String> {
    // Spaces and escapes may make JSON longer than its content.
    let most = max.saturating_mul(8).max(1 << 20);
    let mut text = String::new();
    source
        .and_then(|source| source.take(most + 1).read_to_string(&mut text))
        .map_err(|error| usage(format!("cannot read {name}: {}", reason(&error))))?;
    if text.len() as u64 > most {
        return Err(too_large(format!("more than {most}"), max));
    }
    if is_too_heavy(text.as_bytes(), max) {
        return Err(usage(format!("{name}: the details have too many values")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_text_unless_marked_as_json() {
        assert_eq!(fact("a=1").unwrap(), ("a".into(), Value::from("1")));
        assert_eq!(fact("a:=1").unwrap(), ("a".into(), Value::from(1)));
        assert_eq!(fact("a=b=c").unwrap(), ("a".into(), Value::from("b=c")));
        assert_eq!(fact("a=").unwrap(), ("a".into(), Value::from("")));
    }

    #[test]
    fn invalid_facts_are_refused() {
        for text in ["a", "=1", ":=1", "a:={", "a:="] {
            assert!(fact(text).is_err(), "{text}");
        }
    }
}
