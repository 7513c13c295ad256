//! Plans by verdict.

use serde_json::json;

use super::plan::{RepairPlan, Step};
use crate::{
    diagnosis::{JudgedBalancer, Verdict},
    job::{Book, ClaimEnd, Entry, Holding, Job},
    logbook::{Flow, LoadBalancer},
};

fn judged(verdict: Verdict, status: &str) -> JudgedBalancer {
    JudgedBalancer {
        balancer: LoadBalancer {
            id: "5f3a".to_owned(),
            name: "web".to_owned(),
            status: status.to_owned(),
            updated: None,
            since: None,
        },
        verdict,
        why: "a reason".to_owned(),
        job: None,
        flow: None,
        in_front: 0,
        origin: None,
    }
}

fn steps(judged: &JudgedBalancer) -> Vec<&'static str> {
    let plan = RepairPlan::of(judged, "fail-over --now");
    plan.steps.iter().map(Step::name).collect()
}

fn held(lease: ClaimEnd) -> Option<Entry> {
    let mut job = Job::named("a");
    job.holding = Some(Holding::new(None, lease, None));
    Some(Entry::Job(Box::new(job)))
}

#[test]
fn plan_changes_as_little_as_can_work() {
    let pending = |verdict| judged(verdict, "PENDING_UPDATE");
    let start_over = ["set-error", "fail-over", "wait"].as_slice();
    let dead = |lease| JudgedBalancer {
        job: held(lease),
        ..pending(Verdict::WorkerDead)
    };
    let with_flow = |verdict| JudgedBalancer {
        flow: Some(Flow::default()),
        ..pending(verdict)
    };
    let book = Book {
        name: "b".to_owned(),
        uuid: "u".to_owned(),
    };
    let started = JudgedBalancer {
        origin: Some((json!({}), book)),
        ..with_flow(Verdict::LostJob)
    };
    for (judged, expected) in [
        (pending(Verdict::Settled), [].as_slice()),
        (pending(Verdict::InProgress), &["wait"]),
        (pending(Verdict::Waiting), &["wait"]),
        (dead(ClaimEnd::Never), &["release", "wait"]),
        (dead(ClaimEnd::Timed), &["wait"]),
        (started, &["repost", "wait"]),
        (with_flow(Verdict::LostJob), start_over),
        (with_flow(Verdict::Trashed), &["restore", "wait"]),
        (pending(Verdict::Trashed), start_over),
        (pending(Verdict::NeverPosted), start_over),
        (with_flow(Verdict::Inconsistent), start_over),
        (pending(Verdict::Unclear), &[]),
        // Several jobs work on it, one of them on its latest flow.
        (with_flow(Verdict::Unclear), &[]),
        (judged(Verdict::Failed, "ERROR"), &["fail-over", "wait"]),
        (
            judged(Verdict::NeverPosted, "PENDING_DELETE"),
            &["set-error", "delete", "wait"],
        ),
    ] {
        assert_eq!(steps(&judged), expected, "{}", judged.verdict);
        let is_refused = RepairPlan::of(&judged, "").refusal(&judged).is_some();
        let is_clear = expected.is_empty() && judged.verdict != Verdict::Settled;
        assert_eq!(
            is_refused,
            is_clear || judged.verdict == Verdict::InProgress
        );
    }
}

#[test]
fn odd_id_cannot_enter_a_statement_or_a_shell() {
    let mut judged = judged(Verdict::NeverPosted, "PENDING_UPDATE");
    judged.balancer.id = "x'; DROP TABLE load_balancer".to_owned();
    assert_eq!(steps(&judged), [""; 0]);
    judged.verdict = Verdict::Failed;
    let plan = RepairPlan::of(&judged, "fail-over --now");
    let Step::FailOver(command) = &plan.steps[0] else {
        panic!("{plan:?}");
    };
    let quoted = r#"fail-over --now 'x'"'"'; DROP TABLE load_balancer'"#;
    assert_eq!(command.to_string(), quoted);
}

#[test]
fn any_difference_from_the_plan_counts_as_a_change() {
    let planned = judged(Verdict::NeverPosted, "PENDING_UPDATE");
    let change = |now: &JudgedBalancer| now.change_since(&planned);
    assert_eq!(change(&planned), None);
    let active = judged(Verdict::Settled, "ACTIVE");
    assert!(change(&active).unwrap().contains("ACTIVE"));
    let mut updated = planned.clone();
    updated.balancer.updated = Some("2026-11-21".to_owned());
    assert!(change(&updated).is_some());
    let waiting = judged(Verdict::Waiting, "PENDING_UPDATE");
    assert_eq!(change(&waiting).as_deref(), Some("a reason"));
    let mut advanced = planned.clone();
    advanced.flow = Some(Flow {
        updated: Some(chrono::Utc::now()),
        ..Flow::default()
    });
    assert!(change(&advanced).is_some());
}
