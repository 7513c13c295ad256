//! Scans the board or the trash in pages of undecoded postings.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

use futures_util::{Stream, TryStreamExt, stream};
use redis::{Cmd, FromRedisValue, cmd};

use crate::{
    board::{
        BoardError, Result,
        net::cause::ServerCause,
        pages::page_length,
        redis::{
            Redis,
            keys::key_of,
            link::{
                READ, RedisClient,
                bounded::{lacked_room, placeholder},
                connection::Connection,
            },
        },
    },
    job::{JobKey, Location, MAX_TEXT_BYTES},
};

/// Pages requested together: each needs as many exchanges one after another.
pub(crate) const PAGES_READ_AHEAD: usize = 3;

pub(crate) const FIRST_PAGE: usize = 128;

const MAX_PAGE: usize = 1000;

/// Maximum restarts of a scan in a row without a new field.
const RESTARTS: u32 = 3;

/// Maximum pages in a row without a new field: ten million free places of a hash that has just shrunk.
const FRUITLESS: u32 = 1000;

/// Maximum pages of a scan without a cursor of its own: fifty million keys of a server, and far more than a usual hash
/// of pauses or moves has.
const MAX_PAGES: usize = 10_000;

/// The keys that the server looks at for each page.
const KEYS_AT_ONCE: usize = 5000;

pub(crate) type RawPosting = (Vec<u8>, Vec<u8>);

/// Yields each field once, whatever the server does meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    hash: String,
    cursor: Option<u64>,
    count: usize,
    /// The connection that issued the cursor.
    connection: Weak<Connection>,
    restarts: u32,
    /// Pages with a new field, and those without one since.
    fruitful: u32,
    fruitless: u32,
    /// A server may return a field twice while its table grows or shrinks.
    returned: HashSet<JobKey>,
    /// Fields whose postings did not fit the reply that named them.
    pending: Vec<Vec<u8>>,
}

impl Scan {
    pub(crate) fn of(hash: String) -> Self {
        Self {
            hash,
            cursor: Some(0),
            count: FIRST_PAGE,
            ..Self::default()
        }
    }

    pub(crate) async fn next(&mut self, client: &RedisClient) -> Result<Option<Vec<RawPosting>>> {
        if !self.pending.is_empty() {
            let found = first_postings(client, &self.hash, &self.pending).await?;
            let fields = self.pending.drain(..found.len());
            let page = fields.zip(found);
            let page = page.filter_map(|(field, posting)| Some((field, posting?)));
            return Ok(Some(page.collect()));
        }
        let Some(command) = self.command() else {
            return Ok(None);
        };
        let is_first = self.cursor == Some(0);
        let (answer, connection) = client.ask_on(READ, &command).await?;
        let page = self.page(answer);
        let mut page = page.map_err(|cause| client.error(READ, cause))?;
        let most = client.limit.stored();
        let mut before = 0;
        let pending = page.extract_if(.., |(field, posting)| {
            before += field.len() + posting.len();
            lacked_room(posting, before, most)
        });
        self.pending = pending.map(|(field, _)| field).collect();
        let connection = Arc::downgrade(&connection);
        // The server may have restarted or be another one. Its fields then have another order, and the cursor is
        // void.
        if !is_first && !connection.ptr_eq(&self.connection) {
            self.cursor = Some(0);
            self.restarts += 1;
            if self.restarts > RESTARTS {
                return Err(client.error(READ, ServerCause::KeepsClosing));
            }
        }
        self.connection = connection;
        Ok(Some(page))
    }

    pub(crate) fn command(&self) -> Option<Cmd> {
        Some(scan_hash(&self.hash, self.cursor?, self.count))
    }

    pub(crate) fn page(
        &mut self,
        (next, flat): (u64, Vec<Vec<u8>>),
    ) -> std::result::Result<Vec<RawPosting>, ServerCause> {
        self.cursor = (next != 0).then_some(next);
        let bytes: usize = flat.iter().map(Vec::len).sum();
        // Count repeated fields too: these bytes include them.
        self.count = page_after(flat.len() / 2, bytes);
        let mut page = Vec::with_capacity(flat.len() / 2);
        let mut parts = flat.into_iter();
        while let (Some(mut field), Some(posting)) = (parts.next(), parts.next()) {
            if field.len() > MAX_TEXT_BYTES {
                field = placeholder(field.len());
            }
            if self.returned.insert(key_of(&field)) {
                page.push((field, posting));
            }
        }
        match page.is_empty() {
            true => self.fruitless += 1,
            false => {
                (self.restarts, self.fruitless) = (0, 0);
                self.fruitful += 1;
            }
        }
        // After a restart, earlier pages come again.
        match self.fruitless > FRUITLESS + self.fruitful {
            true => Err(ServerCause::EndlessScan),
            false => Ok(page),
        }
    }
}

/// Bytes of postings decoded together, or a single posting: in memory they may take many times that.
const PART: usize = 1 << 20;

pub(crate) fn parts(page: Vec<RawPosting>) -> impl Stream<Item = Result<Vec<RawPosting>>> + Send {
    let (mut parts, mut part, mut bytes) = (Vec::new(), Vec::new(), 0);
    for posting in page {
        bytes += posting.1.len();
        if bytes > PART {
            bytes = posting.1.len();
            parts.push(Ok(std::mem::take(&mut part)));
        }
        part.push(posting);
    }
    parts.push(Ok(part));
    stream::iter(parts)
}

pub(crate) fn page_after(count: usize, bytes: usize) -> usize {
    page_length(count, bytes, MAX_PAGE)
}

fn scan_hash(hash: &str, cursor: u64, count: usize) -> Cmd {
    let mut scan = cmd("HSCAN");
    scan.arg(hash).arg(cursor).arg("COUNT").arg(count).take()
}

/// Fetches the postings of the first fields: as many as fit a reply, at least one.
pub(crate) async fn first_postings(
    client: &RedisClient,
    hash: &str,
    fields: &[impl AsRef<[u8]>],
) -> Result<Vec<Option<Vec<u8>>>> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut command = cmd("HMGET");
    command.arg(hash);
    for field in fields {
        command.arg(field.as_ref());
    }
    let mut postings: Vec<Option<Vec<u8>>> = client.read(&command).await?;
    let (mut before, most) = (0, client.limit.stored());
    let had_no_room = |posting: &Option<Vec<u8>>| {
        let posting = posting.as_deref().unwrap_or_default();
        before += posting.len();
        lacked_room(posting, before, most)
    };
    let end = postings.iter().position(had_no_room);
    postings.truncate(end.unwrap_or(postings.len()).max(1));
    Ok(postings)
}

impl Redis {
    pub(crate) fn scanned(
        &self,
        location: Location,
    ) -> impl Stream<Item = Result<Vec<RawPosting>>> + Send + use<'_> {
        let scan = Scan::of(self.keys.hash(location));
        let pages = stream::try_unfold(scan, move |mut scan: Scan| async move {
            let page = scan.next(&self.client).await?;
            Ok::<_, BoardError>(page.map(|page| (page, scan)))
        });
        pages.map_ok(parts).try_flatten()
    }

    pub(crate) async fn postings(
        &self,
        location: Location,
        fields: &[impl AsRef<[u8]>],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let (hash, mut found) = (self.keys.hash(location), Vec::with_capacity(fields.len()));
        while found.len() < fields.len() {
            let left = &fields[found.len()..];
            found.append(&mut first_postings(&self.client, &hash, left).await?);
        }
        Ok(found)
    }
}

impl RedisClient {
    pub(crate) fn fields(
        &self,
        hash: String,
        count: usize,
    ) -> impl Stream<Item = Result<Vec<(Vec<u8>, Vec<u8>)>>> + Send + use<'_> {
        self.pages(move |cursor| scan_hash(&hash, cursor, count))
    }

    pub(crate) fn key_names(
        &self,
        pattern: String,
    ) -> impl Stream<Item = Result<Vec<Vec<u8>>>> + Send + use<'_> {
        self.pages(move |cursor| {
            let mut scan = cmd("SCAN");
            scan.arg(cursor).arg("MATCH").arg(&pattern);
            scan.arg("COUNT").arg(KEYS_AT_ONCE).take()
        })
    }

    fn pages<T: FromRedisValue + Send>(
        &self,
        command: impl Fn(u64) -> Cmd + Send,
    ) -> impl Stream<Item = Result<T>> + Send {
        stream::try_unfold((Some(0), 0), move |(cursor, before)| {
            let scan = cursor.map(&command);
            async move {
                let Some(scan) = scan else { return Ok(None) };
                if before == MAX_PAGES {
                    return Err(self.error(READ, ServerCause::EndlessScan));
                }
                let (next, page): (u64, T) = self.read(&scan).await?;
                Ok(Some((page, ((next != 0).then_some(next), before + 1))))
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::board::redis::testing::Server;

    fn start() -> Scan {
        Scan::of("taskflow:listings".to_owned())
    }

    #[test]
    fn earlier_page_does_not_shrink_the_next() {
        let mut scan = start();
        let page = || {
            let parts = (0..100).flat_map(|job| [format!("field{job}"), "x".repeat(3000)]);
            (7, parts.map(String::into_bytes).collect::<Vec<_>>())
        };
        assert_eq!(scan.page(page()).unwrap().len(), 100);
        let count = scan.count;
        assert!((100..200).contains(&count), "{count}");
        assert_eq!(scan.page(page()).unwrap(), []);
        assert_eq!(scan.count, count);
    }

    #[test]
    fn scan_without_end_fails() {
        let mut scan = start();
        let mut pages = std::iter::repeat_with(|| scan.page((7, Vec::new())));
        let first = pages.by_ref().take(FRUITLESS as usize);
        assert!(first.into_iter().all(|page| page.is_ok()));
        assert!(pages.next().is_some_and(|page| page.is_err()));
    }

    #[tokio::test]
    async fn server_that_hangs_up_after_each_reply_is_an_error() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let fill = "for i = 1, 5000 do redis.call('HSET', KEYS[1], 'field' .. i, 'x') end";
        server.run::<()>(&["EVAL", fill, "1", "taskflow:listings"]);
        let client = RedisClient::new(&server.url(""), None, Duration::from_secs(5));
        let mut scan = start();
        let mut error = None;
        for _ in 0..100 {
            match scan.next(&client).await {
                Ok(page) => assert!(page.is_some(), "the scan reaches its end"),
                Err(refused) => error = Some(refused),
            }
            client.close().await;
        }
        let error = error.expect("the endless scan fails");
        assert!(matches!(error, BoardError::Unreachable { .. }), "{error:?}");
        let reason = std::error::Error::source(&error).unwrap().to_string();
        assert!(reason.contains("keeps closing"), "{reason}");
    }

    #[tokio::test]
    async fn occasional_disconnects_do_not_end_a_scan() {
        let Some(server) = Server::start(&[]) else {
            return;
        };
        let fill = "for i = 1, 5000 do redis.call('HSET', KEYS[1], 'field' .. i, 'x') end";
        server.run::<()>(&["EVAL", fill, "1", "taskflow:listings"]);
        let client = RedisClient::new(&server.url(""), None, Duration::from_secs(5));
        let mut scan = start();
        let (mut found, mut pages) = (0, 0);
        while let Some(page) = scan.next(&client).await.unwrap() {
            (found, pages) = (found + page.len(), pages + 1);
            if [1, 4, 8].contains(&pages) {
                client.close().await;
            }
        }
        assert_eq!(found, 5000);
    }
}
