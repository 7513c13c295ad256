//! Reports the failed jobs of a batch.

use std::collections::HashMap;

use super::select::count;
use crate::{
    context::Context,
    exit::{CommandError, chain},
};

/// The number of jobs named per reason.
const NAMED: usize = 3;

/// The number of reasons printed, the most frequent ones.
const REASONS: usize = 10;

/// The number of distinct reasons kept.
const KEPT: usize = 1000;

#[derive(Debug)]
pub(crate) struct Failures {
    verb: &'static str,
    /// Whether each failure is printed as it comes.
    is_each_told: bool,
    count: usize,
    alike: HashMap<String, Alike>,
    /// The number of failures with a reason that was not kept.
    others: usize,
}

#[derive(Debug)]
struct Alike {
    reason: anyhow::Error,
    /// The reference of the first job on the command line.
    reference: String,
    named: Vec<String>,
    count: usize,
}

impl Failures {
    /// Groups failures by reason for people who chose jobs by filter.
    pub(crate) fn new(ctx: &Context, verb: &'static str, is_bulk: bool) -> Self {
        Self {
            verb,
            is_each_told: !is_bulk || ctx.out.is_json() || ctx.out.is_verbose(),
            count: 0,
            alike: HashMap::new(),
            others: 0,
        }
    }

    /// Adds a failure, and prints it unless failures are grouped.
    pub(crate) fn add(
        &mut self,
        ctx: &Context,
        name: String,
        reference: String,
        reason: anyhow::Error,
    ) {
        self.count += 1;
        if self.is_each_told {
            return ctx.tell(&reason.context(ctx.trying(self.verb, name).with(reference)));
        }
        let told = chain(reason.as_ref());
        if self.alike.len() >= KEPT && !self.alike.contains_key(&told) {
            self.others += 1;
            return;
        }
        let alike = self.alike.entry(told).or_insert_with(|| Alike {
            reason,
            reference,
            named: Vec::new(),
            count: 0,
        });
        alike.count += 1;
        if alike.named.len() < NAMED {
            alike.named.push(name);
        }
    }

    /// Prints the groups, and returns the error for all jobs.
    pub(crate) fn end(self, ctx: &Context, total: usize) -> anyhow::Result<()> {
        let failed = self.count;
        self.report_mistakes(ctx);
        match failed {
            0 => Ok(()),
            failed => Err(CommandError::Partly { failed, total }.into()),
        }
    }

    fn report_mistakes(self, ctx: &Context) {
        let mut alike: Vec<_> = self.alike.into_values().collect();
        alike.sort_by(|one, other| (other.count, &one.named).cmp(&(one.count, &other.named)));
        let untold = alike.split_off(alike.len().min(REASONS));
        let is_any_unnamed = alike.iter().any(|alike| alike.count > NAMED);
        for Alike {
            reason,
            reference,
            named,
            count,
        } in alike
        {
            let whom = whom(&named, count);
            ctx.tell(&reason.context(ctx.trying(self.verb, whom).with(reference)));
        }
        let others: u64 = untold.iter().map(|alike| alike.count as u64).sum();
        let others = others + self.others as u64;
        if others > 0 {
            let others = count(others);
            ctx.out
                .note(format!("{others} more failed for other reasons"));
        }
        if is_any_unnamed || others > 0 {
            ctx.out.note("-v prints each failure");
        }
    }
}

fn whom(named: &[String], jobs: usize) -> String {
    let (names, unnamed) = (named.join(", "), jobs - named.len());
    match (jobs, unnamed) {
        (1, _) => names,
        (_, 0) => format!("{} ({names})", count(jobs as u64)),
        (_, unnamed) => format!("{} ({names} and {unnamed} more)", count(jobs as u64)),
    }
}
