//! The process environment: variables, user and machine.

use std::{ffi::OsString, path::PathBuf};

use anyhow::{Context as _, ensure};
use nix::unistd::{Uid, User};

use super::{Source, Sourced};
use crate::{
    board::url::BoardUrl,
    process::{host_name, job_control, service_manager},
    secret::SECRET_VARIABLES,
};

/// Begins a board that Octavia's own configuration describes.
pub(super) const OCTAVIA: &str = "octavia:";

type Lookup = Box<dyn Fn(&str) -> Option<OsString>>;

/// The environment of this process: the program's only source of settings from variables.
///
/// It may hold secrets, and therefore has no `Debug`.
pub(crate) struct Environment {
    pub(super) variables: Lookup,
    pub(super) etc: PathBuf,
    pub(super) account: fn() -> Option<Account>,
}

impl Environment {
    pub(crate) fn of_process() -> Self {
        Self {
            variables: Box::new(|name| std::env::var_os(name)),
            etc: PathBuf::from("/etc"),
            account,
        }
    }

    /// Returns the variables that no command may inherit: secrets, and those for this process alone.
    pub(crate) fn withheld(&self) -> Vec<&'static str> {
        let [password, logbook, url] = SECRET_VARIABLES;
        let mut withheld = vec![job_control::MARK, password, logbook];
        withheld.extend(service_manager::VARIABLES);
        // The name of a board, or a valid address without a password.
        let is_harmless = |text: &str| {
            !text.contains(':')
                || text.starts_with(OCTAVIA)
                || text
                    .parse::<BoardUrl>()
                    .is_ok_and(|url| !url.has_password())
        };
        // A board without a secret may be useful to the command.
        let board = self.variable(url);
        if board.is_some_and(|board| !board.to_str().is_some_and(is_harmless)) {
            withheld.push(url);
        }
        withheld
    }

    pub(crate) fn wants_plain_text(&self) -> bool {
        self.variable("NO_COLOR")
            .is_some_and(|value| !value.is_empty())
            || self
                .variable("TERM")
                .is_some_and(|terminal| terminal == "dumb")
    }

    pub(crate) fn variable(&self, name: &str) -> Option<OsString> {
        (self.variables)(name)
    }

    /// Returns a variable that must be text if it is set.
    ///
    /// An empty one is an error: it comes from a script with an unset variable, and the default is not what that
    /// script meant.
    pub(super) fn text(&self, name: &'static str) -> anyhow::Result<Option<Sourced<String>>> {
        let Some(value) = self.variable(name) else {
            return Ok(None);
        };
        // The error of `into_string` shows the value, which may be a secret.
        let text = value.into_string().ok();
        let text = text.with_context(|| format!("{name} is not UTF-8 text"))?;
        ensure!(
            !text.is_empty(),
            "{name} is empty; unset {name} or give a value"
        );
        Ok(Some(Sourced::new(text, Source::Variable(name))))
    }

    pub(super) fn config_files(&self) -> Vec<PathBuf> {
        let user = self.directory("XDG_CONFIG_HOME", ".config");
        user.into_iter()
            .chain([self.etc.clone()])
            .map(|directory| directory.join("jobboard").join("config.toml"))
            .collect()
    }

    pub(super) fn default_board(&self) -> anyhow::Result<PathBuf> {
        let state = self
            .directory("XDG_STATE_HOME", ".local/state")
            .context("no home directory for the default board; set HOME or give --board")?;
        Ok(state.join("jobboard").join("board.db"))
    }

    /// The XDG specification requires that a relative path in such a variable is ignored.
    fn directory(&self, name: &str, below_home: &str) -> Option<PathBuf> {
        self.absolute(name)
            .or_else(|| Some(self.home()?.join(below_home)))
    }

    fn absolute(&self, name: &str) -> Option<PathBuf> {
        let path = PathBuf::from(self.variable(name)?);
        path.is_absolute().then_some(path)
    }

    fn home(&self) -> Option<PathBuf> {
        self.absolute("HOME")
            .or_else(|| Some((self.account)()?.home))
    }

    /// Returns `user@host`, if the machine knows them.
    ///
    /// After `su` this is the new user, even if `USER` has the old name.
    pub(super) fn user_at_host(&self) -> String {
        let user = (self.account)()
            .map(|account| account.name)
            .or_else(|| self.variable("USER")?.into_string().ok())
            .filter(|user| !user.is_empty())
            .unwrap_or_else(|| Uid::effective().to_string());
        format!("{user}@{}", host_name())
    }
}

pub(super) struct Account {
    pub(super) name: String,
    pub(super) home: PathBuf,
}

fn account() -> Option<Account> {
    let user = User::from_uid(Uid::effective()).ok()??;
    Some(Account {
        name: user.name,
        home: user.dir,
    })
}
