//! Tests the counts and the problems of a survey.

use std::{collections::BTreeMap, process::Command, thread, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::{
    NO_PID, ago, board, conductor, entry, exhausted, held, host_name, job, trashed, unreadable,
    with,
};
use crate::{
    diagnosis::{Death, ProblemSelector, Survey, Surveyor, absence},
    job::{AuditEntry, ClaimEnd, Conductor, Entry, Job, MOVER, Owner, PublishedPolicy},
    problem::{Code, Problem, Risk, Severity},
    process::group::{is_stopped, process_start, start_of},
};

const HOSTILE: [&str; 14] = [
    "a*b",
    "a?b",
    "a[b",
    "a]b",
    "a'b",
    "a;b",
    "[!a]*",
    "--force",
    "\u{1b}[2J\n\u{202e}",
    "=",
    "no space left on /dev/sda1, which is a device with a long name, 1",
    "no space left on /dev/sda1, which is a device with a long name, 2",
    "no space left on /dev/sda1, which is a device with a long [name]",
    "日本語 اللغة 😀",
];

fn survey(entries: &[Entry]) -> Survey {
    let mut surveyor = Surveyor::new(board(false).with_conductors(vec![conductor()]));
    entries.iter().for_each(|it| {
        surveyor.add(it);
    });
    surveyor.counted()
}

fn sums(problems: &[Problem]) -> BTreeMap<Code, u64> {
    let mut sums = BTreeMap::new();
    for it in problems {
        *sums.entry(it.code).or_default() += it.jobs;
    }
    sums
}

fn mixed() -> Vec<Entry> {
    let gone = |pid: u32| format!("ada:{}:{pid}:c0ffee01", host_name());
    let texts = HOSTILE.into_iter().flat_map(|text| {
        [
            exhausted(job("resize"), text),
            exhausted(job("backup"), text),
            held(job("resize"), text, ClaimEnd::Never),
            trashed(job("resize"), Some(text)),
        ]
    });
    let claims = [
        held(job("resize"), &gone(NO_PID), ClaimEnd::Never),
        held(job("resize"), &gone(NO_PID), ClaimEnd::Timed),
        held(job("resize"), &gone(NO_PID - 1), ClaimEnd::Timed),
        held(job("resize"), "night", ClaimEnd::Timed),
    ];
    let no_reason = {
        let mut job = exhausted(job("resize"), "");
        job.attempts.failures.clear();
        job
    };
    let jobs = texts.chain(claims).chain([job("resize"), no_reason]);
    jobs.map(entry)
        .chain([unreadable("a"), unreadable("b")])
        .collect()
}

#[test]
fn counts_equal_the_sums_of_the_causes() {
    let survey = survey(&mixed());
    let expected = [
        (Code::OwnerDead, 3),
        (Code::UnreadableRecord, 2),
        (Code::ClaimNeverExpires, 14),
        (Code::RetriesExhausted, 29),
        (Code::Failed, 14),
    ];
    assert_eq!(survey.figures.jobs_with_problem, expected.into());
    let mut of_causes = BTreeMap::new();
    for (cause, cases) in &survey.causes {
        *of_causes.entry(cause.code).or_default() += cases.count;
    }
    assert_eq!(of_causes, expected.into());
    assert_eq!(sums(&survey.problems()), expected.into());
}

#[test]
fn silent_conductor_without_claims_is_a_problem_while_it_is_registered() {
    let named = |name: &str, change: &dyn Fn(&mut Conductor)| {
        let mut conductor = conductor();
        conductor.owner = Owner::from_stored(name);
        change(&mut conductor);
        conductor
    };
    let late = Some(Duration::from_secs(60));
    let conductors = vec![
        named("alive", &|_| {}),
        named("late", &|it| it.silence = late),
        named("gone", &|it| {
            (it.host, it.pid) = (host_name(), NO_PID);
            it.report.process = process_start();
        }),
        named("holds", &|it| it.silence = late),
        named("left", &|it| (it.silence, it.has_left) = (late, true)),
    ];
    let mut surveyor = Surveyor::new(board(false).with_conductors(conductors));
    surveyor.add(&entry(held(job("a"), "holds", ClaimEnd::Timed)));
    let survey = surveyor.counted();
    let problems = survey.problems().into_iter();
    let found = problems.filter(|it| it.code == Code::ConductorSilent);
    let found: Vec<_> = found.map(|it| (it.code, it.severity)).collect();
    let (warning, note) = (Severity::Warning, Severity::Note);
    assert_eq!(
        found,
        [
            (Code::ConductorSilent, warning),
            (Code::ConductorSilent, note)
        ]
    );
    assert_eq!(survey.absent(), [("gone", 1), ("silent", 2)].into());
}

#[test]
fn stopped_conductor_is_to_be_resumed() {
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id();
    kill_process(Pid::from_child(&sleeper), Signal::STOP).unwrap();
    while !is_stopped(&host_name(), pid, None) {
        thread::yield_now();
    }
    let stopped = |owner: &str, process: Option<String>| {
        let mut conductor = Conductor {
            owner: Owner::from_stored(owner),
            host: host_name(),
            pid,
            silence: Some(Duration::from_secs(60)),
            ..conductor()
        };
        conductor.report.process = process;
        conductor
    };
    // A bare pid may be that of another process.
    assert_eq!(absence(&stopped("other", None)), Some(Death::Unproven));
    let process = start_of(Pid::from_child(&sleeper));
    let conductors = vec![stopped("holds", process.clone()), stopped("idle", process)];
    let mut surveyor = Surveyor::new(board(false).with_conductors(conductors));
    surveyor.add(&entry(held(job("a"), "holds", ClaimEnd::Timed)));
    let survey = surveyor.counted();
    let found = survey.problems();
    let (owner, absent) = (&survey.owners[0], survey.absent());
    assert_eq!((owner.absence, owner.is_dead), (Some("stopped"), false));
    assert_eq!(absent, [("stopped", 2)].into());
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let codes: Vec<_> = found.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::OwnerStopped, Code::ConductorSilent]);
    for problem in found {
        assert!(
            problem.summary.ends_with("stopped (SIGSTOP)"),
            "{problem:?}"
        );
        let command = problem.fix.unwrap().into_elsewhere().unwrap();
        assert_eq!(command.to_string(), format!("kill -CONT {pid}"));
    }
}

#[test]
fn canary_needs_a_conductor_that_accepts_the_job() {
    for (details, has_canary) in [(json!({"command": ["true"]}), true), (json!({}), false)] {
        let jobs = [1, 2].map(|_| entry(exhausted(with("a", details.clone()), "no DNS")));
        let problems = survey(&jobs).problems();
        let found = problems.iter().find(|it| it.code == Code::RetriesExhausted);
        let command = found.unwrap().fix.as_ref().unwrap().command.as_ref();
        let words = command.unwrap().words();
        assert_eq!(
            words.iter().any(|it| it == "--canary"),
            has_canary,
            "{words:?}"
        );
    }
}

#[test]
fn summary_and_advice_fit_the_jobs() {
    let problem = |has_peers, entries: &[Entry]| {
        let mut surveyor = Surveyor::new(board(has_peers));
        for it in entries {
            surveyor.add(it);
        }
        surveyor.counted().problems().remove(0)
    };
    let one = problem(false, &[unreadable("a")]);
    assert_eq!(one.summary, "a record that cannot be read");
    let command = json!({"command": ["/bin/true"]});
    for (has_peers, details, advice) in [
        (false, json!({}), "start `jobboard conduct --handlers DIR`"),
        (false, command.clone(), "start `jobboard conduct`;"),
        (true, command, "start `jobboard conduct --allow PROGRAM`"),
    ] {
        let fix = problem(has_peers, &[entry(with("a", details))]).fix;
        let text = fix.unwrap().text.unwrap();
        assert!(text.starts_with(advice), "{text}");
    }
}

#[test]
fn selector_of_a_cause_selects_exactly_its_jobs() {
    let entries = mixed();
    let mut selectors = 0;
    // Few causes at a time, so that each is a problem of its own.
    for some in entries.chunks(8).chain([entries.as_slice()]) {
        let survey = survey(some);
        for problem in survey.problems() {
            let command = problem.fix.and_then(|it| it.command).unwrap();
            let at = command
                .words()
                .iter()
                .position(|it| it == "--problem")
                .unwrap();
            let selector = &command.words()[at + 1];
            let chosen: ProblemSelector = selector.parse().unwrap();
            let is_of = |it: &&Entry| chosen.is_of(it, &survey.snapshot);
            let selected = some.iter().filter(is_of).count() as u64;
            // A code alone also selects the jobs of its problems that are shown apart.
            let expected = match selector == problem.code.name() {
                true => survey.figures.of(problem.code),
                false => problem.jobs,
            };
            assert_eq!(selected, expected, "{selector}");
            selectors += 1;
        }
    }
    assert!(selectors > 30, "{selectors}");
}

#[test]
fn certain_and_uncertain_deaths_on_one_machine_are_two_problems() {
    let owner = format!("ada:{}:{NO_PID}:c0ffee01", host_name());
    let claims =
        [ClaimEnd::Never, ClaimEnd::Timed].map(|lease| entry(held(job("a"), &owner, lease)));
    let mut fixes: Vec<_> = survey(&claims)
        .problems()
        .into_iter()
        .map(|it| {
            let fix = it.fix.unwrap();
            (fix.risk.unwrap(), fix.command.unwrap().to_string())
        })
        .collect();
    fixes.sort();
    let command =
        |verb: &str, how: &str| format!("{verb} --problem owner-dead={}:{how}", host_name());
    assert_eq!(
        fixes,
        [
            (Risk::Safe, command("abandon --force", "gone")),
            (Risk::Decision, command("abandon --force --now", "silent")),
        ]
    );
}

#[test]
fn claims_that_never_expire_are_one_problem_for_each_owner() {
    let owners = ["ada", "ada", "service"];
    let claims = owners.map(|owner| entry(held(job("a"), owner, ClaimEnd::Never)));
    let problems = survey(&claims).problems().into_iter();
    let fixes = problems.map(|it| {
        let fix = it.fix.unwrap();
        (it.jobs, fix.text.unwrap(), fix.command.unwrap().to_string())
    });
    let release = |owner: &str| format!("abandon --force --problem claim-never-expires={owner}");
    let gone = |owner: &str| format!("if {owner} is gone, release the claim");
    assert_eq!(
        fixes.collect::<Vec<_>>(),
        [("ada", 2), ("service", 1)].map(|(owner, jobs)| (jobs, gone(owner), release(owner)))
    );
}

#[test]
fn each_refusal_is_one_problem_with_its_remedy() {
    let mut conductor = conductor();
    conductor.report.takes = Some(PublishedPolicy {
        programs: Some(vec!["/usr/bin/true".to_owned()]),
        variables: Some(Vec::new()),
        ..PublishedPolicy::default()
    });
    let mut surveyor = Surveyor::new(board(false).with_conductors(vec![conductor]));
    for details in [
        json!({"command": ["/usr/bin/true"], "env": {"X": "1"}}),
        json!({"command": ["/usr/bin/dump"]}),
        json!({"command": ["/usr/bin/*"]}),
        json!({"command": ["dump"]}),
    ] {
        surveyor.add(&entry(with("a", details)));
    }
    let problems = surveyor.counted().problems().into_iter();
    let mut remedies: Vec<_> = problems.map(|it| it.fix.unwrap().text.unwrap()).collect();
    remedies.sort();
    assert_eq!(
        remedies,
        [
            "restart the conductor with --allow '/usr/bin/[*]'",
            "restart the conductor with --allow /usr/bin/dump",
            "restart the conductor with --allow PROGRAM",
            "restart the conductor with --allow-env X",
        ]
    );
}

#[test]
fn rare_causes_are_one_problem_with_the_oldest_examples() {
    let jobs = (0..6).flat_map(|cause: i64| (0..=cause).map(move |number| (cause, number)));
    let jobs = jobs.map(|(cause, number)| {
        let mut job = exhausted(
            job(&format!("job-{cause}-{number}")),
            &"x".repeat(cause as usize + 1),
        );
        job.created_on = Some(ago(1000 * (cause + 1) + number));
        entry(job)
    });
    let problems = survey(&jobs.collect::<Vec<_>>()).problems();
    let found = problems.iter().map(|it| {
        let examples: Vec<_> = it.examples.iter().map(|it| it.name.as_str()).collect();
        (it.jobs, it.summary.as_str(), examples)
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            (6, "xxxxxx", vec!["job-5-5", "job-5-4", "job-5-3"]),
            (5, "xxxxx", vec!["job-4-4", "job-4-3", "job-4-2"]),
            (4, "xxxx", vec!["job-3-3", "job-3-2", "job-3-1"]),
            (
                6,
                "xxx (3), xx (2), x",
                vec!["job-2-2", "job-2-1", "job-2-0"]
            ),
        ]
    );
}

/// A command that finishes a move needs one board.
#[test]
fn moves_from_many_boards_have_no_common_command() {
    let copies = (0..6).map(|number| {
        let owner = format!("{MOVER}ada:{}:{NO_PID}:c0ffee01", host_name());
        let mut copy = held(job(&format!("copy-{number}")), &owner, ClaimEnd::Never);
        let from = format!("{}sqlite:/srv/{number}.db", Job::MOVED_FROM);
        copy.attempts.audit = Some(AuditEntry::now(AuditEntry::RECEIVED, "ada", Some(&from)));
        entry(copy)
    });
    let problems = survey(&copies.collect::<Vec<_>>()).problems();
    let mut commands: Vec<_> = problems
        .into_iter()
        .map(|it| (it.jobs, it.fix.unwrap().command.unwrap().to_string()))
        .collect();
    commands.sort();
    let one = |number: u32| (1, format!("copy --resume --from sqlite:/srv/{number}.db"));
    let others = (3, "list --filter 'owner=move:*'".to_owned());
    assert_eq!(commands, [one(0), one(1), one(2), others]);
}

/// The command would send the file to that server.
#[test]
fn address_that_names_a_file_is_in_no_command() {
    let owner = format!("{MOVER}ada:{}:{NO_PID}:c0ffee01", host_name());
    let mut copy = held(job("copy"), &owner, ClaimEnd::Never);
    let url = "redis-sentinel://eve/m?sentinel_password_file=/etc/shadow";
    let from = format!("{}{url}", Job::MOVED_FROM);
    copy.attempts.audit = Some(AuditEntry::now(AuditEntry::RECEIVED, "ada", Some(&from)));
    let fix = survey(&[entry(copy)]).problems().remove(0).fix.unwrap();
    assert_eq!(fix.command, None);
    assert!(!fix.text.unwrap().contains("eve"));
}

#[test]
fn five_thousand_causes_are_counted_in_bounded_memory() {
    let frequent = (0..3000).map(|_| entry(held(job("a"), "ada", ClaimEnd::Never)));
    let rare = (0..5000).map(|it| entry(held(job("a"), &format!("owner-{it}"), ClaimEnd::Never)));
    let mut surveyor = Surveyor::new(board(false));
    let mut most = 0;
    for it in frequent.chain(rare) {
        surveyor.add(&it);
        most = most.max(surveyor.survey.causes.len());
    }
    assert!(most <= 2000, "{most}");
    let survey = surveyor.counted();
    let problems = survey.problems();
    assert_eq!(sums(&problems), [(Code::ClaimNeverExpires, 8000)].into());
    assert!(
        problems.iter().all(|it| it.summary.len() < 200),
        "{problems:?}"
    );
}
