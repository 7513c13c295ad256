//! What a verb says of a job when it has done it.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    job::Entry,
    output::{Page, Record, Report, Tone, short},
};

/// A verb was done to a job.
#[derive(Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) uuid: Option<String>,
    pub(crate) name: Option<String>,
    /// The verb in the past, such as `claimed`.
    pub(crate) done: &'static str,
    #[serde(flatten)]
    pub(crate) more: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Done {
    pub(crate) fn new(
        done: &'static str,
        uuid: impl Into<String>,
        name: impl Into<String>,
    ) -> Self {
        Self {
            uuid: Some(uuid.into()),
            name: Some(name.into()),
            done,
            more: None,
        }
    }

    /// Says something of a job of which no more is known.
    pub(crate) fn unnamed(done: &'static str, uuid: &str) -> Self {
        Self {
            name: None,
            ..Self::new(done, uuid, "")
        }
    }

    /// Says that something was done to a record, whether or not it can be read.
    pub(crate) fn of(done: &'static str, entry: &Entry) -> Self {
        let job = entry.job();
        let known = Self {
            uuid: job.map(|job| job.uuid.clone()),
            name: job.map(|job| job.name.clone()),
            done,
            more: None,
        };
        match job {
            Some(_) => known,
            None => known.with("key", entry.key().text()),
        }
    }

    /// Returns what people call the job: a record that cannot be read has no more than a key, by
    /// which another command finds it.
    fn called(&self) -> Cow<'_, str> {
        let key = || self.more.as_ref()?.get("key")?.as_str();
        match &self.name {
            Some(name) => Cow::Borrowed(name),
            None => key().map_or(Cow::Borrowed(""), |key| Cow::Owned(format!("key:{key}"))),
        }
    }

    /// Adds a fact for programs.
    pub(crate) fn with(mut self, name: &str, value: impl Into<serde_json::Value>) -> Self {
        self.more
            .get_or_insert_default()
            .insert(name.to_owned(), value.into());
        self
    }
}

impl Record for Done {
    fn fields(&self) -> Vec<String> {
        vec![
            self.uuid.as_deref().unwrap_or_default().into(),
            self.called().into_owned(),
            self.done.into(),
        ]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        match &self.uuid {
            Some(uuid) => Some(Cow::Borrowed(uuid)),
            None => Some(self.called()),
        }
    }
}

impl Report for Done {
    fn human(&self, page: &mut Page) {
        let line = page.line().plain(self.done).plain(" ");
        match &self.uuid {
            Some(uuid) => line.add(Tone::Strong, short(uuid)).plain(" "),
            None => line,
        }
        .plain(self.called());
    }
}
