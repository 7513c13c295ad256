//! Tests of precedence and secrecy in the configuration.

mod choice;
mod files;
mod secrets;
mod values;

use std::{collections::BTreeMap, ffi::OsString, fmt::Display, fs, path::Path};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{environment::Account, *};
use crate::process::host_name;

impl Environment {
    /// Makes a test environment, with a directory in place of `/etc`.
    pub(super) fn made_of(
        variables: &[(&str, &str)],
        etc: &Path,
        account: fn() -> Option<Account>,
    ) -> Self {
        let variables: BTreeMap<String, OsString> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), OsString::from(value)))
            .collect();
        Self {
            variables: Box::new(move |name| variables.get(name).cloned()),
            etc: etc.to_owned(),
            account,
        }
    }
}

struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn user_file(self, text: &str) -> Self {
        self.write(USER, text);
        self
    }

    fn system_file(self, text: &str) -> Self {
        self.write(SYSTEM, text);
        self
    }

    fn env(&self, variables: &[(&str, &str)]) -> Environment {
        let home = self.text("home");
        let mut all = vec![("HOME", home.as_str())];
        all.extend(variables);
        Environment::made_of(&all, &self.path("etc"), || None)
    }

    fn try_load(&self, flags: Flags, variables: &[(&str, &str)]) -> Result<Config, String> {
        Config::load(flags, &self.env(variables)).map_err(|error| format!("{error:#}"))
    }

    fn load(&self, flags: Flags, variables: &[(&str, &str)]) -> Config {
        self.try_load(flags, variables).unwrap()
    }

    fn refusal(&self, flags: Flags, variables: &[(&str, &str)]) -> String {
        self.try_load(flags, variables).unwrap_err()
    }
}

const USER: &str = "home/.config/jobboard/config.toml";
const SYSTEM: &str = "etc/jobboard/config.toml";

fn board(text: &str) -> Flags {
    Flags {
        board: Some(text.to_owned()),
        ..Flags::default()
    }
}

/// Returns `VALUE from SOURCE`.
fn with_source(value: impl Display, source: impl Display) -> String {
    let source = source.to_string();
    let mut files = [(USER, "the user file"), (SYSTEM, "the system file")].into_iter();
    let file = files.find(|(path, _)| source.ends_with(path));
    format!("{value} from {}", file.map_or(&*source, |it| it.1))
}

fn text<T: Display>(sourced: &Sourced<T>) -> String {
    with_source(&sourced.value, &sourced.source)
}

fn url(config: &Config) -> String {
    let board = &config.board.value;
    with_source(&board.url, &board.url_source)
}

fn protected(config: &Config) -> String {
    let board = &config.board.value;
    with_source(board.is_protected, &board.protected_source)
}

fn password(config: &Config) -> String {
    let secret = config.password().unwrap().unwrap();
    secret.expose().to_owned()
}
