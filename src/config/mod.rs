//! The configuration: flags, environment, files and defaults, merged and checked.
//!
//! Nothing here opens a connection. No other module reads settings from the environment or a file.

mod board;
mod environment;
mod file;
mod limit;
mod octavia;
mod password;
mod source;

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use self::{
    board::BoardChoice,
    environment::Environment,
    file::MayRun,
    octavia::Octavia,
    source::{Source, Sourced},
};
use self::{
    board::ChosenTable,
    file::{ConfigFiles, FoundTable},
    password::Password,
};
use crate::{
    board::url::BoardUrl,
    duration,
    job::{HISTORY, Owner},
    logbook::LogbookUrl,
    output::Format,
    secret::Secret,
    size,
    suggest::Suggestion,
};

/// The command-line flags of the configuration.
///
/// No `Debug`: the board may be a URL with a password.
#[derive(Clone, Default)]
pub(crate) struct Flags {
    /// A URL, or the NAME of a board.
    pub(crate) board: Option<String>,
    /// Replaces the files of the user and the system.
    pub(crate) config: Option<PathBuf>,
    pub(crate) who: Option<String>,
    pub(crate) format: Option<Format>,
    pub(crate) read_only: bool,
    /// `-` is stdin.
    pub(crate) password_file: Option<PathBuf>,
    pub(crate) op_timeout: Option<Duration>,
    /// Whether this is a second board: the password settings of the first do not apply to it.
    pub(crate) is_second: bool,
}

impl Flags {
    /// Returns the start of another command for the same board, without a password in its URL.
    ///
    /// Settings from the environment and the files are not repeated.
    pub(crate) fn program(&self) -> Suggestion {
        let board = self.board.as_deref().map(without_password);
        let file = |path: &Option<PathBuf>| Some(path.as_ref()?.to_string_lossy().into_owned());
        let options = [
            ("--board", board),
            ("--config", file(&self.config)),
            ("--password-file", file(&self.password_file)),
        ];
        let given = options
            .into_iter()
            .filter_map(|(name, value)| Some([name.to_owned(), value?]));
        Suggestion::of("jobboard").with(given.flatten())
    }
}

fn without_password(board: &str) -> String {
    match board.parse::<BoardUrl>() {
        Ok(url) if url.has_password() => url.to_string(),
        _ => board.to_owned(),
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) board: Sourced<BoardChoice>,
    /// Whether the user chose the board, so that messages need not name it.
    pub(crate) is_board_chosen: bool,
    pub(crate) who: Sourced<Owner>,
    pub(crate) read_only: Sourced<bool>,
    read_only_table: Option<String>,
    pub(crate) yes: Sourced<bool>,
    pub(crate) format: Sourced<Option<Format>>,
    pub(crate) op_timeout: Sourced<Duration>,
    /// In bytes.
    pub(crate) max_details: Sourced<u64>,
    pub(crate) history: Sourced<u32>,
    pub(crate) logbook: Option<Sourced<Secret>>,
    pub(crate) may_run: Option<Sourced<MayRun>>,
    password: Sourced<Password>,
    files: Vec<Sourced<PathBuf>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// In its own type; null if unset.
    pub(crate) value: Value,
    pub(crate) source: String,
}

impl Config {
    /// Merges all sources. Every error is a usage error.
    pub(crate) fn load(flags: Flags, env: &Environment) -> anyhow::Result<Self> {
        let named = config_file(&flags, env)?;
        let files = ConfigFiles::read(named.as_ref(), env)?;
        let chosen = ChosenTable::find(&flags, env, &files)?;
        let table = chosen.table;
        let from = named.map_or(Source::Default, |named| named.source);
        let password = password::choose(&flags, env, table, &chosen.board.value)?;
        let is_server = chosen.board.value.url.is_network();
        if let Some(table) = table.filter(|_| is_server && password.value != Password::None) {
            table.require_ours("the server that gets the password")?;
        }
        Ok(Self {
            who: who(&flags, env, table)?,
            read_only: read_only(&flags, env, chosen.read_only)?,
            read_only_table: chosen.read_only_table,
            yes: truth(env, "JOBBOARD_YES")?.unwrap_or(Sourced::default(false)),
            format: format(flags.format, env)?,
            op_timeout: op_timeout(&flags, env, &files)?,
            max_details: files
                .max_details()
                .unwrap_or(Sourced::default(limit::MAX_DETAILS)),
            history: table
                .and_then(|table| table.value(|table| table.history))
                .unwrap_or(Sourced::default(HISTORY)),
            logbook: logbook(env, table, &chosen.board.value)?,
            may_run: table.and_then(FoundTable::may_run),
            password,
            is_board_chosen: chosen.board.source != Source::Default,
            board: chosen.board,
            files: files
                .paths()
                .into_iter()
                .map(|path| Sourced::new(path, from.clone()))
                .collect(),
        })
    }

    /// Fetches the password for the board, if there is one.
    ///
    /// This may read a file or stdin, or run a program: call it once, and only to connect.
    pub(crate) fn password(&self) -> anyhow::Result<Option<Secret>> {
        self.password.value.fetch(self.op_timeout.value)
    }

    /// Returns the password if that needs neither a prompt nor a program.
    pub(crate) fn password_at_hand(&self) -> Option<Secret> {
        match self.password.value {
            Password::File(_) | Password::Given(_) => self.password().ok()?,
            Password::None | Password::Stdin | Password::Command { .. } => None,
        }
    }

    pub(crate) fn board_names(flags: &Flags, env: &Environment) -> anyhow::Result<Vec<String>> {
        let files = ConfigFiles::read(config_file(flags, env)?.as_ref(), env)?;
        Ok(files.names().into_iter().map(str::to_owned).collect())
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.value.as_path())
    }

    pub(crate) fn password_file(&self) -> Option<&Path> {
        match &self.password.value {
            Password::File(path) => Some(path),
            _ => None,
        }
    }

    pub(crate) fn takes_stdin(&self) -> bool {
        self.password.value == Password::Stdin
    }

    pub(crate) fn entries(&self) -> Vec<Setting> {
        let (board, source) = (&self.board.value, &self.board.source);
        let (timeout, size) = (&self.op_timeout, &self.max_details);
        let password = match self.password.value {
            Password::None => None,
            _ => Some("set"),
        };
        let format = self.format.value.map(|format| format.to_string());
        let mut entries = vec![
            Setting::new("board", board.name.as_deref(), source),
            Setting::new("url", board.url.to_string(), &board.url_source),
            Setting::new("who", self.who.value.text(), &self.who.source),
            Setting::new("read_only", self.read_only.value, &self.read_only.source),
            Setting::new("protected", board.is_protected, &board.protected_source),
            Setting::new("yes", self.yes.value, &self.yes.source),
            Setting::new("password", password, &self.password.source),
            Setting::new("format", format, &self.format.source),
            Setting::new(
                "op_timeout",
                duration::exact(timeout.value),
                &timeout.source,
            ),
            Setting::new("max_details", size::text(size.value), &size.source),
            Setting::new("history", self.history.value, &self.history.source),
        ];
        if let Some(Sourced { value, source }) = &self.logbook {
            let url = LogbookUrl::shown(value.expose());
            entries.push(Setting::new("logbook", url, source));
        }
        if let Some(Sourced { value, source }) = &self.may_run {
            entries.push(Setting::new("conduct", json!(value), source));
        }
        let octavia = board.octavia.iter();
        entries.extend(octavia.flat_map(|octavia| octavia.settings.iter().cloned()));
        for file in &self.files {
            let path = file.value.to_string_lossy();
            entries.push(Setting::new("config_file", path, &file.source));
        }
        entries
    }

    /// Returns the setting that makes the board read-only.
    pub(crate) fn why_read_only(&self) -> Option<String> {
        let Sourced { value, source } = &self.read_only;
        value.then(|| match (source, &self.read_only_table) {
            (Source::File(path), Some(table)) => {
                format!("`read_only` in [board.{table}] of {}", path.display())
            }
            _ => source.to_string(),
        })
    }
}

impl Setting {
    fn new(key: &str, value: impl Into<Value>, source: &Source) -> Self {
        Self {
            key: key.to_owned(),
            value: value.into(),
            source: source.to_string(),
        }
    }

    /// Returns the value in the syntax of its source.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::Null => "none".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns the output format, before the other settings are known.
///
/// A format on the command line overrides every other source.
pub(crate) fn format(
    flag: Option<Format>,
    env: &Environment,
) -> anyhow::Result<Sourced<Option<Format>>> {
    if flag.is_some() {
        return Ok(Sourced::new(flag, Source::Flag("--format")));
    }
    let Some(given) = env.text("JOBBOARD_FORMAT")? else {
        return Ok(Sourced::default(None));
    };
    let format = Format::from_str(&given.value, true).map_err(|_| {
        let forms: Vec<_> = Format::value_variants()
            .iter()
            .map(Format::to_string)
            .collect();
        anyhow!(
            "JOBBOARD_FORMAT is `{}`; use one of {}",
            given.value,
            forms.join(", ")
        )
    })?;
    Ok(Sourced::new(Some(format), given.source))
}

fn config_file(flags: &Flags, env: &Environment) -> anyhow::Result<Option<Sourced<PathBuf>>> {
    if let Some(path) = &flags.config {
        return Ok(Some(Sourced::new(path.clone(), Source::Flag("--config"))));
    }
    let name = "JOBBOARD_CONFIG";
    let path = env.variable(name).map(PathBuf::from);
    ensure!(
        path.as_ref()
            .is_none_or(|path| !path.as_os_str().is_empty()),
        "{name} is empty; unset {name} or give a value"
    );
    Ok(path.map(|path| Sourced::new(path, Source::Variable(name))))
}

fn who(
    flags: &Flags,
    env: &Environment,
    table: Option<FoundTable<'_>>,
) -> anyhow::Result<Sourced<Owner>> {
    let flag = flags.who.clone();
    let given = match flag.map(|who| Sourced::new(who, Source::Flag("--who"))) {
        Some(flag) => Some(flag),
        None => env.text("JOBBOARD_WHO")?,
    };
    let Sourced { value, source } = given
        .or_else(|| table?.value(|table| table.who.clone()))
        .unwrap_or_else(|| Sourced::default(env.user_at_host()));
    let owner = Owner::new(&value).with_context(|| format!("invalid owner name in {source}"))?;
    Ok(Sourced::new(owner, source))
}

/// Any source can make the board read-only; the first one is named.
fn read_only(
    flags: &Flags,
    env: &Environment,
    of_board: Option<Sourced<bool>>,
) -> anyhow::Result<Sourced<bool>> {
    let flag = Sourced::new(true, Source::Flag("--read-only"));
    let given = [
        flags.read_only.then_some(flag),
        truth(env, "JOBBOARD_READ_ONLY")?,
        of_board,
    ];
    let given: Vec<_> = given.into_iter().flatten().collect();
    let first = given.iter().position(|it| it.value).unwrap_or(0);
    let first = given.into_iter().nth(first);
    Ok(first.unwrap_or(Sourced::default(false)))
}

fn logbook(
    env: &Environment,
    table: Option<FoundTable<'_>>,
    board: &BoardChoice,
) -> anyhow::Result<Option<Sourced<Secret>>> {
    let given = env.text("JOBBOARD_LOGBOOK")?;
    let given = given.or_else(|| table?.value(|table| table.logbook.clone()));
    let secret = given.map(|Sourced { value, source }| Sourced::new(Secret::new(value), source));
    let of_octavia = || board.octavia.as_ref()?.logbook.clone();
    Ok(secret.or_else(of_octavia))
}

fn truth(env: &Environment, name: &'static str) -> anyhow::Result<Option<Sourced<bool>>> {
    let Some(value) = env.variable(name) else {
        return Ok(None);
    };
    let is_true = match value.to_string_lossy().to_ascii_lowercase().as_str() {
        "1" | "true" => true,
        "0" | "false" | "" => false,
        other => bail!("{name} is `{other}`; use 1, true, 0 or false"),
    };
    Ok(Some(Sourced::new(is_true, Source::Variable(name))))
}

fn op_timeout(
    flags: &Flags,
    env: &Environment,
    files: &ConfigFiles,
) -> anyhow::Result<Sourced<Duration>> {
    let (timeout, source) = if let Some(timeout) = flags.op_timeout {
        (timeout, Source::Flag("--op-timeout"))
    } else if let Some(Sourced { value, source }) = env.text("JOBBOARD_OP_TIMEOUT")? {
        let timeout = duration::parse(&value).with_context(|| source.to_string())?;
        (timeout, source)
    } else {
        let of_files = files.op_timeout();
        return Ok(of_files.unwrap_or(Sourced::default(limit::OP_TIMEOUT)));
    };
    match limit::check_op_timeout(timeout) {
        Ok(timeout) => Ok(Sourced::new(timeout, source)),
        Err(problem) => bail!("{source}: {problem}"),
    }
}
