//! Performing jobs under claims that are kept alive.
//!
//! Nothing here prints, parses arguments or reads the environment: what a command is to see, and
//! by what it is found, comes in from above, and what became of it goes back there.
//!
//! A conductor that stays is made of parts that work at once: `picker` finds jobs and claims them,
//! `attempt` performs one, `settler` tells the board what became of them, `lease` keeps the claims
//! and `guard` sees to it that no command outlives its own. Here they are put together.

mod attempt;
mod capture;
pub(crate) mod clock;
mod crew;
pub(crate) mod front;
pub(crate) mod group;
pub(crate) mod guard;
pub(crate) mod here;
pub(crate) mod init;
pub(crate) mod lease;
mod outage;
pub(crate) mod performance;
mod picker;
pub(crate) mod policy;
pub(crate) mod process;
pub(crate) mod progress;
mod registration;
mod rooms;
mod settler;
pub(crate) mod signal;
pub(crate) mod terminal;
mod verdict;

use std::{io, sync::Arc, time::Duration};

use thiserror::Error;
use tokio::{
    sync::{mpsc, watch},
    task::{JoinHandle, JoinSet},
};

use self::{
    attempt::{Attempt, Finished, GRACE, Phase},
    clock::Boottime,
    crew::{Crew, Hands},
    guard::{Guard, Launch},
    lease::Keeper,
    picker::{Aim, Picker, Won},
    policy::Policy,
    progress::{Note, Reporter, Tag},
    rooms::Rooms,
    settler::Settler,
    signal::Signals,
};
pub(crate) use self::{
    capture::Destination,
    settler::Tally,
    verdict::{OnFailure, Patience},
};
use crate::{
    board::{self, Board, BoardError, filter::Filters},
    job::{Claim, Claimant, Conductor, Term},
};

/// Within it a second signal is an echo of the first: a shell and the kernel may both send one.
const ECHO: Duration = Duration::from_millis(200);

/// How long a command may take to end when somebody wants it to end at once.
const HASTE: Duration = Duration::from_millis(500);

/// All that a conductor is told.
#[derive(Debug)]
pub(crate) struct Settings {
    /// How it is registered, and as whom it claims.
    pub(crate) conductor: Conductor,
    /// By what the guard knows its commands; like no other on this machine.
    pub(crate) mark: String,
    /// How many jobs it performs at once.
    pub(crate) jobs: usize,
    pub(crate) lease: Duration,
    pub(crate) filters: Filters,
    pub(crate) until: Until,
    pub(crate) policy: Policy,
    pub(crate) patience: Patience,
    pub(crate) output: Destination,
    pub(crate) job_timeout: Option<Duration>,
    pub(crate) grace: Duration,
    /// Variables of ours that no command may inherit.
    pub(crate) secrets: Vec<&'static str>,
}

/// When a conductor ends by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    /// Once nothing is left to do.
    pub(crate) drained: bool,
    /// After so many jobs.
    pub(crate) jobs: Option<u64>,
    /// After nothing was done for so long.
    pub(crate) idle: Option<Duration>,
}

/// Why a conductor could not go on.
#[derive(Debug, Error)]
pub(crate) enum Halted {
    #[error(transparent)]
    Board(#[from] BoardError),
    #[error("commands cannot be watched over")]
    Unwatched(#[from] io::Error),
    #[error("a part of the conductor has failed")]
    Broken,
}

/// Conducts until told otherwise, and returns what came of it.
///
/// `signals` must have been caught since before anything was claimed.
pub(crate) async fn conduct(
    board: Arc<dyn Board>,
    settings: Settings,
    reporter: Reporter,
    signals: &mut Signals,
) -> Result<Tally, Halted> {
    // Who was started to ignore the end of children would not be told how one ended.
    let _children = Signals::catch(&[rustix::process::Signal::CHILD])?;
    let guard = Arc::new(Guard::start(Launch::this_program(), &settings.mark)?);
    let crew = Arc::new(Crew {
        owner: settings.conductor.owner.clone(),
        mark: settings.mark.clone(),
        guard,
        policy: settings.policy.clone(),
        patience: settings.patience.clone(),
        output: settings.output.clone(),
        job_timeout: settings.job_timeout,
        secrets: settings.secrets.clone(),
        reporter,
        hands: Hands::default(),
        is_cut_off: Arc::default(),
    });
    tokio::select! {
        biased;
        _ = signals.next() => return Ok(Tally::default()),
        registered = registration::register(&*board, &settings.conductor, &crew) => registered?,
    }
    let name = settings.conductor.name.as_str();
    let note = Note::new("conducting")
        .with("conductor", name)
        .with("board", board.name());
    crew.reporter.tell(note.with("jobs", settings.jobs));
    Ensemble::start(board, &settings, crew).lead(signals).await
}

/// The parts of a conductor at work.
struct Ensemble {
    crew: Arc<Crew>,
    claims: Claims,
    grace: Duration,
    idle: Option<Duration>,
    phase: watch::Sender<Phase>,
    won: mpsc::UnboundedReceiver<Won>,
    finished: mpsc::UnboundedSender<Finished>,
    picker: Part<board::Result<()>>,
    settler: Part<(Tally, Option<BoardError>)>,
    attempts: JoinSet<()>,
}

/// How claims are kept.
struct Claims {
    keeper: Keeper,
    term: Duration,
}

/// A part that works by itself; dropped, it stops.
struct Part<T>(JoinHandle<T>);

impl<T> Part<T> {
    async fn end(&mut self) -> Result<T, Halted> {
        (&mut self.0).await.map_err(|_| Halted::Broken)
    }
}

impl<T> Drop for Part<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why no more is claimed.
enum Rest {
    /// The picker has ended: the aim is reached, or the board does not let us in any more.
    Picked(board::Result<()>),
    /// The settler has ended: the board does not let us in any more.
    Unsettled(BoardError),
    /// There was nothing to do for so long.
    Idle,
    /// Somebody told us to end.
    Told,
}

impl Ensemble {
    fn start(board: Arc<dyn Board>, settings: &Settings, crew: Arc<Crew>) -> Self {
        let (phase, phases) = watch::channel(Phase::Work);
        let (won_here, won) = mpsc::unbounded_channel();
        let (finished, finished_there) = mpsc::unbounded_channel();
        let (returned_there, returned) = mpsc::unbounded_channel();
        let until = settings.until;
        let picker = Picker {
            board: Arc::clone(&board),
            crew: Arc::clone(&crew),
            filters: settings.filters.clone(),
            by: Claimant {
                owner: crew.owner.clone(),
                term: Term::Kept(settings.lease),
            },
            aim: Aim {
                drain: until.drained,
                jobs_left: until.jobs,
            },
            rooms: Arc::new(Rooms::new(settings.jobs)),
            won: won_here,
            returned,
            phase: phases,
        };
        let settler = Settler {
            board: Arc::clone(&board),
            crew: Arc::clone(&crew),
            finished: finished_there,
            returned: returned_there,
            remembers_failures: until.drained || until.jobs.is_some(),
            tally: Tally::default(),
        };
        Self {
            crew,
            claims: Claims {
                keeper: Keeper::start(board),
                term: settings.lease,
            },
            grace: settings.grace,
            idle: until.idle,
            phase,
            won,
            finished,
            picker: Part(tokio::spawn(picker.run())),
            settler: Part(tokio::spawn(settler.run())),
            attempts: JoinSet::new(),
        }
    }

    /// Leads the work until it is done, or until somebody ends it.
    async fn lead(mut self, signals: &mut Signals) -> Result<Tally, Halted> {
        let rest = self.work(signals).await?;
        match &rest {
            Rest::Told => self.stop_starting(),
            Rest::Picked(Err(_)) | Rest::Unsettled(_) => self.abort_by(Boottime::now() + GRACE),
            Rest::Idle => _ = self.phase.send_replace(Phase::Finish),
            // What was claimed last is still to be started.
            Rest::Picked(Ok(())) => {}
        }
        if !matches!(rest, Rest::Picked(_)) {
            // With a claim under way it ends once that is answered; how, does not matter any more.
            let _ = self.picker.end().await?;
        }
        while let Ok(won) = self.won.try_recv() {
            self.perform(won);
        }
        self.finish(signals, matches!(rest, Rest::Told)).await;
        drop(self.finished);
        match rest {
            Rest::Picked(Err(error)) | Rest::Unsettled(error) => Err(error.into()),
            Rest::Picked(Ok(())) | Rest::Idle | Rest::Told => match self.settler.end().await? {
                (tally, None) => Ok(tally),
                (_, Some(error)) => Err(error.into()),
            },
        }
    }

    /// Performs what is claimed until no more is to be claimed.
    async fn work(&mut self, signals: &mut Signals) -> Result<Rest, Halted> {
        loop {
            tokio::select! {
                biased;
                _ = signals.next() => return Ok(Rest::Told),
                Some(won) = self.won.recv() => self.perform(won),
                Some(_) = self.attempts.join_next() => {}
                ended = self.picker.end() => return Ok(Rest::Picked(ended?)),
                settled = self.settler.end() => return match settled? {
                    (_, Some(error)) => Ok(Rest::Unsettled(error)),
                    // It ends when everybody else has.
                    (_, None) => Err(Halted::Broken),
                },
                never = self.crew.guard.tend() => match never {},
                () = idle(&self.crew, self.idle) => return Ok(Rest::Idle),
            }
        }
    }

    fn perform(&mut self, won: Won) {
        let Won {
            claimed,
            asked,
            room,
        } = won;
        let claim = Claim {
            key: claimed.job.key.clone(),
            owner: self.crew.owner.clone(),
            fence: Some(claimed.fence.clone()),
            term: self.claims.term,
        };
        let attempt = Attempt {
            tag: Arc::new(Tag {
                uuid: claimed.job.uuid.clone(),
                name: claimed.job.name.clone(),
            }),
            job: claimed.job,
            fence: claimed.fence,
            lease: self.claims.keeper.hold(claim, asked),
        };
        let (crew, phase) = (Arc::clone(&self.crew), self.phase.subscribe());
        let finished = self.finished.clone();
        self.attempts.spawn(async move {
            // Whoever settles is there as long as anybody performs.
            let over = |it| _ = finished.send(it);
            attempt.perform(&crew, phase, room, over).await;
        });
    }

    /// Lets what runs come to its end, or brings that about.
    async fn finish(&mut self, signals: &mut Signals, is_told: bool) {
        let mut last = Boottime::now();
        let mut hurry = is_told.then(|| Boottime::now() + self.grace);
        loop {
            let over = async {
                match hurry {
                    Some(moment) => clock::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                ended = self.attempts.join_next() => if ended.is_none() { return },
                () = over => {
                    hurry = None;
                    self.abort_by(Boottime::now() + GRACE);
                }
                _ = signals.next() => {
                    if (last + ECHO).is_past() {
                        match hurry {
                            // The first one, after all was done but for what runs.
                            None if *self.phase.borrow() == Phase::Work => {
                                self.stop_starting();
                                hurry = Some(Boottime::now() + self.grace);
                            }
                            _ => {
                                hurry = None;
                                self.abort_by(Boottime::now() + HASTE);
                            }
                        }
                    }
                    last = Boottime::now();
                }
                never = self.crew.guard.tend() => match never {},
            }
        }
    }

    /// Has nothing started any more, since somebody told us to end.
    fn stop_starting(&self) {
        self.crew.reporter.tell(Note::new("stopping"));
        self.phase.send_replace(Phase::Finish);
    }

    /// Has everything ended, and killed at this moment.
    fn abort_by(&self, kill_at: Boottime) {
        self.phase.send_replace(Phase::Abort(kill_at));
    }
}

async fn idle(crew: &Crew, long: Option<Duration>) {
    match long {
        Some(long) => crew.hands.idle(long).await,
        None => std::future::pending().await,
    }
}
