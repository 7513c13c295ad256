//! Tests the judgement of one job.

use std::{collections::BTreeMap, time::Duration};

use chrono::TimeDelta;
use serde_json::json;

use super::{
    NO_PID, ago, board, conductor, entry, exhausted, held, host_name, job, now, trashed,
    unreadable, with,
};
use crate::{
    diagnosis::{
        Cause, ExplainedJob, Snapshot,
        fixes::{FixTarget, fix},
    },
    job::{
        AuditEntry, ClaimEnd, Conductor, Course, Entry, Failure, Job, Location, Pause, Pauses,
        PublishedCommand, PublishedPolicy, RELEASED, Run, Unsettled,
    },
    problem::{Code, Group},
    process::group::process_start,
};

fn night() -> Snapshot {
    board(false).with_conductors(vec![conductor()])
}

fn changed(change: impl FnOnce(&mut Conductor)) -> Snapshot {
    let mut conductor = conductor();
    change(&mut conductor);
    board(false).with_conductors(vec![conductor])
}

fn accepting(takes: PublishedPolicy) -> Snapshot {
    let max_attempts = 5;
    changed(|it| {
        it.report.takes = Some(PublishedPolicy {
            max_attempts,
            ..takes
        })
    })
}

fn paused(until: Option<TimeDelta>) -> Snapshot {
    let pause = Pause {
        names: "re*".to_owned(),
        until: until.map(|it| now() + it),
        audit: AuditEntry::now("paused", "ana", None),
        is_unreadable: false,
    };
    let mut snapshot = night();
    snapshot.pauses = Pauses::new(vec![pause], now());
    snapshot
}

fn edited(mut job: Job, change: impl FnOnce(&mut Job)) -> Entry {
    change(&mut job);
    entry(job)
}

/// Returns the code, whether the job runs without help, and the other problems: `paused stays, also clock-skew`.
fn judged(snapshot: &Snapshot, entry: &Entry) -> String {
    let judged = snapshot.judge(entry);
    let runs = if judged.will_run { "runs" } else { "stays" };
    let also = judged.also.iter().map(|it| format!(", also {}", it.code));
    format!("{} {runs}{}", judged.main.code, also.collect::<String>())
}

fn delayed(job: Job) -> Entry {
    edited(job, |it| it.attempts.not_before = Some(ago(-60)))
}

fn spent() -> Job {
    exhausted(job("resize"), "disk full")
}

#[test]
fn unclaimed_job_is_ready_or_waits_for_a_slot_a_time_or_a_pause() {
    let resize = entry(job("resize"));
    let busy = changed(|it| it.report.running = Some(1));
    assert_eq!(judged(&night(), &resize), "ready runs");
    assert_eq!(judged(&busy, &resize), "waiting runs");
    assert_eq!(
        judged(&night(), &delayed(job("resize"))),
        "backing-off runs"
    );
    assert_eq!(
        judged(&night(), &delayed(spent())),
        "retries-exhausted stays"
    );
    assert_eq!(judged(&paused(None), &resize), "paused stays");
    let hour = Some(TimeDelta::hours(1));
    assert_eq!(judged(&paused(hour), &resize), "paused runs");
    assert_eq!(judged(&paused(None), &entry(job("backup"))), "ready runs");
    // The operator who paused it decides when its other problems matter.
    assert_eq!(judged(&paused(None), &entry(spent())), "paused stays");
}

#[test]
fn job_that_no_conductor_accepts_is_judged_by_their_reasons() {
    let resize = entry(job("resize"));
    let silent = changed(|it| it.silence = Some(Duration::from_secs(60)));
    let quiet = changed(|it| it.report.course = Course::Quiet);
    let ending = changed(|it| it.report.course = Course::Ending);
    let only_backups = accepting(PublishedPolicy {
        filters: vec!["name=backup".to_owned()],
        ..PublishedPolicy::default()
    });
    let handlers = accepting(PublishedPolicy {
        programs: Some(Vec::new()),
        handlers: Some([("backup".to_owned(), None)].into()),
        ..PublishedPolicy::default()
    });
    let rsync = accepting(PublishedPolicy {
        programs: Some(vec!["rsync".to_owned()]),
        ..PublishedPolicy::default()
    });
    let own_command = accepting(PublishedPolicy {
        programs: Some(Vec::new()),
        command: Some(PublishedCommand {
            program: "/srv/resize".to_owned(),
            problem: None,
        }),
        ..PublishedPolicy::default()
    });
    assert_eq!(judged(&own_command, &resize), "ready runs");
    assert_eq!(judged(&board(false), &resize), "no-conductor stays");
    assert_eq!(judged(&silent, &resize), "no-conductor stays");
    assert_eq!(judged(&ending, &resize), "no-conductor stays");
    let exhausted = judged(&board(false), &entry(spent()));
    assert_eq!(exhausted, "retries-exhausted stays");
    assert_eq!(judged(&quiet, &resize), "no-matching-conductor stays");
    assert_eq!(
        judged(&only_backups, &resize),
        "no-matching-conductor stays"
    );
    assert_eq!(judged(&handlers, &resize), "conductor-refuses stays");
    assert_eq!(judged(&rsync, &resize), "conductor-refuses stays");
    for (details, code) in [
        (json!({}), "no-matching-conductor stays"),
        (json!({ "command": "ls" }), "invalid-command stays"),
        (json!({ "command": ["../ls"] }), "invalid-command stays"),
    ] {
        assert_eq!(judged(&night(), &entry(with("a", details))), code);
    }
    let mut unseen = board(false);
    unseen.sees_conductors = false;
    assert_eq!(judged(&unseen, &resize), "unavailable stays");
}

#[test]
fn claimed_job_is_judged_by_its_owner() {
    let gone = format!("ada:{}:{NO_PID}:c0ffee01", host_name());
    let living = format!("{}:{}:c0ffee01", host_name(), std::process::id());
    let elsewhere = "h9:1:c0ffee01";
    for (owner, timed, forever) in [
        ("night", "running runs", "running runs"),
        ("ada", "running runs", "claim-never-expires stays"),
        (&living, "running runs", "claim-never-expires stays"),
        (&gone, "owner-dead runs", "owner-dead stays"),
        // The process table of another machine is not visible from here.
        (elsewhere, "running runs", "owner-dead stays"),
    ] {
        for (lease, code) in [(ClaimEnd::Timed, timed), (ClaimEnd::Never, forever)] {
            let entry = entry(held(job("resize"), owner, lease));
            assert_eq!(judged(&night(), &entry), code, "{owner} {lease:?}");
        }
    }
    let soon = edited(held(job("resize"), "ada", ClaimEnd::Timed), |job| {
        job.holding.as_mut().unwrap().expires_in = Some(Duration::from_secs(5));
    });
    assert_eq!(judged(&night(), &soon), "claim-expires-soon runs");
    for (pid, code) in [
        (NO_PID, "unfinished-move stays"),
        (std::process::id(), "running runs"),
    ] {
        let mover = format!("move:{}:{pid}:c0ffee01", host_name());
        let copy = entry(held(job("resize"), &mover, ClaimEnd::Never));
        assert_eq!(judged(&night(), &copy), code);
    }
    for (age, code) in [(9, "running runs"), (11, "unfinished-move stays")] {
        let mover = "move:elsewhere.:1:c0ffee01";
        let copy = edited(held(job("resize"), mover, ClaimEnd::Never), |job| {
            job.holding.as_mut().unwrap().claimed_on = Some(ago(age * 60));
        });
        assert_eq!(judged(&night(), &copy), code);
    }
}

#[test]
fn claim_of_a_conductor_is_judged_by_its_status() {
    let uuid = job("resize").uuid;
    let silent = changed(|it| it.silence = Some(Duration::from_secs(60)));
    // A conductor of this name that ended earlier made the claim.
    let restarted = changed(|it| it.since = ago(20));
    let runs_it = changed(|it| {
        it.since = ago(20);
        it.report.runs.push(Run {
            uuid: uuid.clone(),
            name: "resize".to_owned(),
            since: ago(10),
            attempt: 1,
        });
    });
    let unsettled = changed(|it| {
        it.report.unsettled.push(Unsettled {
            uuid,
            name: "resize".to_owned(),
            reason: "the server is away".to_owned(),
        });
    });
    for (snapshot, timed, forever) in [
        (silent, "owner-dead runs", "owner-dead stays"),
        (restarted, "owner-dead runs", "owner-dead stays"),
        (runs_it, "running runs", "running runs"),
        (unsettled, "unsettled-job stays", "unsettled-job stays"),
    ] {
        for (lease, code) in [(ClaimEnd::Timed, timed), (ClaimEnd::Never, forever)] {
            let claim = entry(held(job("resize"), "night", lease));
            assert_eq!(judged(&snapshot, &claim), code);
        }
    }
}

#[test]
fn claim_from_before_the_registration_is_of_an_unknown_conductor() {
    let gone = changed(|it| {
        (it.host, it.pid, it.since) = (host_name(), NO_PID, ago(100));
        (it.silence, it.report.process) = (Some(Duration::from_secs(60)), process_start());
    });
    for (age, is_certain) in [(50, true), (200, false)] {
        let holder = gone.holder(&conductor().owner, ClaimEnd::Timed, Some(ago(age)));
        assert_eq!(holder.has_certainly_died(), is_certain, "{holder:?}");
    }
}

#[test]
fn damaged_record_is_judged_before_its_claim() {
    let broken = edited(held(job("a"), "ada", ClaimEnd::Session), |it| {
        it.holding.as_mut().unwrap().owner = None;
    });
    let blocked = edited(job("a"), |it| it.is_blocked = true);
    let unfit = edited(job("a"), |it| it.is_unfit = true);
    let denied = edited(job("a"), |it| it.is_denied = true);
    assert_eq!(
        judged(&night(), &unreadable("a")),
        "unreadable-record stays"
    );
    assert_eq!(judged(&night(), &broken), "broken-lock stays");
    assert_eq!(judged(&night(), &blocked), "broken-lock stays");
    assert_eq!(judged(&night(), &unfit), "unreadable-sidecar stays");
    assert_eq!(judged(&night(), &denied), "unavailable stays");
}

#[test]
fn job_blocks_after_ten_minutes_or_twenty_expiries() {
    let blocks = |expiry: u64, age: i64| {
        let mut octavia = night();
        octavia.octavia_expiry = Some(Duration::from_secs(expiry));
        let mut job = job("a");
        job.created_on = Some(octavia.now - TimeDelta::seconds(age));
        octavia.blocks_posters(&job).is_some()
    };
    for (expiry, age) in [(0, 600), (30, 600), (100, 2000)] {
        assert!(blocks(expiry, age) && !blocks(expiry, age - 1));
    }
    assert!(!blocks(u64::MAX, 1_000_000) && !blocks(30, -1));
}

#[test]
fn problems_besides_the_state_are_listed() {
    let posted = |seconds| edited(job("a"), |it| it.created_on = Some(ago(seconds)));
    let misnamed = edited(job("a"), |it| it.is_misnamed = true);
    let flawed = edited(job("a"), |it| it.problem = Some("odd priority".to_owned()));
    let peers = board(true).with_conductors(vec![conductor()]);
    let mut octavia = night();
    octavia.octavia_expiry = Some(Duration::from_secs(30));
    for (snapshot, entry, code) in [
        (&night(), misnamed, "ready runs, also uuid-mismatch"),
        (&night(), flawed.clone(), "ready runs"),
        (&peers, flawed, "ready runs, also breaks-peers"),
        (&night(), posted(90_000), "ready runs"),
        (&octavia, posted(90_000), "ready runs, also blocks-posters"),
        (&night(), posted(-60), "ready runs, also clock-skew"),
        (&night(), posted(-3), "ready runs"),
    ] {
        assert_eq!(judged(snapshot, &entry), code);
    }
}

#[test]
fn delay_longer_than_any_back_off_is_a_problem() {
    let delayed = |days, reason: &str| {
        edited(job("a"), |it| {
            it.attempts.not_before = Some(now() + TimeDelta::days(days));
            it.attempts.failures = vec![Failure::reported(reason, "ada")];
        })
    };
    for (days, reason, code) in [
        (365, "exit 1", "backing-off runs"),
        (367, "exit 1", "excessive-delay stays"),
        (2_900_000, "exit 1", "excessive-delay stays"),
        (3650, RELEASED, "backing-off runs"),
        (3653, RELEASED, "excessive-delay stays"),
    ] {
        assert_eq!(judged(&night(), &delayed(days, reason)), code, "{days}");
    }
}

#[test]
fn job_in_the_trash_has_failed_unless_an_operator_put_it_there() {
    let failed = || trashed(job("a"), Some("exit 1"));
    let by_ana = edited(failed(), |it| {
        it.attempts.audit = Some(AuditEntry::now("trashed", "ana", Some("old")));
    });
    assert_eq!(judged(&night(), &entry(failed())), "failed stays");
    assert_eq!(judged(&night(), &by_ana), "trashed stays");
    let unfailed = entry(trashed(job("a"), None));
    assert_eq!(judged(&night(), &unfailed), "trashed stays");
    let ended = edited(job("a"), |it| it.location = Location::History);
    assert_eq!(judged(&night(), &ended), "ended runs");
}

#[test]
fn each_problem_of_a_job_has_its_own_sentence_and_a_fix() {
    let (snapshot, mut codes) = (night(), BTreeMap::new());
    for code in Code::ALL.iter().copied() {
        let entry = entry(match code {
            // They are about a record without a job, and about a logbook.
            Code::UnreadableRecord | Code::FlowWithoutClaim => continue,
            Code::OwnerDead
            | Code::OwnerStopped
            | Code::ClaimNotRenewed
            | Code::ClaimNeverExpires
            | Code::UnfinishedMove
            | Code::UnsettledJob => held(job("resize"), "ada", ClaimEnd::Timed),
            _ if code.group() == Group::Jobs && code.is_problem() => job("resize"),
            _ => continue,
        });
        let explained = ExplainedJob {
            entry: &entry,
            location: Location::Board,
            is_late: false,
            before: None,
        };
        let sentence = snapshot.sentence(&explained, entry.job().unwrap(), &Cause::of(code));
        assert_ne!(sentence, code.name());
        if let Some(other) = codes.insert(sentence, code) {
            panic!("{other} and {code} have the same sentence");
        }
        let target = FixTarget::Job("4f2a", Location::Board);
        assert!(fix(&Cause::of(code), target).is_some(), "{code} has no fix");
    }
}
