//! The conductors of a scenario.

use std::{sync::Arc, time::Duration};

use chrono::DateTime;
use clap::Parser;

use super::{LEASE, RunningProgram, World};
use crate::{
    board::{
        EventKind,
        filter::Filters,
        testing::simulated::{ClaimLifetime, Server},
    },
    conductor::{
        ConductorStatus, Destination, Halted, Settings, StopCondition, TimeLimit,
        log::{LogItem, Reporter},
        policy::{ExecutionPolicy, ProgramCache},
        shared::Shared,
        work,
    },
    job::{Conductor, ConductorReport, Owner},
    process::{
        signal::Signals,
        simulation::{Standing, part_of},
    },
    retry::RetryPolicy,
};

pub(super) fn name(at: usize) -> String {
    format!("c{at}")
}

pub(super) fn slots(at: usize) -> usize {
    6 - 2 * at
}

#[derive(Debug, clap::Parser)]
struct Retry {
    #[command(flatten)]
    policy: RetryPolicy,
}

pub(super) fn retry() -> RetryPolicy {
    Retry::parse_from(["conduct", "--retry-max", "60s"]).policy
}

/// A conductor reports only settlements that the board has made for it.
fn hear(server: &Server, owner: &Owner, item: LogItem) {
    let LogItem::Note(note) = item else { return };
    let kind = match note.event {
        "job_consumed" => EventKind::Consumed,
        "job_trashed" => EventKind::Trashed,
        "job_abandoned" | "job_postponed" => EventKind::Abandoned,
        _ => return,
    };
    if let Some(job) = &note.job {
        server.change(|store| store.hear_report(&job.uuid, owner, kind));
    }
}

impl World {
    pub(super) fn start_conductor(&mut self, at: usize) {
        self.next += 1;
        let (program, lifetime) = (self.next, self.scenario.lifetime);
        let board = self.board(program);
        let (name, jobs) = (name(at), slots(at));
        let (machine, server) = (Arc::clone(&self.machine), Arc::clone(&self.server));
        machine.note(format_args!("{name} starts as {program}"));
        let task = tokio::spawn(part_of(Some(program), async move {
            if lifetime == ClaimLifetime::Session {
                board.keep_session(LEASE);
            }
            let (reporter, mut notes) = Reporter::new();
            let owner = Owner::new(&name).unwrap();
            let reading = tokio::spawn(async move {
                while let Some(item) = notes.recv().await {
                    hear(&server, &owner, item);
                }
            });
            let shared = Shared::new(board, settings(&name, program, jobs, &reporter));
            let mut signals = Signals::catch(&[]).unwrap();
            let done = work(&Arc::new(shared.unwrap()), &mut signals).await;
            match done {
                // A board may refuse a new conductor. In practice, its service manager starts it again.
                Err(Halted::Board(error)) => machine.note(format_args!("{name} ends: {error}")),
                other => machine.violate(format!("{name} ended unasked: {other:?}")),
            }
            reading.abort();
            // Its session ends with it.
            machine.set(program, Standing::Dead);
        }));
        self.running[at] = Some(RunningProgram { program, task });
    }
}

fn settings(name: &str, program: u32, jobs: usize, reporter: &Reporter) -> Settings {
    let until = StopCondition {
        drained: false,
        jobs: None,
        idle: None,
    };
    Settings {
        conductor: Conductor {
            name: name.to_owned(),
            host: "simulated".to_owned(),
            pid: program,
            since: DateTime::default(),
            owner: Owner::new(name).unwrap(),
            silence: None,
            has_left: false,
            report: ConductorReport::default(),
        },
        mark: format!("{name}:{program}"),
        jobs,
        lease: LEASE,
        filters: Filters::default(),
        until,
        policy: ExecutionPolicy {
            found: Some(ProgramCache::default()),
            ..ExecutionPolicy::unrestricted()
        },
        retry: retry(),
        output: Destination::Inherit,
        time_limit: TimeLimit {
            usual: None,
            most: None,
        },
        grace: Duration::from_secs(30),
        status: Arc::new(ConductorStatus::new(reporter, until)),
        spans: None,
        withheld: Vec::new(),
        service_manager: None,
    }
}
