//! The JSON and text of a flow.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{
    duration,
    job::{Job, octavia},
    logbook::{Atom, AtomFailure, Flow, flow_state, position},
    output::{ABSENT, Cell, Column, Fit, Page, Report, Tone, rfc3339},
};

pub(super) struct FlowView<'a> {
    job: &'a Job,
    flow: &'a Flow,
    now: DateTime<Utc>,
}

impl<'a> FlowView<'a> {
    pub(super) fn new(job: &'a Job, flow: &'a Flow, now: DateTime<Utc>) -> Self {
        Self { job, flow, now }
    }

    fn load_balancer(&self) -> Option<Cow<'a, str>> {
        let stated = octavia::load_balancer(self.job);
        stated.or(self.flow.load_balancer.as_deref().map(Cow::from))
    }

    fn amphora(&self) -> Option<Cow<'a, str>> {
        octavia::amphora(self.job).or(self.flow.amphora.as_deref().map(Cow::from))
    }

    /// Returns the atoms in display order: running, failed, done, pending.
    fn atoms(&self) -> Vec<&'a Atom> {
        let mut atoms: Vec<_> = self.flow.atoms.iter().collect();
        atoms.sort_by_key(|atom| match &*atom.state {
            _ if atom.is_at_work() => 0,
            flow_state::FAILURE | flow_state::REVERT_FAILURE => 1,
            _ if atom.failure.is_some() => 1,
            flow_state::PENDING => 3,
            _ => 2,
        });
        atoms
    }
}

impl Serialize for FlowView<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let flow = self.flow;
        let mut object = serializer.serialize_struct("Flow", 12)?;
        object.serialize_field("job", &self.job.reference())?;
        object.serialize_field("name", &self.job.name)?;
        object.serialize_field("flow", &flow.uuid)?;
        object.serialize_field("state", &flow.state)?;
        object.serialize_field("created_on", &flow.created.map(rfc3339))?;
        object.serialize_field("updated_on", &flow.updated.map(rfc3339))?;
        object.serialize_field("factory", &flow.factory)?;
        object.serialize_field("load_balancer", &self.load_balancer())?;
        object.serialize_field("amphora", &self.amphora())?;
        object.serialize_field("summary", &position(flow, self.now))?;
        object.serialize_field("progress", &flow.progress())?;
        object.serialize_field("tasks", &flow.atoms)?;
        object.end()
    }
}

const COLUMNS: &[Column] = &[
    Column::new("task", Fit::Shrinks),
    Column::new("state", Fit::Whole),
    Column::new("for", Fit::Number),
    Column::new("tries", Fit::Number),
    Column::new("failure", Fit::Shrinks),
];

impl Report for FlowView<'_> {
    fn human(&self, page: &mut Page) {
        let flow = self.flow;
        let state = flow.state.as_deref().unwrap_or(flow_state::PENDING);
        let line = page.line().add(Tone::Strong, &self.job.name).plain("  ");
        line.add(tone(state), state);
        let about = [
            ("load balancer", self.load_balancer()),
            ("amphora", self.amphora()),
        ];
        let about = about
            .into_iter()
            .filter_map(|(what, id)| Some(format!("{what} {}", id?)));
        let about: Vec<_> = about.collect();
        if !about.is_empty() {
            page.fact("about", about.join(", "));
        }
        page.fact("flow", &flow.uuid);
        let times = [("posted", flow.created), ("updated", flow.updated)];
        for (name, time) in times {
            if let Some(time) = time {
                let when = duration::from_now(time, self.now);
                page.fact(name, format!("{} ({when})", rfc3339(time)));
            }
        }
        page.fact("position", position(flow, self.now));
        let rows = self.atoms().into_iter().map(|atom| self.row(atom));
        page.table(COLUMNS, rows);
    }
}

impl FlowView<'_> {
    fn row(&self, atom: &Atom) -> Vec<Cell> {
        let nothing = || Cell::toned(Tone::Faint, ABSENT);
        let long = atom.lasts(self.now).filter(|_| !atom.is_pending());
        let failures = [&atom.failure, &atom.undo_failure].into_iter().flatten();
        let failures: Vec<_> = failures.map(AtomFailure::line).collect();
        let state = match (&*atom.state, atom.is_to_be_reverted) {
            (flow_state::PENDING, true) => "NEVER",
            (state, _) => state,
        };
        vec![
            Cell::vital(Tone::Plain, atom.title()),
            Cell::toned(tone(state), state),
            long.map_or_else(nothing, |long| Cell::new(duration::brief(long))),
            atom.attempts
                .map_or_else(nothing, |tries| Cell::new(tries.to_string())),
            match failures.is_empty() {
                true => nothing(),
                false => Cell::toned(Tone::Bad, failures.join("; ")),
            },
        ]
    }
}

fn tone(state: &str) -> Tone {
    match state {
        flow_state::RUNNING | flow_state::RETRYING | flow_state::RESUMING => Tone::Active,
        flow_state::SUCCESS => Tone::Good,
        flow_state::FAILURE | flow_state::REVERT_FAILURE | flow_state::REVERTING => Tone::Bad,
        _ => Tone::Faint,
    }
}
