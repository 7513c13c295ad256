//! Masks secrets in untrusted text and limits its length, for every format.

use std::borrow::Cow;

use crate::{
    job::{Conductor, Job, Owner},
    output::ends,
    secret::covered_text,
};

const NAME: usize = 200;

const LONG: usize = 1_000;

fn name(text: &str) -> Cow<'_, str> {
    masked(text, NAME)
}

fn masked(text: &str, most: usize) -> Cow<'_, str> {
    // A fast path for nearly all names.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./#@".contains(&byte);
    match text.len() <= most && text.bytes().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(ends(&covered_text(text), most)),
    }
}

fn mask_name(text: &mut String) {
    if let Cow::Owned(masked) = name(text) {
        *text = masked;
    }
}

fn mask_owner(owner: &mut Owner) {
    if let Cow::Owned(masked) = name(&owner.text()) {
        *owner = Owner::from_stored(masked);
    }
}

pub(super) fn mask(text: &mut String) {
    if let Cow::Owned(masked) = masked(text, LONG) {
        *text = masked;
    }
}

pub(super) fn job(job: &mut Job) {
    mask_name(&mut job.name);
    mask_name(&mut job.uuid);
    let holder = job.holding.iter_mut().filter_map(|it| it.owner.as_mut());
    let ender = job.ended.iter_mut().filter_map(|it| it.owner.as_mut());
    holder.chain(ender).for_each(mask_owner);
    let failures = job.attempts.failures.iter_mut();
    failures.for_each(|it| mask_name(&mut it.conductor));
}

pub(super) fn conductor(conductor: &mut Conductor) {
    mask_name(&mut conductor.name);
    mask_owner(&mut conductor.owner);
    let runs = conductor.report.runs.iter_mut();
    runs.flat_map(|it| [&mut it.uuid, &mut it.name])
        .for_each(mask_name);
}
