//! `redis-cli` commands for operators.

use super::{Address, RedisClient};
use crate::suggest::Suggestion;

impl RedisClient {
    /// Adds the arguments that reach the server with the right user.
    pub(crate) fn cli(&self, command: Suggestion) -> Suggestion {
        let name = self.name.split('?').next().unwrap_or(&self.name);
        let url = match (name.split_once("://"), name.rsplit_once('@')) {
            (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
            _ => name.to_owned(),
        };
        let url = self.master().unwrap_or(url);
        let mut cli = match url.split_once("://") {
            Some(("redis+unix", path)) => Suggestion::of("redis-cli -s").with([path]),
            _ => Suggestion::of("redis-cli -u").with([url]),
        };
        if let Some(files) = &self.url.tls {
            let ours = files.identity.as_ref();
            for (option, file) in [
                ("--cacert", files.ca.as_ref()),
                ("--cert", ours.map(|it| &it.cert)),
                ("--key", ours.map(|it| &it.key)),
            ] {
                if let Some(file) = file {
                    cli = cli.with([option, &file.to_string_lossy()]);
                }
            }
        }
        command.on(&cli)
    }

    fn master(&self) -> Option<String> {
        let Address::Sentinel(_) = &self.url.address else {
            return None;
        };
        let connection = self.connection.try_lock().ok()?;
        let s = if self.url.tls.is_some() { "s" } else { "" };
        let place = &connection.as_ref()?.endpoint.place;
        Some(format!("redis{s}://{place}/{}", self.url.db))
    }
}
