//! `octavia:[FILE]`: a board that Octavia's own configuration describes.

mod oslo;
mod server;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};

use self::oslo::{Oslo, OsloValue};
use super::{Environment, Setting, Source, Sourced};
use crate::{board::url::BoardUrl, logbook::LogbookUrl, secret::Secret};

const GROUP: &str = "task_flow";

const LOGBOOK: &str = "persistence_connection";

const DATABASE: (&str, &str) = ("database", "connection");

const EXPIRY: &str = "jobboard_expiration_time";

/// The URL of an in-process database.
const IN_MEMORY: &str = "sqlite://";

const NOTE: &str = "note";

#[derive(Debug, Clone)]
pub(crate) struct Octavia {
    pub(super) url: BoardUrl,
    pub(super) password: Option<Sourced<Secret>>,
    pub(super) logbook: Option<Sourced<Secret>>,
    pub(crate) database: Option<Sourced<Secret>>,
    /// How long a claim of Octavia's conductors lasts.
    pub(crate) expiry: Duration,
    /// The settings, with notes on the unsupported and the doubtful ones.
    pub(super) settings: Vec<Setting>,
}

/// The options for the board and the logbook, with Octavia's defaults.
const OPTIONS: [(&str, Option<&str>); 17] = [
    ("jobboard_enabled", Some("False")),
    ("jobboard_backend_driver", Some("redis_taskflow_driver")),
    ("jobboard_backend_hosts", Some("127.0.0.1")),
    ("jobboard_backend_port", Some("6379")),
    ("jobboard_backend_username", None),
    ("jobboard_backend_password", None),
    ("jobboard_backend_namespace", Some("octavia_jobboard")),
    ("jobboard_redis_backend_db", Some("0")),
    ("jobboard_redis_sentinel", None),
    ("jobboard_redis_sentinel_username", None),
    ("jobboard_redis_sentinel_password", None),
    ("jobboard_redis_backend_ssl_options", Some("ssl:False")),
    ("jobboard_redis_sentinel_ssl_options", Some("ssl:False")),
    ("jobboard_zookeeper_ssl_options", Some("use_ssl:False")),
    ("jobboard_expiration_time", Some("30")),
    ("jobboard_save_logbook", Some("False")),
    ("persistence_connection", Some("sqlite://")),
];

fn is_option(group: &str, name: &str) -> bool {
    let is_known = group == GROUP && OPTIONS.iter().any(|(known, _)| *known == name);
    is_known || (group, name) == DATABASE
}

fn default(group: &str, name: &str) -> Option<&'static str> {
    if (group, name) == DATABASE {
        return Some(IN_MEMORY);
    }
    let (_, default) = OPTIONS.into_iter().find(|(known, _)| *known == name)?;
    default.filter(|_| group == GROUP)
}

impl Octavia {
    pub(super) fn read(named: &str, directory: &Path, env: &Environment) -> anyhow::Result<Self> {
        let files = find_files(named, directory, env)?;
        let mut oslo = Oslo::new(default, env);
        for file in &files {
            oslo.read(file)?;
        }
        let directory = files.first().and_then(|file| file.parent());
        Self::of(oslo, directory.unwrap_or(Path::new("")))
    }

    fn of(oslo: Oslo<'_>, directory: &Path) -> anyhow::Result<Self> {
        let notes = Vec::new();
        Reader { oslo, notes }.finish(directory)
    }

    pub(crate) fn notes(&self) -> impl Iterator<Item = String> {
        let notes = self.settings.iter().filter(|it| it.key == NOTE);
        notes.map(Setting::text)
    }
}

struct Reader<'a> {
    oslo: Oslo<'a>,
    notes: Vec<(&'static str, String)>,
}

impl Reader<'_> {
    fn finish(mut self, directory: &Path) -> anyhow::Result<Octavia> {
        let (url, password) = match self.required("jobboard_backend_driver")?.text.as_str() {
            "redis_taskflow_driver" => self.redis()?,
            "zookeeper_taskflow_driver" => (self.zookeeper()?, None),
            "etcd_taskflow_driver" => {
                bail!("Octavia uses a board on etcd; jobboard supports Redis and ZooKeeper")
            }
            _ => bail!("jobboard_backend_driver names an unknown driver"),
        };
        let expiry = self.number(EXPIRY)?;
        if !(1..=3600).contains(&expiry) {
            let problem = "claims expire immediately, or a job waits for hours after its worker \
                           dies";
            self.note(EXPIRY, problem);
        }
        self.is_true("jobboard_save_logbook")?;
        if !self.is_true("jobboard_enabled")? {
            let problem = "Octavia does not use its board until this is True";
            self.note("jobboard_enabled", problem);
        }
        let logbook = self.secret(LOGBOOK)?;
        let logbook = logbook.filter(|it| it.value.expose() != IN_MEMORY);
        if logbook.is_none() {
            let problem = "logbooks stay in the memory of each process, so no other process can \
                           resume a flow";
            self.note(LOGBOOK, problem);
        }
        let database = self.oslo.value(DATABASE.0, DATABASE.1)?;
        let database = database.filter(|value| value.text != IN_MEMORY);
        Ok(Octavia {
            database: database.map(secret),
            logbook,
            url: url.relative_to(directory),
            password,
            expiry: Duration::from_secs(expiry),
            settings: self.settings()?,
        })
    }

    fn settings(&self) -> anyhow::Result<Vec<Setting>> {
        let mut settings = Vec::new();
        for (option, _) in OPTIONS {
            let Some(place) = self.oslo.place(GROUP, option) else {
                continue;
            };
            let text = self.text(option)?;
            let text = text.map_or_else(String::new, |it| it.text);
            settings.push(Setting {
                key: format!("{GROUP}.{option}"),
                value: shown(option, text).into(),
                source: place,
            });
        }
        let notes = self.notes.iter().map(|(option, problem)| Setting {
            key: NOTE.to_owned(),
            value: format!("{option}: {problem}").into(),
            source: self.place(option),
        });
        settings.extend(notes);
        Ok(settings)
    }

    fn note(&mut self, option: &'static str, problem: impl Into<String>) {
        self.notes.push((option, problem.into()));
    }

    fn place(&self, option: &str) -> String {
        let place = self.oslo.place(GROUP, option);
        place.unwrap_or_else(|| Source::Default.to_string())
    }

    fn text(&self, option: &str) -> anyhow::Result<Option<OsloValue>> {
        self.oslo.value(GROUP, option)
    }

    fn required(&self, option: &str) -> anyhow::Result<OsloValue> {
        self.text(option)?
            .with_context(|| format!("{option} is not set"))
    }

    fn number<T: std::str::FromStr>(&self, option: &str) -> anyhow::Result<T> {
        let OsloValue { text, place } = self.required(option)?;
        oslo::number(&text).with_context(|| format!("{place}: {option} is not a valid number"))
    }

    fn is_true(&self, option: &str) -> anyhow::Result<bool> {
        let OsloValue { text, place } = self.required(option)?;
        oslo::is_true(&text).with_context(|| format!("{place}: {option} is neither True nor False"))
    }

    fn secret(&self, option: &str) -> anyhow::Result<Option<Sourced<Secret>>> {
        let value = self.text(option)?.filter(|value| !value.text.is_empty());
        Ok(value.map(secret))
    }
}

fn shown(option: &str, text: String) -> String {
    const SET: &str = "set";
    if option.ends_with("_password") {
        return SET.to_owned();
    }
    if option == LOGBOOK {
        return LogbookUrl::shown(&text);
    }
    match oslo::dict(&text) {
        Ok(pairs) if option.ends_with("_ssl_options") => {
            let pairs = pairs
                .into_iter()
                .map(|(key, value)| match key.contains("password") {
                    true => format!("{key}:{SET}"),
                    false => format!("{key}:{value}"),
                });
            pairs.collect::<Vec<_>>().join(",")
        }
        _ => text,
    }
}

fn secret(OsloValue { text, place }: OsloValue) -> Sourced<Secret> {
    Sourced::new(Secret::new(text), Source::Octavia(place))
}

/// Returns the files, later ones override earlier ones. A named directory stands for its files. The default is
/// Octavia's own file and the files in its directory.
fn find_files(named: &str, directory: &Path, env: &Environment) -> anyhow::Result<Vec<PathBuf>> {
    // It may contain a password.
    ensure!(!named.contains("://"), "octavia:FILE takes no URL");
    let named = match named {
        "" => {
            let directory = env.etc.join("octavia");
            let mut named = vec![directory.join("octavia.conf")];
            named.extend(Some(directory.join("octavia.conf.d")).filter(|it| it.is_dir()));
            named
        }
        named => {
            let files = named.split(',').filter(|file| !file.is_empty());
            files.map(|file| directory.join(file)).collect::<Vec<_>>()
        }
    };
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.append(&mut files_in(&path)?);
            continue;
        }
        let exists = path.try_exists();
        let exists = exists.with_context(|| format!("cannot access {}", path.display()))?;
        ensure!(
            exists,
            "file {} does not exist; name the configuration as octavia:FILE, or several as \
             octavia:FILE,FILE",
            path.display()
        );
        files.push(path);
    }
    Ok(files)
}

fn files_in(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let trying = || format!("cannot read the directory {}", directory.display());
    let entries = fs::read_dir(directory).with_context(trying)?;
    let paths = entries.map(|entry| Ok(entry.with_context(trying)?.path()));
    let mut paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    paths.retain(|path| {
        path.extension() == Some(OsStr::new("conf")) && !path.file_name().is_some_and(is_hidden)
    });
    paths.sort();
    Ok(paths)
}
