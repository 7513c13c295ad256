//! The result line of a verb for one job.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    job::{Entry, Job},
    output::{Page, Record, Report, Tone, short},
};

#[derive(Debug, Serialize)]
pub(crate) struct Done {
    pub(crate) uuid: Option<String>,
    pub(crate) name: Option<String>,
    /// The past participle, for example `claimed`.
    pub(crate) done: &'static str,
    #[serde(flatten)]
    pub(crate) more: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Done {
    pub(crate) fn of_job(done: &'static str, job: &Job) -> Self {
        let known = Self {
            name: Some(job.name.clone()),
            ..Self::unnamed(done, &job.uuid)
        };
        match *job.reference() == job.uuid {
            true => known,
            false => known.with("key", job.key.text()),
        }
    }

    /// Reports a job with only a uuid.
    pub(crate) fn unnamed(done: &'static str, uuid: &str) -> Self {
        Self {
            uuid: Some(uuid.to_owned()),
            name: None,
            done,
            more: None,
        }
    }

    pub(crate) fn of(done: &'static str, entry: &Entry) -> Self {
        match entry {
            Entry::Job(job) => Self::of_job(done, job),
            Entry::Malformed(record) => Self {
                uuid: None,
                ..Self::unnamed(done, "").with("key", record.key.text())
            },
        }
    }

    /// Returns the display name: the key for a malformed record.
    fn called(&self) -> Cow<'_, str> {
        match (&self.name, &self.uuid) {
            (Some(name), _) => Cow::Borrowed(name),
            (None, Some(_)) => Cow::Borrowed(""),
            (None, None) => self.reference().unwrap_or_default(),
        }
    }

    /// Returns the reference, unless it is the display name.
    fn id(&self) -> Option<Cow<'_, str>> {
        self.uuid.as_ref().and_then(|_| self.reference())
    }

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
            self.id().unwrap_or_default().into_owned(),
            self.called().into_owned(),
            self.done.into(),
        ]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        let key = self
            .more
            .as_ref()
            .and_then(|more| more.get("key")?.as_str());
        let uuid = self.uuid.as_deref().map(Cow::Borrowed);
        key.map(|key| Cow::Owned(format!("key:{key}"))).or(uuid)
    }
}

impl Report for Done {
    fn human(&self, page: &mut Page) {
        let line = page.line().plain(self.done).plain(" ");
        match self.id() {
            Some(id) => line.add(Tone::Strong, short(&id)).plain(" "),
            None => line,
        }
        .plain(self.called());
    }
}
