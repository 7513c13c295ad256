//! `config.toml`: the accepted keys, and the errors for the rest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    io::ErrorKind,
    marker::PhantomData,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, anyhow, bail, ensure};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, Visitor, value::MapAccessDeserializer},
};
use toml::Value;

use super::{Source, Sourced, environment::Environment, limit};
use crate::{bounded_read::file_or_pipe, duration, size, trust::require_ours};

pub(super) struct ConfigFiles(Vec<ConfigFile>);

pub(super) struct ConfigFile {
    pub(super) path: PathBuf,
    content: Content,
}

// Neither this nor its content has a `Debug`: a URL may hold a password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    default: Option<String>,
    #[serde(default, deserialize_with = "op_timeout")]
    op_timeout: Option<Duration>,
    /// In bytes.
    #[serde(default, deserialize_with = "max_details")]
    max_details: Option<u64>,
    #[serde(default, deserialize_with = "boards")]
    board: BTreeMap<String, BoardTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BoardTable {
    pub(super) url: String,
    pub(super) who: Option<String>,
    pub(super) read_only: Option<bool>,
    pub(super) protected: Option<bool>,
    pub(super) password_file: Option<PathBuf>,
    #[serde(default, deserialize_with = "password_command")]
    pub(super) password_command: Option<Vec<String>>,
    #[serde(default, deserialize_with = "history")]
    pub(super) history: Option<u32>,
    /// May hold a password.
    pub(super) logbook: Option<String>,
    #[serde(default, deserialize_with = "conduct")]
    pub(super) conduct: Option<MayRun>,
}

/// The `conduct` of a board: the execution policy of its conductors, unless their command lines set one.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct MayRun {
    pub(crate) handlers: Option<PathBuf>,
    pub(crate) allow: Vec<String>,
    pub(crate) allow_any: bool,
    pub(crate) allow_env: Vec<String>,
}

#[derive(Clone, Copy)]
pub(super) struct FoundTable<'a> {
    pub(super) file: &'a ConfigFile,
    pub(super) table: &'a BoardTable,
}

impl ConfigFiles {
    pub(super) fn read(
        named: Option<&Sourced<PathBuf>>,
        env: &Environment,
    ) -> anyhow::Result<Self> {
        if let Some(Sourced { value, source }) = named {
            let file = ConfigFile::read(value).with_context(|| source.to_string())?;
            let lacking = || format!("{source}: file {} does not exist", value.display());
            let file = file.with_context(lacking)?;
            return Ok(Self(vec![file]));
        }
        let files = env.config_files().into_iter();
        let files = files.filter_map(|path| ConfigFile::read(&path).transpose());
        Ok(Self(files.collect::<anyhow::Result<_>>()?))
    }

    pub(super) fn paths(&self) -> Vec<PathBuf> {
        self.0.iter().map(|file| file.path.clone()).collect()
    }

    pub(super) fn table(&self, name: &str) -> Option<FoundTable<'_>> {
        self.0.iter().find_map(|file| {
            let table = file.content.board.get(name)?;
            Some(FoundTable { file, table })
        })
    }

    pub(super) fn names(&self) -> BTreeSet<&str> {
        let tables = self.0.iter().flat_map(|file| file.content.board.keys());
        tables.map(String::as_str).collect()
    }

    pub(super) fn default_board(&self) -> Option<Sourced<String>> {
        self.first(|content| content.default.clone())
    }

    pub(super) fn op_timeout(&self) -> Option<Sourced<Duration>> {
        self.first(|content| content.op_timeout)
    }

    pub(super) fn max_details(&self) -> Option<Sourced<u64>> {
        self.first(|content| content.max_details)
    }

    fn first<T>(&self, pick: impl Fn(&Content) -> Option<T>) -> Option<Sourced<T>> {
        self.0
            .iter()
            .find_map(|file| Some(Sourced::new(pick(&file.content)?, file.source())))
    }
}

impl ConfigFile {
    fn read(path: &Path) -> anyhow::Result<Option<Self>> {
        // The timeout of an operation, by default: the file itself may set another.
        let read = file_or_pipe(path, limit::MAX_FILE_BYTES, limit::OP_TIMEOUT);
        let text = |bytes| String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into());
        match read.and_then(text) {
            Ok(text) => Self::parse(path, &text).map(Some),
            // Users of daemons have homes such as /dev/null.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                bail!("cannot read {}: the file is not UTF-8", path.display())
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    fn parse(path: &Path, text: &str) -> anyhow::Result<Self> {
        let content: Content = toml::from_str(text).map_err(|error| located(path, text, &error))?;
        let path = path.to_owned();
        for name in content.board.keys() {
            ensure!(
                !name.is_empty() && !name.contains(':'),
                "{}: a board name must not be empty or contain `:`, which marks a URL",
                path.display()
            );
        }
        ensure!(
            content.default.iter().all(|name| !name.contains(':')),
            "{}: `default` must be the name of a board, not a URL; put the URL into a [board.NAME] \
             table",
            path.display()
        );
        Ok(Self { path, content })
    }

    pub(super) fn source(&self) -> Source {
        Source::File(self.path.clone())
    }

    pub(super) fn directory(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new(""))
    }
}

impl FoundTable<'_> {
    pub(super) fn value<T>(&self, pick: impl Fn(&BoardTable) -> Option<T>) -> Option<Sourced<T>> {
        Some(Sourced::new(pick(self.table)?, self.file.source()))
    }

    /// Refuses a table with a command or a password if other users can write the file. They could run programs as us,
    /// or redirect the password.
    pub(super) fn require_trust(&self, has_secret: bool) -> anyhow::Result<()> {
        let table = self.table;
        let logbook = table.logbook.as_ref().is_some_and(|url| url.contains('@'));
        let is_command = table.password_command.is_some() || table.conduct.is_some();
        if !(has_secret || logbook || is_command || table.password_file.is_some()) {
            return Ok(());
        }
        self.require_ours("a command or a password")
    }

    pub(super) fn require_ours(&self, sets: &str) -> anyhow::Result<()> {
        let path = &self.file.path;
        require_ours(path).with_context(|| format!("{} sets {sets}", path.display()))
    }

    pub(super) fn may_run(self) -> Option<Sourced<MayRun>> {
        let mut may_run = self.value(|table| table.conduct.clone())?;
        if let Some(directory) = &mut may_run.value.handlers {
            *directory = self.file.directory().join(&*directory);
        }
        Some(may_run)
    }
}

/// Describes the error and its line number, without the line: it may hold a password.
fn located(path: &Path, text: &str, error: &toml::de::Error) -> anyhow::Error {
    let path = path.display();
    let before = error.span().and_then(|span| text.get(..span.start));
    let key = before.and_then(key_of_value);
    let message = without_value(error.message(), key);
    match before {
        Some(before) => anyhow!(
            "{path}, line {}: {message}",
            before.matches('\n').count() + 1
        ),
        None => anyhow!("{path}: {message}"),
    }
}

/// Returns the key of the value that follows this text.
fn key_of_value(before: &str) -> Option<&str> {
    let name = before.trim_end().strip_suffix('=')?.trim_end();
    let is_other = |it: char| !it.is_ascii_alphanumeric() && !['_', '-'].contains(&it);
    name.rsplit(is_other).next().filter(|it| !it.is_empty())
}

/// Cuts the value out of serde's `invalid type: string "hunter2", expected a boolean`.
fn without_value(message: &str, key: Option<&str>) -> String {
    let value = key.map_or_else(|| "the value".to_owned(), |key| format!("`{key}`"));
    let quotes = ["invalid type: ", "invalid value: "];
    match message.rsplit_once(", expected ") {
        Some((wrong, wanted)) if quotes.iter().any(|quote| wrong.starts_with(quote)) => {
            // Use the words of TOML.
            let wanted = match wanted {
                "a map" => "a table",
                "a boolean" => "true or false",
                "a sequence" => "an array of strings",
                "path string" => "a string with a path",
                wanted => wanted,
            };
            format!("{value} must be {wanted}")
        }
        _ if message.contains("$__toml_private_datetime") => {
            format!("{value} must not be a date or a time")
        }
        // The word of TOML, not of serde.
        _ => message.replacen(" field `", " key `", 1),
    }
}

/// Accepts only tables: serde also reads an array, as the values of a table's keys.
struct OnlyTable<T> {
    form: &'static str,
    table: PhantomData<T>,
}

impl<T> OnlyTable<T> {
    fn of(form: &'static str) -> Self {
        let table = PhantomData;
        Self { form, table }
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OnlyTable<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.form)
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

fn boards<'de, D: Deserializer<'de>>(reader: D) -> Result<BTreeMap<String, BoardTable>, D::Error> {
    #[derive(Deserialize)]
    struct Board(#[serde(deserialize_with = "board")] BoardTable);
    let boards = BTreeMap::<String, Board>::deserialize(reader)?.into_iter();
    Ok(boards.map(|(name, Board(table))| (name, table)).collect())
}

fn board<'de, D: Deserializer<'de>>(reader: D) -> Result<BoardTable, D::Error> {
    reader.deserialize_map(OnlyTable::of("a table with at least a `url`"))
}

fn conduct<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<MayRun>, D::Error> {
    let form = "a table such as { allow = [\"/usr/bin/*\"] }";
    reader.deserialize_map(OnlyTable::of(form)).map(Some)
}

fn op_timeout<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Duration>, D::Error> {
    let read = match Value::deserialize(reader)? {
        Value::String(text) => duration::parse(&text).map_err(|error| error.to_string()),
        _ => {
            return Err(D::Error::custom(
                "op_timeout must be a string such as \"5s\"",
            ));
        }
    };
    let timeout = read.and_then(|it| limit::check_op_timeout(it).map_err(str::to_owned));
    let timeout = timeout.map_err(|problem| D::Error::custom(format!("op_timeout: {problem}")));
    timeout.map(Some)
}

fn max_details<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    let bytes = match Value::deserialize(reader)? {
        Value::Integer(bytes) => u64::try_from(bytes).ok(),
        Value::String(text) => size::parse(&text),
        _ => None,
    };
    let wrong = "max_details must be a number of bytes or a string such as \"512KiB\", \"1MiB\" or \
                 \"1GiB\"";
    let bytes = bytes.filter(|bytes| *bytes > 0);
    bytes.map(Some).ok_or_else(|| D::Error::custom(wrong))
}

fn history<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u32>, D::Error> {
    let entries = Value::deserialize(reader)?.as_integer();
    let entries = entries.and_then(|it| u32::try_from(it).ok());
    let wrong = || format!("history must be a whole number from 0 to {}", u32::MAX);
    entries.map(Some).ok_or_else(|| D::Error::custom(wrong()))
}

/// Reads the words of a command, the program first.
fn password_command<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<Vec<String>>, D::Error> {
    let Value::Array(words) = Value::deserialize(reader)? else {
        return Err(D::Error::custom(
            "password_command must be an array such as [\"pass\", \"show\", \"redis\"]; no shell \
             splits a string",
        ));
    };
    let words = words.iter().map(|word| Some(word.as_str()?.to_owned()));
    let problem = match words.collect::<Option<Vec<_>>>() {
        None => "password_command must contain only strings",
        Some(words) if words.first().is_some_and(|it| !it.is_empty()) => return Ok(Some(words)),
        Some(_) => "password_command must begin with a program",
    };
    Err(D::Error::custom(problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::untrusted::{Answer, Bounds, Corpus, refused};

    const PASSWORD: &str = "hunter2";

    const FILES: [&str; 3] = [
        "default = \"prod\"\nop_timeout = \"5s\"\nmax_details = \"1MiB\"\n\n[board.prod]\n\
         url = \"redis://:hunter2@localhost/0\"\nwho = \"ada\"\nread_only = true\nhistory = 100\n",
        "max_details = 4096\n[board.\"a b\"]\nurl = \"zk://h1/jobs\"\nprotected = true\n\
         password_command = [\"pass\", \"show\", \"zk\"]\n",
        "[board.b]\nurl = \"sqlite:/b.db\"\n\
         conduct = { handlers = \"h\", allow = [\"/bin/*\"], allow_any = false, allow_env = [] }\n",
    ];

    #[test]
    fn untrusted_configurations_never_reveal_a_password() {
        let bounds = Bounds {
            longest: 4096,
            memory: (256 << 10, 16 << 10),
            words: 8192,
            ..Bounds::STORED
        };
        Corpus::of(bounds, FILES).hold_for_text(|text| {
            let file = match ConfigFile::parse(Path::new("config.toml"), text) {
                Ok(file) => file,
                Err(error) => {
                    let message = format!("{error:#}");
                    let mut lines = text.lines().filter(|line| line.contains(PASSWORD));
                    let is_a_value = lines.all(|line| line.starts_with("url = \""));
                    return match message.contains(PASSWORD) && is_a_value {
                        true => Err(format!("the password is shown: {message}")),
                        false => refused(&message),
                    };
                }
            };
            let files = ConfigFiles(vec![file]);
            for name in files.names() {
                let table = files
                    .table(name)
                    .ok_or_else(|| format!("`{name}` is lost"))?;
                let _ = table.may_run();
            }
            let _ = (
                files.default_board(),
                files.op_timeout(),
                files.max_details(),
            );
            Ok(Answer::Read)
        });
    }
}
