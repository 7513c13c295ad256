//! A failed attempt of a job, with its kept output.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{JobView, rfc3339};
use crate::{
    duration,
    job::Failure,
    output::{Page, Record, Report, Tone},
};

#[derive(Debug)]
pub(crate) struct Attempt<'a> {
    view: JobView<'a>,
    /// `None` after `retry`, which counts from zero again.
    number: Option<u32>,
    failure: &'a Failure,
}

impl<'a> JobView<'a> {
    /// Returns the last failed attempts, the oldest first.
    pub(crate) fn attempts(self) -> impl Iterator<Item = Attempt<'a>> {
        self.entry.job().into_iter().flat_map(move |job| {
            let failures = &job.history.failures;
            let later = (0..failures.len() as u32).rev();
            failures
                .iter()
                .zip(later)
                .map(move |(failure, later)| Attempt {
                    view: self,
                    number: (job.failed_attempts().checked_sub(later)).filter(|number| *number > 0),
                    failure,
                })
        })
    }
}

impl Serialize for Attempt<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.failure.serialize(serializer)
    }
}

impl Record for Attempt<'_> {
    fn fields(&self) -> Vec<String> {
        let Failure { stdout, stderr, .. } = self.failure;
        let number = self.number.map(|number| number.to_string());
        let said = [stdout, stderr].map(|text| self.view.masked(text).into_owned());
        let facts = [
            self.view.entry.reference().into_owned(),
            number.unwrap_or_default(),
            self.failure.headline(),
            rfc3339(self.failure.time),
            self.failure.conductor.clone(),
        ];
        facts.into_iter().chain(said).collect()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(self.view.entry.reference())
    }
}

impl Report for Attempt<'_> {
    const IS_TEXT: bool = true;

    fn human(&self, page: &mut Page) {
        let number = self.number.map(|number| format!(" {number}"));
        let ago = duration::brief(self.view.since(self.failure.time));
        let (time, conductor) = (rfc3339(self.failure.time), &self.failure.conductor);
        page.sentence(2)
            .add(Tone::Strong, self.view.entry.name())
            .plain(format!("  attempt{}  ", number.unwrap_or_default()))
            .add(Tone::Bad, self.failure.headline())
            .plain(format!("  {time} ({ago} ago) on {conductor}"));
        self.view.said(page, self.failure);
        if self.failure.said().next().is_none() {
            page.block("no output was kept");
        }
    }
}
