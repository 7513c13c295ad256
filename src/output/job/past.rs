//! The past as a listing: how jobs ended, and who had a hand in it.

use std::{borrow::Cow, time::Duration};

use chrono::TimeDelta;
use serde::{Serialize, Serializer};

use super::{Cell, Column, Fit, JobView, NOTHING, Record, Row, Tone, short};
use crate::{
    duration,
    job::{Departure, Entry, Job, Remark},
};

/// A job that has left its board, or a record of one that cannot be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PastView<'a>(pub(crate) JobView<'a>);

impl Serialize for PastView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PastView<'_> {
    fn ended(&self, job: &Job) -> Option<Duration> {
        job.ended.map(|ended| self.0.since(ended.on))
    }
}

fn span(span: Option<TimeDelta>) -> Option<Duration> {
    span.and_then(|span| span.to_std().ok())
}

impl Record for PastView<'_> {
    fn fields(&self) -> Vec<String> {
        let seconds = |time: Option<Duration>| {
            time.map(|time| time.as_secs().to_string())
                .unwrap_or_default()
        };
        let job = match self.0.entry {
            Entry::Job(job) => job,
            Entry::Malformed(_) => return self.0.fields(),
        };
        let remark = job.history.remark.as_ref();
        let text = |pick: fn(&Remark) -> Option<&String>| {
            remark.and_then(pick).cloned().unwrap_or_default()
        };
        vec![
            job.uuid.clone(),
            job.name.clone(),
            job.ended
                .map(|ended| ended.departure.name())
                .unwrap_or_default()
                .to_owned(),
            job.priority.name().to_owned(),
            seconds(self.ended(job)),
            seconds(span(job.waited())),
            seconds(span(job.took())),
            text(|remark| Some(&remark.by)),
            text(|remark| remark.reason.as_ref()),
        ]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        self.0.reference()
    }
}

impl Row for PastView<'_> {
    const COLUMNS: &'static [Column] = &[
        Column::new("uuid", Fit::Whole),
        Column::new("name", Fit::Shrinks),
        Column::new("outcome", Fit::Whole),
        Column::new("ended", Fit::Number),
        Column::new("waited", Fit::Number),
        Column::new("took", Fit::Number),
        Column::new("by", Fit::KeepsEnds),
        Column::new("reason", Fit::Shrinks),
    ];

    fn cells(&self) -> Vec<Cell> {
        let none = || Cell::toned(Tone::Faint, NOTHING);
        let brief = |time: Option<Duration>| {
            time.map_or_else(none, |time| Cell::new(duration::brief(time)))
        };
        let job = match self.0.entry {
            Entry::Job(job) => job,
            Entry::Malformed(record) => {
                let name = Cell::vital(Tone::Bad, format!("key:{}", record.key));
                let problem = Cell::new(&record.problem);
                return vec![
                    none(),
                    name,
                    none(),
                    none(),
                    none(),
                    none(),
                    none(),
                    problem,
                ];
            }
        };
        let remark = job.history.remark.as_ref();
        // Without a word of anybody, what it failed of tells most.
        let failure = job.history.failures.last().filter(|_| {
            let departure = job.ended.map(|ended| ended.departure);
            departure != Some(Departure::Consumed)
        });
        let reason = remark
            .and_then(|remark| remark.reason.as_ref())
            .or(failure.map(|failure| &failure.reason));
        vec![
            Cell::toned(Tone::Strong, short(&job.uuid)),
            Cell::new(&job.name),
            match job.ended.map(|ended| ended.departure) {
                Some(Departure::Failed) => Cell::toned(Tone::Bad, Departure::Failed.name()),
                Some(ending) => Cell::new(ending.name()),
                None => none(),
            },
            brief(self.ended(job)),
            brief(span(job.waited())),
            brief(span(job.took())),
            remark.map_or_else(none, |remark| Cell::new(&remark.by)),
            reason.map_or_else(none, Cell::new),
        ]
    }
}
