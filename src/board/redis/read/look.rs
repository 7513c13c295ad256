//! Reads jobs page by page: postings and the keys beside them.

use std::collections::HashMap;

use futures_util::{Stream, StreamExt};

use super::{
    ranking::ranked,
    record::{Reading, complete, posted, read},
    scan::{PAGES_READ_AHEAD, RawPosting, Scan},
};
use crate::{
    board::{
        Detail, JobRef, Order, Query, Result, Which,
        pages::KEPT_BYTES,
        redis::{
            Redis,
            keys::{field_of, key_of},
            link::yield_to_tasks,
        },
        reference::CANDIDATES,
        wire::{
            msgpack,
            posting::{Limit, Posting},
        },
    },
    job::{Entry, Job, JobKey, Location},
};

impl Redis {
    pub(crate) fn pages(
        &self,
        query: Query,
    ) -> impl Stream<Item = Result<Vec<Entry>>> + Send + use<'_> {
        let postings = match query.order {
            Order::Any => self.scanned(query.location).boxed(),
            order => ranked(self, query.location, order, KEPT_BYTES).boxed(),
        };
        postings
            .map(move |page| async move {
                let mut entries = self.page(query, page?).await?;
                if query.which == Which::Unclaimed {
                    entries.retain(|entry| entry.job().is_none_or(|job| job.holding.is_none()));
                }
                Ok(entries)
            })
            .buffered(PAGES_READ_AHEAD)
    }

    pub(crate) async fn page(&self, query: Query, page: Vec<RawPosting>) -> Result<Vec<Entry>> {
        let fields: Vec<&[u8]> = page.iter().map(|(field, _)| field.as_slice()).collect();
        let sidecars = self.sidecars(query.location, &fields).await?;
        yield_to_tasks().await;
        let reading = self.reading(query);
        Ok(page
            .iter()
            .zip(sidecars)
            .map(|((field, posting), sidecars)| read(reading, field, posting, sidecars))
            .collect())
    }

    /// Reads postings, and adds the sidecars of wanted or claimed ones; returns for each whether it did.
    pub(crate) async fn page_wanted(
        &self,
        query: Query,
        page: Vec<RawPosting>,
        wants: &(dyn Fn(&Job) -> bool + Send + Sync),
    ) -> Result<Vec<(Entry, bool)>> {
        yield_to_tasks().await;
        let reading = self.reading(query);
        let mut unwanted = Vec::new();
        let mut read: Vec<_> = (page.iter())
            .map(|(field, posting)| {
                let entry = posted(reading, field, posting);
                let is_wanted = entry.job().is_some_and(wants);
                if !is_wanted {
                    unwanted.push(field.as_slice());
                }
                (entry, is_wanted)
            })
            .collect();
        if self.is_any_claimed(&unwanted).await? {
            read.iter_mut().for_each(|(_, is_wanted)| *is_wanted = true);
        }
        let wanted = page.iter().zip(&read).filter(|(_, (_, is))| *is);
        let wanted: Vec<&[u8]> = wanted.map(|((field, _), _)| field.as_slice()).collect();
        let sidecars = self.sidecars(query.location, &wanted).await?;
        let wanted = read.iter_mut().filter(|(_, is_wanted)| *is_wanted);
        for ((entry, _), sidecars) in wanted.zip(sidecars) {
            complete(entry, sidecars);
        }
        Ok(read)
    }

    pub(crate) fn reading(&self, query: Query) -> Reading {
        Reading {
            location: query.location,
            detail: query.detail,
            limit: self.client.limit,
        }
    }

    /// Returns the records that each reference could mean; one scan serves all that need one.
    pub(crate) async fn matches(
        &self,
        location: Location,
        wanted: &[JobRef],
    ) -> Result<Vec<Vec<Entry>>> {
        let direct: Vec<Option<Vec<u8>>> = wanted.iter().map(field_named).collect();
        let named: Vec<Vec<u8>> = direct.iter().flatten().cloned().collect();
        let postings = self.postings(location, &named).await?;
        let all = named.into_iter().zip(postings);
        let all = all.filter_map(|(field, posting)| Some((field, posting?)));
        let mut all: Vec<RawPosting> = all.collect();
        let found = direct
            .iter()
            .map(|it| it.iter().map(|field| key_of(field)).collect());
        let mut found: Vec<Vec<JobKey>> = found.collect();
        if direct.iter().any(Option::is_none) {
            let mut scan = Scan::of(self.keys.hash(location));
            while let Some(page) = scan.next(&self.client).await? {
                for (field, posting) in page {
                    let read = msgpack::decode(&posting, Detail::Brief, Limit::USUAL).ok();
                    let mut is_wanted = false;
                    for (wanted, found) in wanted.iter().zip(&mut found) {
                        let key = || Some(key_of(&field)).filter(|key| !found.contains(key));
                        if found.len() < CANDIDATES
                            && could_mean(wanted, &field, read.as_ref())
                            && let Some(key) = key()
                        {
                            found.push(key);
                            is_wanted = true;
                        }
                    }
                    if is_wanted {
                        all.push((field, posting));
                    }
                }
            }
        }
        let entries = self.page(Query::all(location, Detail::Whole), all).await?;
        // A record's own uuid counts, not the key that it is stored under.
        let is_meant = |wanted: &JobRef, entry: &Entry| match (wanted, entry.job()) {
            (JobRef::Uuid(uuid), Some(job)) if wanted.is_exact() => {
                job.uuid.eq_ignore_ascii_case(uuid)
            }
            _ => true,
        };
        let entries: HashMap<_, _> = entries.iter().map(|it| (it.key(), it)).collect();
        let meant = found.iter().zip(wanted).map(|(keys, wanted)| {
            let meant = keys.iter().filter_map(|key| entries.get(key).copied());
            let meant = meant.filter(|entry| is_meant(wanted, entry));
            meant.cloned().collect()
        });
        Ok(meant.collect())
    }
}

fn field_named(wanted: &JobRef) -> Option<Vec<u8>> {
    match wanted {
        JobRef::Key(key) => Some(field_of(key)),
        JobRef::Uuid(uuid) if wanted.is_exact() => Some(uuid.clone().into_bytes()),
        JobRef::Uuid(_) | JobRef::Sequence(_) => None,
    }
}

/// An unreadable record has only its key, which is usually the uuid of the job that it was.
fn could_mean(wanted: &JobRef, field: &[u8], posting: Option<&Posting>) -> bool {
    match wanted {
        JobRef::Uuid(beginning) if !wanted.is_exact() => {
            let uuid = posting.map_or(field, |it| it.uuid.as_bytes());
            uuid.to_ascii_lowercase().starts_with(beginning.as_bytes())
        }
        JobRef::Sequence(number) => posting.and_then(|it| it.sequence) == Some(*number),
        JobRef::Uuid(_) | JobRef::Key(_) => false,
    }
}
