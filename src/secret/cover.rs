//! Covering what looks like a secret.

use serde_json::Value;

/// What stands for a secret where it is not shown.
const COVER: &str = "******** (--reveal shows it)";

/// Whether something stands in a value for a secret that was not shown.
pub(crate) fn has_cover(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_cover),
        Value::Array(items) => items.iter().any(has_cover),
        Value::String(text) => text == COVER,
        _ => false,
    }
}

/// Returns the value of a member of that name with what looks like a secret covered.
pub(crate) fn covered_member(name: &str, value: Value) -> Value {
    let member = Value::Object([(name.to_owned(), value)].into_iter().collect());
    let mut member = covered(&member);
    member[name].take()
}

/// Returns the value with what looks like a secret covered.
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
        Value::Array(items) => items.iter().map(covered).collect(),
        Value::String(text) if text.contains("-----BEGIN ") => Value::from(COVER),
        other => other.clone(),
    }
}

/// How long a token is at least: what follows the word `bearer` may be an ordinary word.
const SHORTEST_TOKEN: usize = 8;

/// Returns what a command wrote with what looks like a secret covered.
pub(crate) fn covered_text(text: &str) -> String {
    let mut shown = String::new();
    let first_mark = text.lines().find(|line| line.contains("-----"));
    // Of a long output the end is kept: a key may have lost its first line.
    let mut is_key =
        first_mark.is_some_and(|line| line.contains("-----END ") && !line.contains("-----BEGIN "));
    if is_key {
        shown.push_str("********\n");
    }
    let (mut is_value, mut is_token) = (false, false);
    for line in text.split_inclusive('\n') {
        if is_key || line.contains("-----BEGIN ") {
            if !is_key {
                shown.push_str("********\n");
            }
            is_key = !line.contains("-----END ");
            continue;
        }
        let mut last = "";
        for word in line.split_inclusive(char::is_whitespace) {
            let bare = word.trim_end();
            let space = &word[bare.len()..];
            let is_secret =
                is_value && !bare.is_empty() || is_token && bare.len() >= SHORTEST_TOKEN;
            is_value = false;
            match is_secret {
                true => shown.push_str("********"),
                false => is_value = cover_word(bare, &mut shown),
            }
            is_token = is_scheme(bare, last);
            last = bare;
            shown.push_str(space);
        }
        (is_value, is_token) = (false, false);
    }
    shown
}

/// Whether the next word is a token, as in the header of a request.
fn is_scheme(word: &str, before: &str) -> bool {
    let is_header = before.to_ascii_lowercase().ends_with("authorization:");
    is_header || word.eq_ignore_ascii_case("bearer")
}

/// Adds a word without the secret in it, and returns whether the next one is the secret.
fn cover_word(word: &str, shown: &mut String) -> bool {
    if let Some((scheme, rest)) = word.split_once("://")
        && let Some((login, host)) = rest.rsplit_once('@')
        && let Some((user, _)) = login.split_once(':')
    {
        shown.push_str(&format!("{scheme}://{user}:********@{host}"));
        return false;
    }
    let end = word
        .find(['=', ':'])
        .filter(|end| is_secret_name(&word[..*end]));
    let (name, value) = word.split_at(end.map_or(word.len(), |end| end + 1));
    shown.push_str(name);
    let is_separated = end.is_some() && value.is_empty();
    if !value.is_empty() {
        shown.push_str("********");
    }
    is_separated
}

/// Whether a member of that name is likely to hold a secret.
fn is_secret_name(name: &str) -> bool {
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
    let name = name.to_ascii_lowercase().replace('-', "_");
    TELLING.iter().any(|telling| name.contains(telling)) || name == "server_pem"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_covered_wherever_they_are() {
        let shown = covered(&json!({
            "user": "ada",
            "db_password": "x",
            "store": {"tls": [{"private_key": "y"}, "-----BEGIN RSA PRIVATE KEY-----\nz"]},
            "token": null,
        }));
        let text = shown.to_string();
        for secret in ["\"x\"", "\"y\"", "BEGIN"] {
            assert!(!text.contains(secret), "{text}");
        }
        assert_eq!(shown["user"], "ada");
        assert_eq!(shown["token"], Value::Null);
    }

    #[test]
    fn secrets_are_covered_in_what_commands_write() {
        for (text, safe) in [
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
                "at redis://a:x@h:1/0 now",
                "at redis://a:********@h:1/0 now",
            ),
            (
                "a\n-----BEGIN KEY-----\nx\n-----END KEY-----\nb",
                "a\n********\nb",
            ),
        ] {
            assert_eq!(covered_text(text), safe);
        }
    }
}
