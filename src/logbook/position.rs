//! The position of a flow, in one sentence.

use chrono::{DateTime, Utc};

use super::{AtomState, Flow, FlowProgress};
use crate::duration;

pub(crate) fn position(flow: &Flow, now: DateTime<Utc>) -> String {
    let FlowProgress {
        done,
        all,
        reverting: goes_back,
    } = flow.progress();
    let counted = match goes_back {
        true => format!("{done} of {all} reverted"),
        false => format!("{done} of {all} done"),
    };
    let because = match flow.failed() {
        Some((atom, failure)) => {
            let when = if goes_back { "since" } else { "after" };
            format!(", {when} {} failed with {}", atom.title(), failure.line())
        }
        None => String::new(),
    };
    match flow.state.as_deref() {
        None | Some("PENDING") if flow.atoms.is_empty() => "the flow has not started".to_owned(),
        Some("RUNNING") if flow.atoms.is_empty() => {
            "the flow has started, but none of its tasks".to_owned()
        }
        Some("SUCCESS") => format!("the flow has succeeded, {counted}"),
        Some("REVERTED") => format!("the flow was reverted{because}"),
        Some("FAILURE") => format!("the flow has failed, {counted}{because}"),
        Some("SUSPENDED" | "SUSPENDING") => format!("the flow is suspended, {counted}{because}"),
        _ if goes_back => {
            format!("the flow is reverting{}, {counted}{because}", at(flow, now))
        }
        _ => format!("the flow is{}, {counted}{because}", at(flow, now)),
    }
}

fn at(flow: &Flow, now: DateTime<Utc>) -> String {
    let at_work = flow.at_work();
    let Some((first, others)) = at_work.split_first() else {
        return " between two tasks".to_owned();
    };
    let long = first
        .lasts(now)
        .map(|long| format!(" for {}", duration::brief(long)));
    let doing = match first.state {
        AtomState::Retrying => " at retrying ",
        _ => " at ",
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{doing}{}{}{more}", first.title(), long.unwrap_or_default())
}
