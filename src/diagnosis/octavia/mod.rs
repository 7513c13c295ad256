//! Diagnoses an Octavia board: its configuration, its logbooks, and load balancers without their job.

mod balancers;
mod jobs;
mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use chrono::{TimeDelta, Utc};

use self::jobs::Jobs;
pub(crate) use self::{
    balancers::{Asked, BalancerReport, JudgedBalancer, OctaviaReader, Workers},
    verdict::Verdict,
};
use crate::{
    board::{Board, examine::Examined},
    config::{Config, Octavia},
    logbook::{Logbook, StaleBook, flow_state},
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

/// Younger items may still be in progress.
const OLD: TimeDelta = TimeDelta::minutes(5);

const MAX_NAMED_BOOKS: usize = 5;

pub(super) async fn examine(config: &Config, board: &dyn Board, conf: &Octavia) -> Examined {
    let mut examined = Examined::default();
    for note in conf.notes() {
        let remedy = Fix::look(Suggestion::of("config"));
        examined.add(Problem::new(Code::SuspiciousConfig, note).fixed_by(remedy));
    }
    let mut reader = OctaviaReader::open(config, conf, conf.database.as_ref()).await;
    let short = reader
        .logbook
        .ask(&mut examined, Logbook::short_columns)
        .await;
    examined
        .problems
        .extend(short.filter(|it| !it.is_empty()).map(short_columns));
    let before = Utc::now() - OLD;
    // Read the logbooks before the jobs, so that a new job is not reported as missing.
    let books = reader
        .logbook
        .ask(&mut examined, async |it| it.books_before(before).await);
    let books = books.await.unwrap_or_default();
    let look = reader.look(board, Asked::Pending, &mut examined).await;
    let look = look.unwrap_or_default();
    let balancers = look.balancers;
    let known = match look.books {
        // The look reads no jobs if nothing is pending.
        None if !books.is_empty() && balancers.is_empty() => {
            Jobs::books(board, &mut examined).await
        }
        known => known,
    };
    if let Some(known) = known {
        add_books_without_job(&mut reader, &books, &known, &mut examined).await;
    }
    let stuck = balancers.into_iter();
    let stuck = stuck.filter(|it| {
        let is_old = it.balancer.since.is_none_or(|since| since < before);
        is_old && it.verdict.needs_operator()
    });
    examined
        .problems
        .extend(stuck.map(|it| stuck_balancer(&it)));
    examined
}

/// Reports logbooks that no job refers to.
async fn add_books_without_job(
    reader: &mut OctaviaReader,
    books: &[StaleBook],
    known: &HashSet<String>,
    examined: &mut Examined,
) {
    let without = books.iter().filter(|it| !known.contains(&it.uuid));
    let without: Vec<_> = without.collect();
    if without.is_empty() {
        return;
    }
    let uuids: Vec<_> = without.iter().map(|book| book.uuid.as_str()).collect();
    // Some may have ended meanwhile.
    let asked = reader
        .logbook
        .ask(examined, async |it| it.books(&uuids).await);
    if let Some(there) = asked.await {
        let still = without.into_iter().filter(|it| there.contains(&it.uuid));
        let still: Vec<_> = still.collect();
        examined.problems.extend(books_without_job(&still));
    }
}

fn short_columns(columns: Vec<String>) -> Problem {
    let summary = format!(
        "the logbook tables are from an older TaskFlow; columns that are too short: {}",
        columns.len()
    );
    let remedy = Fix::elsewhere(Suggestion::of("octavia-db-manage upgrade_persistence"));
    let problem = Problem::new(Code::ShortColumns, summary).fixed_by(remedy);
    columns
        .into_iter()
        .fold(problem, |problem, column| problem.seen("column", column))
}

fn stuck_balancer(judged: &JudgedBalancer) -> Problem {
    let balancer = &judged.balancer;
    let (id, status, why) = (&balancer.id, &balancer.status, &judged.why);
    let summary = format!("load balancer {id} is {status}: {why}");
    let fix = Fix::look(Suggestion::of("mend --lb").with([&balancer.id]));
    let problem = Problem::new(Code::StuckLoadBalancer, summary).fixed_by(fix);
    let problem = problem.seen("verdict", judged.verdict);
    problem.at("pending since", balancer.since, Utc::now())
}

/// Returns the command that shows a logbook, unless its uuid would escape the quotes of the SQL.
fn details_of(book: &str) -> Fix {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let sql = format!("SELECT * FROM flowdetails WHERE parent_uuid = '{book}'");
    Fix::elsewhere(match book.bytes().all(is_plain) {
        true => Suggestion::of("mysql octavia_persistence -e").with([sql]),
        false => Suggestion::of("openstack loadbalancer list"),
    })
}

fn books_without_job(books: &[&StaleBook]) -> Option<Problem> {
    let first = books.first()?;
    let mut states = BTreeMap::new();
    for book in books {
        let state = book.state.as_deref().unwrap_or(flow_state::PENDING);
        *states.entry(state).or_insert(0) += 1;
    }
    let states = states.into_iter();
    let states: Vec<_> = states
        .map(|(state, count)| format!("{state} {count}"))
        .collect();
    let (all, states) = (books.len(), states.join(", "));
    let summary = format!("logbooks without a job: {all} ({states})");
    let problem = Problem::new(Code::LogbookWithoutJob, summary).fixed_by(details_of(&first.uuid));
    let named = books.iter().take(MAX_NAMED_BOOKS);
    Some(named.fold(problem, |problem, book| {
        let about = book.load_balancer.as_ref().map(|id| format!(", lb {id}"));
        let described = format!("{} {}{}", book.uuid, book.name, about.unwrap_or_default());
        problem.seen("logbook", described)
    }))
}
