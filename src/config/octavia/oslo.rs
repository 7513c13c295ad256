//! Configuration files of OpenStack services: `KEY = VALUE` below `[GROUP]`.
//!
//! The rules are from oslo.config. A value continues on indented lines and loses its quotes; `$NAME` and
//! `${GROUP.NAME}` refer to other values. Later values and the environment win.

use std::{
    cell::Cell,
    collections::{BTreeMap, HashMap},
    path::Path,
    str::FromStr,
    sync::LazyLock,
};

use anyhow::{Context as _, bail, ensure};
use regex::Regex;

use crate::{
    bounded_read::file_or_pipe,
    config::{Environment, limit},
};

/// The deepest nesting of references. A deeper reference stays unexpanded.
const DEEPEST: usize = 16;

const MAX_NAMES: u32 = 10_000;

/// The largest size of all files together, and of an expanded value.
const MAX_BYTES: usize = 1 << 20;

const DEFAULT: &str = "DEFAULT";

/// `$$`, `$NAME` or `${NAME}`. Any other `$` stands for itself.
static REFERENCE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?-u)\$(?:\$|([A-Za-z_][\w.]*)|\{([A-Za-z_][\w.]*)\})").ok());

pub(super) struct Oslo<'a> {
    values: HashMap<(String, String), OsloValue>,
    default: fn(&str, &str) -> Option<&'static str>,
    env: &'a Environment,
    names: Cell<u32>,
    size: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OsloValue {
    pub(super) text: String,
    pub(super) place: String,
}

impl<'a> Oslo<'a> {
    pub(super) fn new(
        default: fn(&str, &str) -> Option<&'static str>,
        env: &'a Environment,
    ) -> Self {
        let values = HashMap::new();
        Self {
            values,
            default,
            env,
            names: Cell::new(0),
            size: 0,
        }
    }

    pub(super) fn read(&mut self, path: &Path) -> anyhow::Result<()> {
        let trying = || format!("cannot read {}", path.display());
        let bytes = file_or_pipe(path, MAX_BYTES as u64, limit::OP_TIMEOUT).with_context(trying)?;
        self.size += bytes.len();
        ensure!(
            self.size <= MAX_BYTES,
            "{}: the configuration files together are too large",
            trying()
        );
        let text = String::from_utf8(bytes).ok();
        let text = text.with_context(|| format!("{}: the file is not UTF-8", trying()))?;
        self.parse_file(path, &text)
    }

    /// Merges the text of a file. No error repeats a line, which may hold a password.
    pub(super) fn parse_file(&mut self, path: &Path, text: &str) -> anyhow::Result<()> {
        ensure!(
            !text.starts_with('\u{feff}'),
            "{}:1: the file begins with a byte order mark, which Octavia cannot read either",
            path.display()
        );
        let text = text.replace("\r\n", "\n");
        let (mut group, mut open) = (None, None::<&mut OsloValue>);
        for (at, line) in text.split(['\n', '\r']).enumerate() {
            let place = format!("{}:{}", path.display(), at + 1);
            let line = line.trim_end();
            if line.starts_with([' ', '\t']) {
                let Some(open) = &mut open else {
                    bail!("{place}: the continuation line follows no option");
                };
                open.text.push('\n');
                open.text.push_str(line.trim_start());
                continue;
            }
            open = None;
            if let Some(rest) = line.strip_prefix('[') {
                let name = rest.strip_suffix(']').filter(|name| !name.is_empty());
                let name = name.with_context(|| format!("{place}: a group has the form [GROUP]"));
                group = Some(group_key(name?));
            } else if !line.is_empty() && !line.starts_with(['#', ';']) {
                let (key, value) = line
                    .split_once([':', '='])
                    .with_context(|| format!("{place}: an option has the form KEY = VALUE"))?;
                let (key, text) = (key.trim().to_owned(), unquoted(value.trim()).to_owned());
                ensure!(!key.is_empty(), "{place}: the key before `=` is missing");
                let Some(group) = group.clone() else {
                    bail!("{place}: the option comes before any [GROUP]");
                };
                let value = OsloValue { text, place };
                let entry = self.values.entry((group, key)).insert_entry(value);
                open = Some(entry.into_mut());
            }
        }
        Ok(())
    }

    pub(super) fn value(&self, group: &str, name: &str) -> anyhow::Result<Option<OsloValue>> {
        self.value_at(group, name, 0)
    }

    pub(super) fn place(&self, group: &str, name: &str) -> Option<String> {
        self.written(group, name).map(|value| value.place)
    }

    fn value_at(&self, group: &str, name: &str, depth: usize) -> anyhow::Result<Option<OsloValue>> {
        let default = || {
            Some(OsloValue {
                text: (self.default)(group, name)?.to_owned(),
                place: "default".to_owned(),
            })
        };
        let Some(value) = self.written(group, name).or_else(default) else {
            return Ok(None);
        };
        let text = self.substitute(&value.text, group, depth);
        let text = match depth {
            0 => text.with_context(|| format!("{}: {name} of [{group}]", value.place))?,
            _ => text?,
        };
        Ok(Some(OsloValue { text, ..value }))
    }

    fn written(&self, group: &str, name: &str) -> Option<OsloValue> {
        let variable = format!("OS_{}__{}", group.to_uppercase(), name.to_uppercase());
        let from_env = self.env.variable(&variable);
        match from_env.and_then(|value| value.into_string().ok()) {
            Some(text) => Some(OsloValue {
                text,
                place: variable,
            }),
            None => {
                let key = (group_key(group), name.to_owned());
                self.values.get(&key).cloned()
            }
        }
    }

    fn substitute(&self, text: &str, group: &str, depth: usize) -> anyhow::Result<String> {
        ensure!(depth < DEEPEST, "the value refers to itself");
        let text = text.replace("\\$", "$$");
        if !text.contains('$') {
            return Ok(text);
        }
        let (mut whole, mut end) = (String::new(), 0);
        for found in REFERENCE.iter().flat_map(|it| it.captures_iter(&text)) {
            let place = found.get_match();
            whole.push_str(&text[end..place.start()]);
            end = place.end();
            match found.get(1).or(found.get(2)) {
                Some(name) => whole.push_str(&self.referred(name.as_str(), group, depth)?),
                None => whole.push('$'),
            }
            ensure!(whole.len() <= MAX_BYTES, "the value is too long");
        }
        whole.push_str(&text[end..]);
        Ok(whole)
    }

    fn referred(&self, name: &str, group: &str, depth: usize) -> anyhow::Result<String> {
        self.names.update(|names| names + 1);
        ensure!(
            self.names.get() <= MAX_NAMES,
            "the value contains too many references"
        );
        let places = match name.split_once('.') {
            // The name matches no group.
            Some((DEFAULT, _)) => Vec::new(),
            Some((group, name)) => vec![(group, name)],
            None => vec![(group, name), (DEFAULT, name)],
        };
        for (group, name) in places {
            if let Some(value) = self.value_at(group, name, depth + 1)? {
                return Ok(value.text);
            }
            // A known option without a value is an empty text.
            if super::is_option(group, name) {
                return Ok(String::new());
            }
        }
        // It may be a part of a password.
        bail!("a `$` refers to an option without a value; write `$$` for a literal `$`")
    }
}

/// Group names ignore case, except for the default group.
fn group_key(group: &str) -> String {
    match group {
        DEFAULT => group.to_owned(),
        group => group.to_lowercase(),
    }
}

fn unquoted(value: &str) -> &str {
    let is_quoted = |quote: &char| value.starts_with(*quote) && value.ends_with(*quote);
    match ['"', '\''].iter().any(is_quoted) {
        true => value.get(1..value.len() - 1).unwrap_or_default(),
        false => value,
    }
}

/// Reads a comma-separated list. Its parts keep their quotes.
pub(super) fn list(text: &str) -> Vec<String> {
    let text = text.trim().trim_end_matches(',');
    match text {
        "" => Vec::new(),
        text => text.split(',').map(|it| it.trim().to_owned()).collect(),
    }
}

/// Reads `KEY:VALUE` between commas. A value may contain commas if no colon follows.
pub(super) fn dict(text: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut pairs = BTreeMap::new();
    if text.trim().is_empty() {
        return Ok(pairs);
    }
    let mut pending = String::new();
    for part in text.trim().split(',') {
        pending.push_str(part);
        let Some((key, value)) = pending.split_once(':') else {
            pending.push(',');
            continue;
        };
        let (key, value) = (key.trim().to_owned(), value.trim().to_owned());
        ensure!(!key.is_empty(), "a key before `:` is missing");
        ensure!(!pairs.contains_key(&key), "{key} is given twice");
        pairs.insert(key, value);
        pending.clear();
    }
    ensure!(
        pending.is_empty(),
        "the option has the form KEY:VALUE,KEY:VALUE"
    );
    Ok(pairs)
}

/// Reads a whole number with optional single `_` between digits.
pub(super) fn number<T: FromStr>(text: &str) -> Option<T> {
    let text = text.trim();
    let is_parted = text.split('_').all(|part| !part.is_empty());
    let digits = text.replace('_', "");
    digits.parse().ok().filter(|_| is_parted)
}

pub(super) fn is_true(text: &str) -> Option<bool> {
    match text.to_lowercase().as_str() {
        "true" | "1" | "on" | "yes" => Some(true),
        "false" | "0" | "off" | "no" => Some(false),
        _ => None,
    }
}
