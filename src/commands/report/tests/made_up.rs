//! Made-up boards of untrusted texts.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    board::{examine, testing::scripted::Scripted},
    commands::{
        doctor::Told,
        explain::{Code, Explanation, Finding, Severity},
        parts::tally::Tally,
        report::{
            facts::Facts,
            gather::{Gathered, guarded},
            guard,
        },
    },
    job::{
        Conductor, Departure, End, Entry, Failure, Holding, Job, Lease, Owner, Pause, Remark, Run,
        Shelf, Told as Tells,
    },
    suggest::Suggestion,
};

pub(super) fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_370_400, 0).unwrap()
}

pub(super) fn ago(seconds: i64) -> DateTime<Utc> {
    at() - TimeDelta::seconds(seconds)
}

/// Untrusted texts in rotation.
pub(super) struct Strangers<'a> {
    texts: &'a [&'a str],
    next: usize,
}

impl<'a> Strangers<'a> {
    pub(super) fn of(texts: &'a [&'a str]) -> Self {
        Self { texts, next: 0 }
    }

    fn text(&mut self) -> String {
        self.next += 1;
        self.texts[self.next % self.texts.len()].to_owned()
    }

    fn owner(&mut self) -> Owner {
        Owner::from_stored(self.text())
    }

    pub(super) fn failure(&mut self, seconds: i64) -> Failure {
        Failure {
            exit_code: (seconds % 2 == 0).then_some(1),
            stdout: self.text(),
            stderr: self.text(),
            time: ago(seconds),
            ..Failure::told(&self.text(), &self.text())
        }
    }

    pub(super) fn job(&mut self, number: usize, posted: i64) -> Job {
        Job {
            uuid: format!("00000000-0000-4000-8000-{number:012}"),
            name: self.text(),
            created_on: Some(ago(posted)),
            ..Scripted::new().post("job", None)
        }
    }

    pub(super) fn held(&mut self, job: Job, lease: Lease) -> Job {
        let holding = Holding {
            owner: Some(self.owner()),
            lease,
            expires_in: (lease == Lease::Timed).then_some(Duration::from_secs(20)),
            outlives: None,
            claimed_on: Some(ago(95)),
            fence: None,
        };
        Job {
            holding: Some(holding),
            ..job
        }
    }

    pub(super) fn ended(&mut self, job: Job, seconds: i64, departure: Departure) -> Job {
        let mut ended = Job {
            shelf: Shelf::Past,
            ended: Some(End {
                on: ago(seconds),
                departure,
                owner: Some(self.owner()),
                claimed_on: Some(ago(seconds + 45)),
                has_succeeded: departure == Departure::Consumed,
            }),
            ..job
        };
        ended.history.first_claimed_on = Some(ago(seconds + 45));
        ended
    }
}

pub(super) fn facts(texts: &[&str]) -> Facts {
    let mut strangers = Strangers::of(texts);
    let (mut gathered, mut tally) = (Gathered::new(at()), Tally::new(at()));
    let waiting = [(3, 0), (40, 1), (5_000, 2), (90_000, 5)].map(|(posted, failed)| {
        let mut job = strangers.job(failed + 1, posted);
        job.history.attempts = u32::try_from(failed).unwrap();
        let failures = (0..failed.min(3)).map(|it| strangers.failure(20 + it as i64));
        job.history.failures = failures.collect();
        job
    });
    let job = strangers.job(11, 400);
    let timed = strangers.held(job, Lease::Timed);
    let job = strangers.job(12, 9_000);
    let forever = strangers.held(job, Lease::None);
    for job in waiting.into_iter().chain([timed, forever]) {
        let job = told(job);
        gathered.add(job.job().unwrap());
        tally.add(&job);
    }
    let ends = [
        (60, Departure::Consumed),
        (150, Departure::Failed),
        (155, Departure::Consumed),
    ];
    for (number, (seconds, departure)) in ends.into_iter().enumerate() {
        let job = strangers.job(20 + number, seconds + 70);
        let mut job = strangers.ended(job, seconds, departure);
        job.history.failures = vec![strangers.failure(seconds)];
        gathered.add_left(&told(job));
    }
    let conductors = [conductor(&mut strangers)];
    let (figures, names, owners) = tally.finish(&conductors);
    let pause = Pause {
        names: strangers.text(),
        until: Some(at()),
        remark: Remark::now("paused", &strangers.text(), None),
    };
    Facts {
        board: strangers.text(),
        server: strangers.text(),
        version: "0.0.0",
        findings: vec![found(&mut strangers)],
        explained: vec![explained(&mut strangers)],
        wrong: 1,
        unseen: vec![strangers.text()],
        figures,
        names,
        owners,
        trashed: 2,
        conductors: Some(1),
        pauses: vec![pause],
        ..gathered.into_facts(&conductors)
    }
}

pub(super) fn told(job: Job) -> Entry {
    guarded(Entry::Job(job.into()), TimeDelta::zero())
}

pub(super) fn conductor(strangers: &mut Strangers<'_>) -> Conductor {
    let mut conductor = Conductor {
        name: strangers.text(),
        host: strangers.text(),
        pid: 1,
        since: ago(1000),
        owner: strangers.owner(),
        silence: None,
        has_left: false,
        told: Tells {
            runs: vec![Run {
                uuid: strangers.text(),
                name: strangers.text(),
                since: ago(30),
                attempt: 1,
            }],
            ..Tells::default()
        },
    };
    guard::conductor(&mut conductor);
    conductor
}

pub(super) fn found(strangers: &mut Strangers<'_>) -> Told {
    let remedy = examine::Remedy::Shows(Suggestion::of("show").with([strangers.text()]));
    let finding = examine::Finding::new(examine::Code::NeverLapsing, strangers.text(), remedy);
    Told::new(
        finding.seen("owner", strangers.text()),
        &Suggestion::of("jobboard"),
    )
}

pub(super) fn explained(strangers: &mut Strangers<'_>) -> Explanation {
    let finding = Finding::new(Code::HeldForever, Severity::Error, strangers.text());
    let finding = finding
        .seen(strangers.text(), strangers.text())
        .at("held", Some(ago(95)), at());
    Explanation {
        job: strangers.text(),
        name: strangers.text(),
        verdict: Code::HeldForever,
        will_run: false,
        findings: vec![finding.mend(
            strangers.text(),
            Suggestion::default().with([strangers.text()]),
        )],
        unseen: Vec::new(),
        like: None,
    }
}
