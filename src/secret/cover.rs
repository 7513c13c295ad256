//! Masks text that looks like a secret.

use std::{borrow::Cow, sync::LazyLock};

use regex::Regex;
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
        r"(\w+://[^\s/:@]*:)\S*(@)".to_owned(),
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_at_any_depth() {
        let shown = covered(&json!({
            "user": "ada",
            "db_password": "x",
            "store": {"tls": [{"private_key": "y"}, "-----BEGIN RSA PRIVATE KEY-----\nz"]},
            "token": null,
            "DB_PASS": "p1ain",
            "url": "mysql://ada:p1ain@h/x",
            "command": ["curl", "--token", "p1ain", "--api-key=p1ain", "h"],
            "compass": "north",
        }));
        assert_eq!(shown["compass"], "north");
        assert_eq!(shown["command"][4], "h");
        let text = shown.to_string();
        for secret in ["\"x\"", "\"y\"", "BEGIN", "p1ain"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(shown["user"], "ada");
        assert_eq!(shown["token"], Value::Null);
    }

    #[test]
    fn words_of_a_command_are_masked_by_the_words_before_them() {
        for command in [
            json!(["curl", "-u", "user:p1ain", "http://h"]),
            json!(["curl", "--user", "bob:p1ain two", "h"]),
            json!([
                "/usr/bin/curl",
                "-b",
                "sid=p1ain",
                "-u",
                "ada:p\"1ain p1ain",
                "h"
            ]),
            json!([
                "curl",
                "-u",
                "ada:p1ain",
                "-d",
                "{\"password\":\"x\",\"a\":\"b\"}"
            ]),
            json!(["mysql", "-uroot", "-pp1ain\"p1ain", "shop"]),
            json!(["sshpass", "-v", "-p", "p1ain", "ssh", "h"]),
            json!(["sshpass", "-pp1ain", "ssh", "-p", "22", "h"]),
            json!(["redis-cli", "-a", "p1ain", "PING"]),
        ] {
            let shown = covered(&command);
            let text = shown.to_string();
            assert!(!text.contains("p1ain"), "{text}");
            assert_eq!(shown[0], command[0]);
        }
        for plain in [
            json!(["sudo", "-u", "ada:x", 7, "git", "-b", "x"]),
            json!(["docker", "run", "--user", "1000:1000", "img"]),
            json!(["sshpass", "-V", "ssh", "-p", "22", "h"]),
            json!([
                "sh",
                "-c",
                "mysqldump db > f\ncp -pr f /backup\ncurl h && git -b main"
            ]),
        ] {
            assert_eq!(covered(&plain), plain);
        }
        let script = json!(["sh", "-c", "export DB_PASS=x\nmysql -h db < dump.sql"]);
        let shown = "export DB_PASS=********\nmysql -h db < dump.sql";
        assert_eq!(covered(&script)[2], shown);
    }

    const COVERED: &[(&str, &str)] = &[
        ("no such file: x\n", "no such file: x\n"),
        ("--db-password=x y", "--db-password=******** y"),
        ("Password: x\nz: y\n", "Password: ********\nz: y\n"),
        ("token:\nx", "token:\nx"),
        (
            "> Authorization: Bearer abcdefghijklmnop12345 (x)",
            "> Authorization: Bearer ******** (x)",
        ),
        (
            "authorization: basic YWRhOng=",
            "authorization: basic ********",
        ),
        ("the bearer of it", "the bearer of it"),
        (
            "Zm9v\nYmFy\n-----END RSA PRIVATE KEY-----\ndone\n",
            "********\ndone\n",
        ),
        (
            "curl -sS -u ada:x http://h",
            "curl -sS -u ada:******** http://h",
        ),
        ("sudo -u ada id", "sudo -u ada id"),
        (
            "DB_PASS=x MYSQL_PWD=y PWD=/",
            "DB_PASS=******** MYSQL_PWD=******** PWD=/",
        ),
        ("curl -b sid=x h; tar -b x", "curl -b ******** h; tar -b x"),
        ("redis-cli -a x PING", "redis-cli -a ******** PING"),
        ("http://h/?sig=x&b=1", "http://h/?sig=********&b=1"),
        ("-passin pass:x y", "-passin pass:******** y"),
        ("X-Auth-Key: x", "X-Auth-Key: ********"),
        (r#"{"client_key":"x"}"#, r#"{"client_key":********}"#),
        ("the primary key: 7", "the primary key: 7"),
        (
            "--user=ada:x --user ada:x",
            "--user=ada:******** --user ada:********",
        ),
        ("curl -u 'ada:x y z' h", "curl -u 'ada:********' h"),
        (
            "Command '['curl', '-u', 'ada:x', '--password', 'y']' failed",
            "Command '['curl', '-u', 'ada:********', '--password', ********]' failed",
        ),
        (
            "> Cookie: sid=x; t=y\nhttp://h?a=b",
            "> Cookie: ********\nhttp://h?a=b",
        ),
        (
            "-H 'Set-Cookie: sid=x; Path=/' h",
            "-H 'Set-Cookie: ********' h",
        ),
        ("curl --cookie sid=x h", "curl --cookie ******** h"),
        ("curl --cookie='sid=x; t=y' h", "curl --cookie=******** h"),
        (
            "sshpass -p x ssh -p 22 h",
            "sshpass -p ******** ssh -p 22 h",
        ),
        (
            "/usr/bin/sshpass -v -px ssh h",
            "/usr/bin/sshpass -v -p******** ssh h",
        ),
        (
            "['sshpass', '-p', 'x', 'ssh']",
            "['sshpass', '-p', ********, 'ssh']",
        ),
        (
            "mysql --password x --host h",
            "mysql --password ******** --host h",
        ),
        ("mysql -uroot -px h", "mysql -uroot -p******** h"),
        (
            "cat: /etc/passwd: Permission denied",
            "cat: /etc/passwd: Permission denied",
        ),
        ("db_passwd: x", "db_passwd: ********"),
        ("mysql --password 'x y' h", "mysql --password ******** h"),
        (
            r#"{"password": "x y", "a": 1}"#,
            r#"{"password": ********, "a": 1}"#,
        ),
        ("--db-password", "--db-password"),
        (
            "Your new password is now hunter2. The token was 'x y'.",
            "Your new password is now ******** The token was ********.",
        ),
        ("the password is wrong", "the password is wrong"),
        (
            "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl, not eyJ.a",
            "got ********, not eyJ.a",
        ),
        ("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ. x", "******** x"),
        (
            "at redis://a:x@h:1/0 now",
            "at redis://a:********@h:1/0 now",
        ),
        (
            "a\n-----BEGIN KEY-----\nx\n-----END KEY-----\nb",
            "a\n********\nb",
        ),
    ];

    #[test]
    fn secrets_are_masked_in_command_output() {
        for (text, safe) in COVERED {
            assert_eq!(covered_text(text), *safe);
        }
    }
}
