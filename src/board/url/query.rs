//! The query part of a URL: its keys and values.

use std::{fmt, path::PathBuf};

use super::{
    TlsFiles, TlsIdentity,
    error::InvalidUrl,
    parts::{decode, encode},
};

/// The TLS keys of schemes with TLS: authorities and client identity.
pub(super) const TLS_KEYS: [&str; 3] = ["ca", "cert", "key"];

pub(super) fn tls_keys(has_tls: bool) -> &'static [&'static str] {
    if has_tls { &TLS_KEYS } else { &[] }
}

/// Keys that hold a password in other programs' URLs.
const PASSWORD_KEYS: [&str; 4] = ["password", "passwd", "pass", "sentinel_password"];

pub(super) struct UrlQuery {
    pairs: Vec<(String, String)>,
}

impl UrlQuery {
    pub(super) fn parse(text: &str, known: &[&str]) -> Result<Self, InvalidUrl> {
        let mut query = Self { pairs: Vec::new() };
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .map_or((pair, None), |(key, value)| (key, Some(value)));
            query.check_key(key, known)?;
            let value = value.ok_or_else(|| InvalidUrl::NoValue(key.to_owned()))?;
            let value = decode(value, "a value after the `?`")?;
            query.pairs.push((key.to_owned(), value));
        }
        Ok(query)
    }

    fn check_key(&self, key: &str, known: &[&str]) -> Result<(), InvalidUrl> {
        let is_repeated = self.pairs.iter().any(|(earlier, _)| earlier == key);
        if known.contains(&key) && !is_repeated {
            return Ok(());
        }
        let (key, list) = (key.to_owned(), known.join(", "));
        Err(if is_repeated {
            InvalidUrl::RepeatedKey { key, known: list }
        } else if TLS_KEYS.contains(&key.as_str()) {
            InvalidUrl::NoTls(key)
        } else if PASSWORD_KEYS.contains(&key.as_str()) {
            InvalidUrl::PasswordKey(key)
        } else {
            InvalidUrl::UnknownKey { key, known: list }
        })
    }

    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        let at = self.pairs.iter().position(|(there, _)| there == key)?;
        Some(self.pairs.swap_remove(at).1)
    }

    /// Removes a file name, which must not be empty.
    pub(super) fn file(&mut self, key: &str) -> Result<Option<PathBuf>, InvalidUrl> {
        match self.take(key) {
            Some(path) if path.is_empty() => Err(InvalidUrl::NoValue(key.to_owned())),
            path => Ok(path.map(PathBuf::from)),
        }
    }

    pub(super) fn choice<T: Copy>(
        &mut self,
        key: &'static str,
        wanted: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, InvalidUrl> {
        let Some(value) = self.take(key) else {
            return Ok(None);
        };
        match choices.iter().find(|(word, _)| *word == value) {
            Some((_, choice)) => Ok(Some(*choice)),
            None => Err(InvalidUrl::Value { key, value, wanted }),
        }
    }

    pub(super) fn is_true(&mut self, key: &'static str) -> Result<Option<bool>, InvalidUrl> {
        let words = [("true", true), ("false", false)];
        self.choice(key, "use true or false", &words)
    }

    pub(super) fn tls_files(&mut self, keys: [&'static str; 3]) -> Result<TlsFiles, InvalidUrl> {
        let [ca, cert, key] = keys;
        let half = |given, missing| Err(InvalidUrl::HalfIdentity { given, missing });
        let identity = match (self.file(cert)?, self.file(key)?) {
            (Some(cert), Some(key)) => Some(TlsIdentity { cert, key }),
            (None, None) => None,
            (Some(_), None) => return half(cert, key),
            (None, Some(_)) => return half(key, cert),
        };
        let ca = self.file(ca)?;
        Ok(TlsFiles { ca, identity })
    }
}

pub(super) struct QueryText(Vec<(&'static str, String)>);

impl QueryText {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, key: &'static str, value: Option<impl fmt::Display>) {
        let value = value.map(|value| encode(&value.to_string(), ""));
        self.0.extend(value.map(|value| (key, value)));
    }

    pub(super) fn push_tls(&mut self, keys: [&'static str; 3], files: Option<&TlsFiles>) {
        let [ca_key, cert_key, key_key] = keys;
        let identity = files.and_then(|files| files.identity.as_ref());
        let ca = files.and_then(|files| files.ca.as_ref());
        self.push(ca_key, ca.map(|path| path.display()));
        self.push(cert_key, identity.map(|identity| identity.cert.display()));
        self.push(key_key, identity.map(|identity| identity.key.display()));
    }
}

impl fmt::Display for QueryText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            let before = if at == 0 { '?' } else { '&' };
            write!(f, "{before}{key}={value}")?;
        }
        Ok(())
    }
}
