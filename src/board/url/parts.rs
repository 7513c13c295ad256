//! The common parts of network URLs: a user, servers, a path, keys after a `?`, and escapes such as `%40` for `@`.

use std::net::Ipv6Addr;

use percent_encoding::percent_decode_str;

use super::{Server, error::InvalidUrl};
use crate::secret::Secret;

/// A split URL; only the user and the password are decoded yet.
pub(super) struct UrlParts<'a> {
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) hosts: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    /// The URL syntax, for messages about missing parts.
    form: &'static str,
}

impl<'a> UrlParts<'a> {
    pub(super) fn parse(
        scheme: &'static str,
        form: &'static str,
        rest: &'a str,
    ) -> Result<Self, InvalidUrl> {
        let rest = rest
            .strip_prefix("//")
            .ok_or(InvalidUrl::Form { scheme, form })?;
        let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        // A password with one of these characters ends the authority early; the rest would then appear in messages
        // about paths and keys.
        if tail.contains('@') {
            return Err(InvalidUrl::MisplacedAt);
        }
        if tail.contains('#') {
            return Err(InvalidUrl::Fragment);
        }
        let (access, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = access.split_once(':').unwrap_or((access, ""));
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        Ok(Self {
            user: some(decode(user, "the user")?),
            password: some(decode(password, "the password")?).map(Secret::new),
            hosts,
            path,
            query,
            form,
        })
    }

    /// Reads the hosts; `port` is the default.
    pub(super) fn servers(&self, port: u16) -> Result<Vec<Server>, InvalidUrl> {
        self.hosts
            .split(',')
            .map(|text| self.server(text, port))
            .collect()
    }

    fn server(&self, text: &str, port: u16) -> Result<Server, InvalidUrl> {
        let (host, stated) = self.split_port(text)?;
        let host = host.to_owned();
        let port = stated.map_or(Some(port), |text| number(text).filter(|port| *port > 0));
        match port {
            Some(port) => Ok(Server { host, port }),
            None => Err(InvalidUrl::Port { host }),
        }
    }

    fn split_port<'t>(&self, text: &'t str) -> Result<(&'t str, Option<&'t str>), InvalidUrl> {
        if let Some(rest) = text.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or(InvalidUrl::Ipv6)?;
            host.parse::<Ipv6Addr>().map_err(|_| InvalidUrl::Ipv6)?;
            return match rest.strip_prefix(':') {
                None if !rest.is_empty() => Err(InvalidUrl::Ipv6),
                port => Ok((host, port)),
            };
        }
        let (host, port) = text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port)));
        if port.is_some_and(|port| port.contains(':')) {
            return Err(InvalidUrl::NoBrackets);
        }
        self.check_host(host)?;
        Ok((host, port))
    }

    fn check_host(&self, host: &str) -> Result<(), InvalidUrl> {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if host.is_empty() {
            Err(InvalidUrl::NoHost { form: self.form })
        } else if host.bytes().all(fits) {
            Ok(())
        } else {
            Err(InvalidUrl::Host(host.to_owned()))
        }
    }
}

/// Formats the user, never a password, and the servers.
pub(super) fn authority(user: Option<&str>, servers: &[Server]) -> String {
    let user = user.map_or_else(String::new, |user| format!("{}@", encode(user, ":/,")));
    let servers: Vec<String> = servers.iter().map(Server::to_string).collect();
    user + &servers.join(",")
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Decodes escapes such as `%41`; `part` names the place in error messages.
pub(super) fn decode(text: &str, part: &'static str) -> Result<String, InvalidUrl> {
    let is_escape = |rest: &str| {
        let digits = rest.as_bytes().get(..2);
        digits.is_some_and(|it| it.iter().all(u8::is_ascii_hexdigit))
    };
    match percent_decode_str(text).decode_utf8() {
        Ok(decoded) if text.split('%').skip(1).all(is_escape) => Ok(decoded.into_owned()),
        _ => Err(InvalidUrl::Escape { part }),
    }
}

/// Escapes characters that would end a part of a URL, and those in `also`.
pub(super) fn encode(text: &str, also: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for char in text.chars() {
        let is_special = "%@?#&".contains(char) || char.is_ascii_whitespace();
        if is_special || char.is_ascii_control() || also.contains(char) {
            // All of them are ASCII, that is one byte.
            encoded.push_str(&format!("%{:02X}", u32::from(char)));
        } else {
            encoded.push(char);
        }
    }
    encoded
}
