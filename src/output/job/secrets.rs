//! Covering what looks like a secret.

use serde_json::Value;

/// Returns the value with what looks like a secret covered.
pub(super) fn covered(value: &Value) -> Value {
    const COVER: &str = "******** (--reveal shows it)";
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
}
