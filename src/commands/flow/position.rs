//! Where a flow is, in one sentence.

use chrono::{DateTime, Utc};

use crate::{
    duration,
    logbook::{AtomState, Flow, Progress},
};

pub(crate) fn position(flow: &Flow, now: DateTime<Utc>) -> String {
    let Progress {
        done,
        all,
        reverting: goes_back,
    } = flow.progress();
    let counted = match goes_back {
        true => format!("{done} of {all} undone"),
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
        None | Some("PENDING") if flow.atoms.is_empty() => "its flow has not begun".to_owned(),
        Some("RUNNING") if flow.atoms.is_empty() => {
            "its flow has begun, and none of its tasks yet".to_owned()
        }
        Some("SUCCESS") => format!("its flow has succeeded, {counted}"),
        Some("REVERTED") => format!("its flow was undone{because}"),
        Some("FAILURE") => format!("its flow has failed, {counted}{because}"),
        Some("SUSPENDED" | "SUSPENDING") => format!("its flow is suspended, {counted}{because}"),
        _ if goes_back => {
            format!("its flow goes back{}, {counted}{because}", at(flow, now))
        }
        _ => format!("its flow is{}, {counted}{because}", at(flow, now)),
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
        AtomState::Reverting => " at undoing ",
        AtomState::Retrying => " at trying again ",
        _ => " at ",
    };
    let more = match others.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{doing}{}{}{more}", first.title(), long.unwrap_or_default())
}
