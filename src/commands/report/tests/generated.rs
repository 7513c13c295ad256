//! Made-up boards of untrusted texts.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::{
    board::{Capabilities, testing::scripted::Scripted},
    commands::report::{
        facts::ReportFacts,
        gather::{ReportData, masked},
        masking,
    },
    diagnosis::{Checkup, Snapshot, Survey, Surveyor},
    job::{
        AuditEntry, ClaimEnd, Conductor, ConductorReport, End, Entry, Failure, Holding, Job,
        Location, Outcome, Owner, Pause, Pauses, Run,
    },
    problem::{Code, Example, Fix, Problem},
    suggest::Suggestion,
};

pub(super) fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_795_370_400, 0).unwrap()
}

pub(super) fn ago(seconds: i64) -> DateTime<Utc> {
    at() - TimeDelta::seconds(seconds)
}

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
            ..Failure::reported(&self.text(), &self.text())
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

    pub(super) fn held(&mut self, job: Job, lease: ClaimEnd) -> Job {
        let holding = Holding {
            owner: Some(self.owner()),
            end: lease,
            expires_in: (lease == ClaimEnd::Timed).then_some(Duration::from_secs(20)),
            outlives: None,
            claimed_on: Some(ago(95)),
            fence: None,
        };
        Job {
            holding: Some(holding),
            ..job
        }
    }

    pub(super) fn ended(&mut self, job: Job, seconds: i64, outcome: Outcome) -> Job {
        let mut ended = Job {
            location: Location::History,
            ended: Some(End {
                on: ago(seconds),
                outcome,
                owner: Some(self.owner()),
                claimed_on: Some(ago(seconds + 45)),
                has_succeeded: outcome == Outcome::Consumed,
            }),
            ..job
        };
        ended.attempts.first_claimed_on = Some(ago(seconds + 45));
        ended
    }
}

pub(super) fn surveyor(conductors: Vec<Conductor>) -> Surveyor {
    let capabilities = Capabilities {
        has_expiring_claims: true,
        ..Capabilities::default()
    };
    Surveyor::new(Snapshot::new(capabilities, None, at()).with_conductors(conductors))
}

pub(super) fn diagnosed(facts: ReportFacts, survey: Survey, problems: Vec<Problem>) -> ReportFacts {
    let own = survey.problems().into_iter();
    let own = own.map(|it| it.on(&Suggestion::of("jobboard")));
    let checkup = Checkup {
        survey: Some(survey),
        ..Checkup::default()
    };
    facts.diagnosed(checkup, problems.into_iter().chain(own).collect())
}

pub(super) fn facts(texts: &[&str]) -> ReportFacts {
    let mut strangers = Strangers::of(texts);
    let conductor = conductor(&mut strangers);
    let (mut gathered, mut surveyor) = (ReportData::new(at()), surveyor(vec![conductor.clone()]));
    let names = strangers.text();
    let audit = AuditEntry::now("paused", &strangers.text(), None);
    let pause = Pause::new(names, Some(at() + TimeDelta::hours(1)), audit);
    surveyor.survey.snapshot.pauses = Pauses::new(vec![pause], at());
    let waiting = [(3, 0), (40, 1), (5_000, 2), (90_000, 5)].map(|(posted, failed)| {
        let mut job = strangers.job(failed + 1, posted);
        job.attempts.count = u32::try_from(failed).unwrap();
        let failures = (0..failed.min(3)).map(|it| strangers.failure(20 + it as i64));
        job.attempts.failures = failures.collect();
        job
    });
    let job = strangers.job(11, 400);
    let timed = strangers.held(job, ClaimEnd::Timed);
    let job = strangers.job(12, 9_000);
    let forever = strangers.held(job, ClaimEnd::Never);
    for job in waiting.into_iter().chain([timed, forever]) {
        let job = masked_entry(job);
        gathered.add(job.job().unwrap());
        surveyor.add(&job);
    }
    let ends = [
        (60, Outcome::Consumed),
        (150, Outcome::Failed),
        (155, Outcome::Consumed),
    ];
    for (number, (seconds, outcome)) in ends.into_iter().enumerate() {
        let job = strangers.job(20 + number, seconds + 70);
        let mut job = strangers.ended(job, seconds, outcome);
        job.attempts.failures = vec![strangers.failure(seconds)];
        gathered.add_left(&masked_entry(job));
    }
    let facts = ReportFacts {
        board: strangers.text(),
        server: strangers.text(),
        version: "0.0.0",
        unseen: vec![strangers.text()],
        trashed: 2,
        ..gathered.into_facts()
    };
    let problems = vec![problem(&mut strangers)];
    diagnosed(facts, surveyor.counted(), problems).masked()
}

pub(super) fn masked_entry(job: Job) -> Entry {
    masked(Entry::Job(job.into()), TimeDelta::zero())
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
        report: ConductorReport {
            runs: vec![Run {
                uuid: strangers.text(),
                name: strangers.text(),
                since: ago(30),
                attempt: 1,
            }],
            ..ConductorReport::default()
        },
    };
    masking::conductor(&mut conductor);
    conductor
}

pub(super) fn problem(strangers: &mut Strangers<'_>) -> Problem {
    let fix = Fix::look(Suggestion::of("show").with([strangers.text()]));
    let mut problem = Problem::new(Code::UnreadableRecord, strangers.text())
        .seen(strangers.text(), strangers.text())
        .at("held", Some(ago(95)), at())
        .fixed_by(fix.because(strangers.text()))
        .on(&Suggestion::of("jobboard"));
    problem.jobs = 2;
    problem.examples.push(Example {
        job: strangers.text(),
        name: strangers.text(),
        since: Some(ago(95)),
    });
    problem
}
