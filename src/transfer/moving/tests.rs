//! Tests the move protocol in every order of two movers, two peers, an operator, deleted records and a fault.
//!
//! The code under test is the production code. Its boards are in memory, and each request is a step. Before each step
//! the test chooses the next actor, and whether the mover dies or loses an answer.

use std::{
    pin::Pin,
    sync::Arc,
    task::{self, Poll, Waker},
    time::Duration,
};

use futures_util::TryStreamExt;

use super::{Mover, Route, resume};
use crate::{
    board::{
        Board, Detail, Query,
        testing::moves::{MoveBoard, MoveWorld},
        url::BoardKind,
    },
    job::{Location, MOVER, Owner},
    process::host_name,
    transfer::{
        loader::Loader,
        record::{self, Conversion},
    },
};

const A: usize = 0;
const B: usize = 1;

/// A process that does not exist, so that its claims count as dead.
fn process(number: usize) -> Owner {
    let host = host_name();
    Owner::new(&format!("ada:{host}:{}:c0ffee0{number}", i32::MAX)).unwrap()
}

fn owner(number: usize) -> Owner {
    Owner::new(&format!("{MOVER}{}", process(number))).unwrap()
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Role {
    Mover {
        from: usize,
        to: usize,
    },
    /// Finishes interrupted moves, and takes running ones for dead.
    Resumer {
        from: usize,
        to: usize,
    },
    /// Claims the job if it is free, runs it, and consumes it.
    Peer(usize),
    Operator(usize),
    Eraser(usize),
}

async fn act(world: Arc<MoveWorld>, role: Role, number: usize) {
    let board = |side| Arc::new(MoveBoard::new(&world, side, Some(number)));
    match role {
        Role::Mover { from, to } => {
            let route = route(board(from), board(to));
            let mover = Mover::new(&route, &process(number), Duration::from_secs(600)).unwrap();
            let loader = Loader::new(&*route.to, false).await.unwrap();
            let listed = route
                .from
                .entries(Query::all(Location::Board, Detail::Stored));
            let listed: Vec<_> = listed.try_collect().await.unwrap_or_default();
            let conversion = Conversion {
                from: None,
                to: BoardKind::Redis,
                max_details: 1 << 20,
            };
            let batch = listed.into_iter().map(|entry| {
                let draft = record::draft(entry.job().unwrap(), Vec::new(), conversion).unwrap();
                (entry, draft)
            });
            let _ = mover.pass(&loader, batch.collect()).await;
        }
        Role::Resumer { from, to } => {
            let _ = resume(&route(board(from), board(to))).await;
        }
        Role::Peer(side) => {
            if board(side).claim_as_peer().await {
                board(side).perform_as_peer().await;
            }
        }
        Role::Operator(side) => board(side).force().await,
        Role::Eraser(side) => board(side).erase().await,
    }
}

fn route(from: Arc<MoveBoard>, to: Arc<MoveBoard>) -> Route {
    Route {
        source: from.url().to_owned(),
        target: to.url().to_owned(),
        who: "ada".to_owned(),
        from,
        to,
    }
}

#[derive(Default)]
struct Choices {
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Choices {
    fn choose(&mut self, options: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, options));
        }
        let (choice, known) = self.taken[self.at];
        assert_eq!(known, options, "a run can be repeated");
        self.at += 1;
        choice
    }

    /// Moves on to the next run; `false` after the last one.
    fn advance(&mut self) -> bool {
        self.at = 0;
        while let Some((choice, options)) = self.taken.pop() {
            if choice + 1 < options {
                self.taken.push((choice + 1, options));
                return true;
            }
        }
        false
    }
}

/// The actors, the limit of interruptions between them, and the limit of faults.
struct Scene<'a> {
    roles: &'a [Role],
    interruptions: usize,
    faults: usize,
    has_history: bool,
}

type Actor = Pin<Box<dyn Future<Output = ()>>>;

impl Scene<'_> {
    /// Plays the scene in every order; returns the number of runs.
    async fn play_all(&self) -> usize {
        let (mut choices, mut runs) = (Choices::default(), 0);
        loop {
            self.play(&mut choices).await;
            runs += 1;
            if !choices.advance() {
                return runs;
            }
        }
    }

    async fn play(&self, choices: &mut Choices) {
        let world = Arc::new(MoveWorld::with_a_job_on(A, self.has_history));
        let start = |(number, role): (usize, &Role)| -> Option<Actor> {
            Some(Box::pin(act(Arc::clone(&world), *role, number)))
        };
        let mut actors: Vec<Option<Actor>> = self.roles.iter().enumerate().map(start).collect();
        let (mut interruptions, mut faults) = (self.interruptions, self.faults);
        let mut current = None;
        loop {
            let alive: Vec<_> = (0..actors.len())
                .filter(|at| actors[*at].is_some())
                .collect();
            if alive.is_empty() {
                break;
            }
            let is_going_on = current.is_some_and(|it| alive.contains(&it));
            let next = match current {
                Some(current) if is_going_on && interruptions == 0 => current,
                _ => alive[choices.choose(alive.len())],
            };
            interruptions -= usize::from(is_going_on && current != Some(next));
            current = Some(next);
            if faults > 0 && matches!(self.roles[next], Role::Mover { .. } | Role::Resumer { .. }) {
                let fault = choices.choose(4);
                faults -= usize::from(fault > 0);
                match fault {
                    1 => {
                        actors[next] = None;
                        // Its leases end at some time: now, or after everything else.
                        if choices.choose(2) == 1 {
                            world.expire(&owner(next));
                        }
                        continue;
                    }
                    2 => world.lose_request(next),
                    3 => world.lose_answer(next),
                    _ => {}
                }
            }
            step(&mut actors[next]);
            world.require_one_claimable(&(self.roles, &choices.taken));
        }
        (0..self.roles.len()).for_each(|number| world.expire(&owner(number)));
        for (from, to) in [(A, B), (B, A)] {
            let board = |side| Arc::new(MoveBoard::new(&world, side, None));
            resume(&route(board(from), board(to))).await.unwrap();
        }
        world.perform_the_rest();
        let is_of_move = |it: &&Role| matches!(it, Role::Mover { .. } | Role::Resumer { .. });
        let movers = self.roles.iter().filter(is_of_move).count();
        world.require_performed_once(movers, &(self.roles, &choices.taken));
    }
}

fn step(actor: &mut Option<Actor>) {
    let mut context = task::Context::from_waker(Waker::noop());
    if let Some(future) = actor
        && future.as_mut().poll(&mut context) == Poll::Ready(())
    {
        *actor = None;
    }
}

const TO_B: Role = Role::Mover { from: A, to: B };
const TO_A: Role = Role::Mover { from: B, to: A };

async fn survives(roles: &[Role], interruptions: usize, faults: usize) {
    for has_history in [true, false] {
        let scene = Scene {
            roles,
            interruptions,
            faults,
            has_history,
        };
        let runs = scene.play_all().await;
        assert!(runs > 20, "{roles:?}: {runs}");
        eprintln!("faults: moves, {roles:?}: {runs} orders, none lost, none run twice");
    }
}

/// The limit of interruptions; `scripts/faults` goes further.
fn depth() -> usize {
    let is_full = std::env::var_os("JOBBOARD_FAULTS").is_some_and(|it| it == "full");
    if is_full { 3 } else { 2 }
}

#[tokio::test]
async fn one_mover_and_two_peers_perform_a_job_once() {
    survives(&[TO_B, Role::Peer(A), Role::Peer(B)], depth(), 1).await;
}

#[tokio::test]
async fn two_movers_of_one_job_perform_it_once() {
    survives(&[TO_B, TO_B, Role::Peer(B)], depth() - 1, 1).await;
    survives(&[TO_B, TO_A, Role::Peer(A)], depth() - 1, 1).await;
}

#[tokio::test]
async fn forced_source_claim_and_early_resume_are_harmless() {
    survives(&[TO_B, Role::Operator(A), Role::Peer(A)], depth(), 1).await;
    let resumer = Role::Resumer { from: A, to: B };
    survives(&[TO_B, resumer, Role::Peer(A)], depth() - 1, 1).await;
}

#[tokio::test]
async fn deleted_commit_records_lose_no_job() {
    survives(&[TO_B, Role::Eraser(A), Role::Peer(B)], depth() - 1, 1).await;
    survives(&[TO_B, Role::Eraser(A), Role::Peer(A)], depth() - 1, 1).await;
}

#[tokio::test]
async fn two_faults_in_one_move_are_harmless() {
    survives(&[TO_B, Role::Peer(A), Role::Peer(B)], 1, 2).await;
}
