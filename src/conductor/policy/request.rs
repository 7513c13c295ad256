//! The details of a posting that asks for a command.

use std::{
    path::{Component, Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::{Forbidden, decides_what_runs};
use crate::{duration, job::Details, retry};

/// The members of the details that conductors read.
pub(crate) const MEMBERS: [&str; 6] = ["command", "cwd", "stdin", "env", "timeout", "max_attempts"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CommandRequest {
    pub(super) command: Vec<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: Option<PathBuf>,
    pub(super) stdin: Option<String>,
    pub(super) limits: JobLimits,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JobLimits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_attempts: Option<u32>,
}

impl JobLimits {
    pub(super) fn read(details: &Details) -> Result<Self, Forbidden> {
        Self::of(&details.members(&MEMBERS))
    }

    fn of(details: &Value) -> Result<Self, Forbidden> {
        let timeout = read(details, "timeout", "a duration such as 5m", |value| {
            let timeout = duration::parse(value.as_str()?).ok();
            timeout.filter(|it| !it.is_zero())
        })?;
        let wanted = "a positive JSON number";
        let max_attempts = read(details, "max_attempts", wanted, retry::max_attempts)?;
        Ok(Self {
            timeout,
            max_attempts,
        })
    }
}

impl CommandRequest {
    /// Reads a request whose command has a valid program name.
    pub(super) fn read(details: &Details) -> Result<Option<Self>, Forbidden> {
        let details = &*details.members(&MEMBERS);
        let Some(command) = details.get("command") else {
            return Ok(None);
        };
        let wanted = "an array of strings, starting with the program";
        let command = texts(command).ok_or(malformed("command", wanted))?;
        let cwd = read(details, "cwd", "an absolute path", |value| {
            let path = PathBuf::from(text(value)?);
            path.is_absolute().then_some(path)
        })?;
        let stdin = read(details, "stdin", "text", |value| {
            value.as_str().map(str::to_owned)
        })?;
        let request = Self {
            env: read(details, "env", "an object of strings", variables)?.unwrap_or_default(),
            command,
            cwd,
            stdin,
            limits: JobLimits::of(details)?,
        };
        let name = request.program();
        let has_parents = Path::new(name)
            .components()
            .any(|part| part == Component::ParentDir);
        match name.is_empty() || has_parents || (name.contains('/') && !name.starts_with('/')) {
            true => Err(Forbidden::Relative(name.to_owned())),
            false => Ok(Some(request)),
        }
    }

    pub(super) fn program(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }
}

/// Rejects details with a command that no conductor can ever run.
///
/// A `command` that is no array may be meant for a handler.
pub(crate) fn check_posted(details: &Details) -> Result<(), Forbidden> {
    let command = details.get("command");
    if !command.is_some_and(|command| command.is_array()) {
        return Ok(());
    }
    let env = CommandRequest::read(details)?.map_or_else(Vec::new, |request| request.env);
    match env.into_iter().find(|(name, _)| decides_what_runs(name)) {
        Some((name, _)) => Err(Forbidden::Variable(name)),
        None => Ok(()),
    }
}

fn read<T>(
    details: &Value,
    field: &'static str,
    wanted: &'static str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, Forbidden> {
    match details.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(value).map(Some).ok_or(malformed(field, wanted)),
    }
}

fn malformed(field: &'static str, wanted: &'static str) -> Forbidden {
    Forbidden::Malformed { field, wanted }
}

/// Returns a text without NUL, which would end a program's argument.
fn text(value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| !text.contains('\0'))?;
    Some(text.to_owned())
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let texts = value.as_array()?.iter().map(text);
    texts
        .collect::<Option<Vec<_>>>()
        .filter(|texts| !texts.is_empty())
}

fn variables(value: &Value) -> Option<Vec<(String, String)>> {
    let variables = value.as_object()?.iter();
    let variables = variables.map(|(name, value)| {
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        Some((name.clone(), text(value)?)).filter(|_| is_name)
    });
    variables.collect()
}
