//! What strangers wrote, as a report may tell it in every form: of bounded length, and with what looks like a secret
//! covered.

use std::borrow::Cow;

use super::facts::Facts;
use crate::{
    commands::{doctor::Told, explain::Explanation, parts::tally::Standing},
    job::{Job, Owner},
    output::{covered_text, ends},
};

/// How many characters of a name are told.
const NAME: usize = 200;

/// How many characters of a sentence or a word of a command are told.
const LONG: usize = 1_000;

/// How many pauses are told.
const MOST_PAUSES: usize = 50;

/// Returns a name as it is told.
pub(super) fn name(text: &str) -> Cow<'_, str> {
    told(text, NAME)
}

fn told(text: &str, most: usize) -> Cow<'_, str> {
    // Nearly all names are like this, and it is told at a glance.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./#".contains(&byte);
    match text.len() <= most && text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(ends(&covered_text(text), most)),
    }
}

fn tell(text: &mut String, most: usize) {
    if let Cow::Owned(told) = told(text, most) {
        *text = told;
    }
}

fn tell_owner(owner: &mut Option<Owner>) {
    if let Some(owner) = owner
        && let Cow::Owned(told) = name(&owner.text())
    {
        *owner = Owner::from_stored(told);
    }
}

/// Returns a job whose name and reference are as they are told.
pub(super) fn job(job: &Job) -> Cow<'_, Job> {
    match (name(&job.name), name(&job.uuid)) {
        (Cow::Borrowed(_), Cow::Borrowed(_)) => Cow::Borrowed(job),
        (called, uuid) => Cow::Owned(Job {
            name: called.into_owned(),
            uuid: uuid.into_owned(),
            ..job.clone()
        }),
    }
}

impl Facts {
    /// Returns them with all that strangers wrote as it is told.
    pub(super) fn guarded(mut self) -> Self {
        let figures = &mut self.figures;
        let standing = [&mut figures.oldest_unclaimed, &mut figures.longest_held];
        for Standing { name, owner, .. } in standing.into_iter().flatten() {
            tell(name, NAME);
            tell_owner(owner);
        }
        self.names
            .iter_mut()
            .for_each(|it| tell(&mut it.name, NAME));
        for it in &mut self.owners {
            tell_owner(&mut it.owner);
            it.conductor.iter_mut().for_each(|it| tell(it, NAME));
        }
        for lane in &mut self.timeline.lanes {
            tell_owner(&mut lane.owner);
            lane.conductor.iter_mut().for_each(|it| tell(it, NAME));
            let runs = lane.runs.iter_mut().map(|it| (&mut it.job, &mut it.name));
            let failures = lane.failures.iter_mut();
            let failures = failures.map(|it| (&mut it.job, &mut it.name));
            for (job, name) in runs.chain(failures) {
                tell(job, NAME);
                tell(name, NAME);
            }
        }
        self.pauses.truncate(MOST_PAUSES);
        for pause in &mut self.pauses {
            tell(&mut pause.names, NAME);
            tell(&mut pause.remark.by, NAME);
            pause.remark.action.iter_mut().for_each(|it| tell(it, NAME));
            pause.remark.reason.iter_mut().for_each(|it| tell(it, LONG));
        }
        self.findings.iter_mut().for_each(guard_told);
        self.explained.iter_mut().for_each(guard_explained);
        self.unseen.iter_mut().for_each(|it| tell(it, LONG));
        self
    }
}

fn guard_told(of: &mut Told) {
    tell(&mut of.summary, LONG);
    of.evidence
        .iter_mut()
        .for_each(|it| tell(&mut it.value, LONG));
    of.remedy.each_word(|word| tell(word, LONG));
}

fn guard_explained(of: &mut Explanation) {
    tell(&mut of.name, NAME);
    tell(&mut of.job, NAME);
    for finding in &mut of.findings {
        tell(&mut finding.summary, LONG);
        for it in &mut finding.evidence {
            tell(&mut it.what, NAME);
            tell(&mut it.value, LONG);
        }
        if let Some(remedy) = &mut finding.remedy {
            tell(&mut remedy.text, LONG);
            remedy.command.iter_mut().for_each(|it| tell(it, LONG));
        }
    }
    of.unseen.iter_mut().for_each(|it| tell(it, LONG));
}
