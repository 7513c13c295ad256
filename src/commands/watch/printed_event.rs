//! A printed event, for people and programs.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::{
    board::{Event, EventKind, JobRef},
    job::{JobKey, Outcome, Owner},
    output::{Page, Report, Tone, rfc3339, short},
};

/// An event; unknown fields are null.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PrintedEvent {
    #[serde(serialize_with = "as_text")]
    time: DateTime<Utc>,
    pub(super) event: EventKind,
    uuid: Option<String>,
    key: Option<String>,
    name: Option<String>,
    sequence: Option<i64>,
    owner: Option<Owner>,
    fence: Option<String>,
    outcome: Option<&'static str>,
    by: Option<String>,
    reason: Option<String>,
}

fn as_text<S: serde::Serializer>(time: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*time))
}

impl PrintedEvent {
    pub(crate) fn of(event: &Event) -> Self {
        let subject = event.subject.as_ref();
        // A malformed record has neither.
        let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Self {
            time: event.time,
            event: event.kind,
            uuid: subject.and_then(|subject| text(&subject.uuid)),
            key: subject.map(|subject| subject.key.to_string()),
            name: match subject {
                Some(subject) => text(&subject.name),
                None => event.names.clone(),
            },
            sequence: subject.and_then(|subject| subject.sequence),
            owner: event.owner.clone(),
            fence: event.fence.as_ref().map(ToString::to_string),
            outcome: event.outcome.map(Outcome::name),
            by: event.audit.as_ref().map(|audit| audit.by.clone()),
            reason: event.audit.as_ref().and_then(|audit| audit.reason.clone()),
        }
    }

    pub(crate) fn job(&self) -> Option<JobRef> {
        let key = self.key.as_ref()?;
        // A peer may have written any text for a uuid, even a reference to another job.
        let uuid = self.uuid.clone().map(JobRef::Uuid);
        let uuid = uuid.filter(|it| {
            it.is_exact() && it.to_string().parse().is_ok_and(|read: JobRef| read == *it)
        });
        uuid.or_else(|| Some(JobRef::Key(JobKey::new(key))))
    }

    pub(super) fn resync() -> Self {
        Self::of(&Event::resync())
    }

    fn description(&self) -> String {
        match (&self.name, &self.key) {
            (Some(name), _) => name.clone(),
            (None, Some(key)) => format!("key:{key}"),
            (None, None) => String::new(),
        }
    }
}

impl Report for PrintedEvent {
    fn fields(&self) -> Vec<String> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            rfc3339(self.time),
            self.event.to_string(),
            text(&self.uuid),
            text(&self.name),
            self.owner
                .as_ref()
                .map(Owner::to_string)
                .unwrap_or_default(),
            text(&self.fence),
            text(&self.key),
            text(&self.by),
            text(&self.reason),
        ]
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        self.job().map(|job| Cow::Owned(job.to_string()))
    }

    fn human(&self, page: &mut Page) {
        // Adds the date on another day.
        let form = match self.time.date_naive() == Utc::now().date_naive() {
            true => "%H:%M:%S%.3f",
            false => "%Y-%m-%d %H:%M:%S%.3f",
        };
        let time = self.time.format(form).to_string();
        let mut line = page
            .line()
            .add(Tone::Faint, time)
            .plain("  ")
            .add(tone(self.event), format!("{:<16}", self.event));
        if self.event == EventKind::Resync {
            line.plain("  events may be missing");
            return;
        }
        if self.key.is_some() {
            let uuid = short(self.uuid.as_deref().unwrap_or("-"));
            line = line
                .plain("  ")
                .add(Tone::Strong, format!("{uuid:<8}"))
                .plain("  ")
                .plain(self.description());
        } else if let Some(names) = &self.name {
            line = line.plain("  ").plain(names);
        }
        if let Some(owner) = &self.owner {
            // The actor may differ from the owner.
            let of = match (&self.key, &self.by) {
                (None, _) => "  ",
                (Some(_), None) => "  by ",
                (Some(_), Some(_)) => "  of ",
            };
            line = line.plain(of).plain(owner.text());
        }
        if let Some(fence) = &self.fence {
            line = line.add(Tone::Faint, format!("  fence {fence}"));
        }
        if self.outcome == Some(Outcome::Failed.name()) {
            line = line.add(Tone::Bad, "  failed");
        }
        if let Some(by) = &self.by {
            line = line.plain("  by ").plain(by);
        }
        if let Some(reason) = &self.reason {
            line.plain(": ").plain(reason);
        }
    }
}

fn tone(event: EventKind) -> Tone {
    match event {
        EventKind::Consumed => Tone::Good,
        EventKind::Claimed | EventKind::Extended => Tone::Active,
        EventKind::Expired | EventKind::Trashed | EventKind::Resync => Tone::Bad,
        EventKind::Posted
        | EventKind::Restored
        | EventKind::Abandoned
        | EventKind::Purged
        | EventKind::ConductorJoined
        | EventKind::ConductorLeft
        | EventKind::Paused
        | EventKind::Resumed => Tone::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_null_and_all_keys_exist() {
        let json = serde_json::to_value(PrintedEvent::resync()).unwrap();
        let keys: Vec<_> = json.as_object().unwrap().keys().collect();
        let expected = [
            "time", "event", "uuid", "key", "name", "sequence", "owner", "fence", "outcome", "by",
            "reason",
        ];
        assert_eq!(keys, expected);
        assert_eq!(json["event"], "resync");
        assert!(json["uuid"].is_null() && json["owner"].is_null());
    }
}
