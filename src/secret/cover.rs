//! Masks text that looks like a secret.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};
use serde_json::Value;

const COVER: &str = "******** (--reveal shows it)";

pub(crate) fn is_covered(text: &str) -> bool {
    text.contains("********")
}

pub(crate) fn has_cover(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_cover),
        Value::Array(items) => items.iter().any(has_cover),
        Value::String(text) => is_covered(text),
        _ => false,
    }
}

pub(crate) fn covered_member(name: &str, value: Value) -> Value {
    let member = Value::Object([(name.to_owned(), value)].into_iter().collect());
    let mut member = covered(&member);
    member[name].take()
}

pub(crate) fn covered(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| {
                let member = match is_secret_name(name) && !member.is_null() {
                    true => Value::from(COVER),
                    false => covered(member),
                };
                (name.clone(), member)
            })
            .collect(),
        Value::Array(items) => {
            let mut before = WordsBefore::default();
            let items = items.iter().map(|item| {
                let word = item.as_str().unwrap_or_default();
                let secret = before.secret_in(word).filter(|_| item.is_string());
                before.add(word);
                match secret {
                    Some(start) => Value::from(format!("{}{COVER}", &word[..start])),
                    None => covered(item),
                }
            });
            items.collect()
        }
        Value::String(text) if text.contains("-----BEGIN ") => Value::from(COVER),
        Value::String(text) => Value::from(covered_text(text)),
        other => other.clone(),
    }
}

/// Whether `covered` would mask some of these words.
pub(crate) fn have_secret(words: &[&str]) -> bool {
    let words = Value::from(words);
    covered(&words) != words
}

/// The state of a command line up to a word, which decides whether the next word is a secret.
#[derive(Default)]
struct WordsBefore<'a> {
    last: &'a str,
    /// The last program of [`TOOLS`].
    tool: &'static str,
    /// Whether all words after the tool are options.
    has_only_options: bool,
}

impl<'a> WordsBefore<'a> {
    fn add(&mut self, word: &'a str) {
        let name = word.rsplit('/').next().unwrap_or_default();
        match TOOLS.into_iter().find(|it| name.eq_ignore_ascii_case(it)) {
            Some(tool) => (self.tool, self.has_only_options) = (tool, true),
            None => self.has_only_options &= word.starts_with('-'),
        }
        self.last = word;
    }

    /// Returns where the secret begins in the next word, if it is one.
    fn secret_in(&self, word: &str) -> Option<usize> {
        let is_attached = word.starts_with("-p") && word.len() > 2;
        match (self.tool, self.last) {
            (_, last) if is_secret_option(last) => Some(0),
            ("curl", "-u" | "--user" | "--proxy-user") => Some(word.find(':')? + 1),
            ("curl", "-b" | "--cookie") if word.contains('=') => Some(0),
            ("redis-cli", "-a") => Some(0),
            ("sshpass", "-p") if self.has_only_options => Some(0),
            ("sshpass", _) if self.has_only_options && is_attached => Some(2),
            ("mysql" | "mysqldump" | "mariadb", _) if is_attached => Some(2),
            _ => None,
        }
    }
}

/// Programs with a password among their arguments.
const TOOLS: [&str; 6] = [
    "curl",
    "redis-cli",
    "sshpass",
    "mysql",
    "mysqldump",
    "mariadb",
];

const TELLING: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "private_key",
    "privatekey",
    "secret",
    "token",
    "credential",
    "api_key",
];

const SIGNS: [&str; 17] = [
    "://",
    "eyj",
    "authorization",
    "bearer",
    "cookie",
    "_u",
    "_user",
    "sshpass",
    "mysql",
    "mariadb",
    "curl",
    "redis_cli",
    "_pass",
    "_pwd",
    "_key",
    "pass:",
    "sig=",
];

const PASSWORD_IN_URL: &str = r"(\w+://[^\s/:@]*:)\S*(@)";

static URL_PASSWORD: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PASSWORD_IN_URL).ok());

/// Each captures the text before a secret, and the secret. Values may be quoted, and words in a list.
static SECRETS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let telling = format!("(?:{})", TELLING.join("|").replace('_', "[-_]"));
    // The name of a file is no sign.
    let telling = telling.replace("passwd", "(?:^|[^/])passwd");
    let value = r#"(?:"[^"]*"?|'[^']*'?|[^\s"']+)"#;
    let next = r#"['",]*[ \t]+"#;
    let option = r#"(?:^|[\s'"])"#;
    let login = format!("{option}(?:-u|--user|--proxy-user)(?:=|{next})");
    let patterns = [
        PASSWORD_IN_URL.to_owned(),
        r"()\beyJ[\w-]{6,}\.[\w-]{9,}\.[\w-]*".to_owned(),
        r#"(authorization: *\w+ +|\bbearer +)[^\s'"]{8,}"#.to_owned(),
        r#"(cookie:[ \t]*)[^\s'"][^'"\n]*"#.to_owned(),
        format!("({option}--cookie(?:=|{next})){value}"),
        format!(r"(\b(?:curl[^\n;|&]*?{option}-b|redis-cli[^\n;|&]*?{option}-a){next}){value}"),
        format!(r#"(\w_(?:pass|pwd)(?:=|['"]:[ \t]*)){value}"#),
        format!(r#"(\b(?:auth|access|account|client|storage)[-_]key['"]?[ \t]*[=:][ \t]*){value}"#),
        r#"(-pass(?:in|out)?[ =]+pass:|[?&]sig=)[^\s'"&]+"#.to_owned(),
        format!(r"({login}'[^\s:']+:)[^']*"),
        format!(r#"({login}"[^\s:"]+:)[^"]*"#),
        format!(r#"({login}[^\s:'"]+:)[^\s'"]+"#),
        format!(r#"(sshpass(?:{next}-[^p]\S*)*{next}['"]?-p['",]*[ \t]*){value}"#),
        format!(r#"(\b(?:mysql|mariadb)[^\n]*[\s'"]-p){value}"#),
        format!(r"({telling}[^\s=:]*[=:][ \t]*){value}"),
        format!(r"({option}--?[\w-]*{telling}[\w-]*{next}){value}"),
        // A word without digits may be ordinary text: "the password is wrong".
        format!(
            r#"({telling}(?: for \S+)? (?:is|was)(?: now| set to)?:? )(?:"[^"]*"?|'[^']*'?|[^\s"']*\d[^\s"']*)"#
        ),
    ];
    let compile = |it: &String| Regex::new(&format!("(?i){it}")).ok();
    patterns.iter().filter_map(compile).collect()
});

/// Covers only the passwords in URLs. The port of a host is none.
pub(crate) fn covered_urls(text: &str) -> Cow<'_, str> {
    let url_password = || URL_PASSWORD.as_ref();
    let Some(password) = text.contains("://").then(url_password).flatten() else {
        return text.into();
    };
    password.replace_all(text, |found: &Captures<'_>| {
        let secret = &found[0][found[1].len()..];
        let behind = secret.trim_start_matches(|it: char| it.is_ascii_digit());
        match behind.len() < secret.len() && behind.starts_with(['/', '?', ',']) {
            true => found[0].to_owned(),
            false => format!("{}********{}", &found[1], &found[2]),
        }
    })
}

pub(crate) fn covered_text(text: &str) -> String {
    let mut shown = String::new();
    let first_mark = text.lines().find(|line| line.contains("-----"));
    // Long output keeps only its end, so a key may have lost its first line.
    let mut is_key =
        first_mark.is_some_and(|line| line.contains("-----END ") && !line.contains("-----BEGIN "));
    if is_key {
        shown.push_str("********\n");
    }
    for line in text.split_inclusive('\n') {
        if is_key || line.contains("-----BEGIN ") {
            if !is_key {
                shown.push_str("********\n");
            }
            is_key = !line.contains("-----END ");
            continue;
        }
        // Few lines contain a sign, and this check is much faster.
        let low = line.to_ascii_lowercase().replace('-', "_");
        let mut signs = SIGNS.iter().chain(&TELLING);
        if !signs.any(|it| low.contains(it)) {
            shown.push_str(line);
            continue;
        }
        // The rest after the password in a URL is no secret.
        let cover = |line: String, secret: &Regex| match secret.replace_all(&line, "$1********$2") {
            Cow::Owned(covered) => covered,
            Cow::Borrowed(_) => line,
        };
        shown.push_str(&SECRETS.iter().fold(line.to_owned(), cover));
    }
    shown
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = ["pass", "pwd"].iter().any(|end| {
        let before = name.strip_suffix(end);
        before.is_some_and(|before| before.is_empty() || before.ends_with('_'))
    });
    let exact = ["accesskey", "authorization", "cookie", "server_pem"];
    TELLING.iter().any(|telling| name.contains(telling)) || exact.contains(&name.as_str()) || ends
}

fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains('=') && is_secret_name(word.trim_start_matches('-'))
}
