//! The judge finds planted faults in histories, and none in correct ones.

use std::time::Duration;

use super::{
    actors::{Crew, Hand},
    chance::Dice,
    strike::Other,
};
use crate::{
    conduct::Stage,
    faults::{random, size},
    support::{Act, Answer, By, History, How, Sight, What, assert_contains},
};

/// An act on a job, with its start and end in milliseconds.
fn act(who: &str, what: What, answer: Answer, (begun, ended): (u64, u64)) -> Act {
    Act {
        job: "job".into(),
        who: who.into(),
        what,
        answer,
        begun: Duration::from_millis(begun),
        ended: Duration::from_millis(ended),
    }
}

fn done(who: &str, what: What, span: (u64, u64)) -> Act {
    act(who, what, Answer::Done, span)
}

fn claim(owner: &str, fence: u64) -> What {
    What::Claim {
        owner: owner.into(),
        fence: Some(fence),
        term: Some(Duration::from_secs(1)),
    }
}

fn end(owner: &str, how: How) -> What {
    What::End(By::Name(owner.into()), how)
}

fn judged(acts: impl IntoIterator<Item = Act>) -> String {
    let history = History::new();
    acts.into_iter().for_each(|act| history.add(act));
    history.wrong().iter().map(ToString::to_string).collect()
}

fn claimed() -> Vec<Act> {
    vec![
        done("eve", What::Post, (0, 10)),
        done("ada", claim("ada", 1), (20, 30)),
    ]
}

fn after(first: Vec<Act>, more: impl IntoIterator<Item = Act>) -> String {
    judged(first.into_iter().chain(more))
}

#[test]
fn lost_job_is_detected() {
    let posted = [done("eve", What::Post, (0, 10))];
    let gone = done("bob", What::Seen(Sight::Gone), (20, 30));
    let verdict = judged(posted.iter().chain([&gone]).cloned());
    insta::assert_snapshot!(verdict, @"
    job: no order of its acts is consistent
         0.000s ->    0.010s eve posts it: done
      so it is free from 0.000s on, and then none of these can be next:
         0.020s ->    0.030s bob sees that it is not on the board: done
    ");
    // An unanswered consumption explains the state.
    let unknown = act("ada", end("ada", How::Consume), Answer::Unknown, (15, 15));
    let won = done("ada", claim("ada", 1), (11, 12));
    assert_eq!(judged([&posted[..], &[won, unknown, gone]].concat()), "");
}

#[test]
fn double_claim_is_detected() {
    let second = |at| done("bob", claim("bob", 2), (at, at + 10));
    let verdict = after(claimed(), [second(500)]);
    assert_contains(&verdict, "bob claims it as bob for 1s, fence 2: done");
    assert_contains(
        &verdict,
        "claimed by ada with fence 1, until 1.015s at least",
    );
    // By then the claim may have expired, and bob may have released the job before ada's claim.
    assert_eq!(after(claimed(), [second(1100)]), "");
    let back = done("bob", end("bob", How::Abandon), (0, 25));
    let early = done("bob", claim("bob", 0), (0, 24));
    assert_ne!(
        after(claimed(), [early, back]),
        "",
        "no fence is as small as that"
    );
}

#[test]
fn accepted_end_of_a_lost_claim_is_detected() {
    let lost = done("bob", claim("bob", 2), (1100, 1110));
    for what in [
        What::End(By::Claim(1), How::Consume),
        end("ada", How::Trash),
        end("ada", How::Abandon),
    ] {
        let late = done("ada", what.clone(), (1200, 1210));
        let verdict = after(claimed(), [lost.clone(), late]);
        assert!(verdict.contains("claimed by bob with fence 2"), "{verdict}");
    }
    let early = |how| done("ada", end("ada", how), (900, 1105));
    assert_ne!(
        after(claimed(), [lost.clone(), early(How::Consume)]),
        "",
        "what does bob claim?"
    );
    assert_eq!(after(claimed(), [lost, early(How::Abandon)]), "");
}

#[test]
fn double_consumption_is_detected() {
    let consume = |at| done("ada", end("ada", How::Consume), (at, at + 10));
    assert_eq!(after(claimed(), [consume(40)]), "");
    let verdict = after(claimed(), [consume(40), consume(60)]);
    assert!(verdict.contains("so it is not on the board"), "{verdict}");
    assert_ne!(after(claimed(), [consume(40), consume(45)]), "");
    // One of two unanswered acts is enough.
    let unheard = |at| act("ada", end("ada", How::Consume), Answer::Unknown, (at, at));
    let gone = done("bob", What::Seen(Sight::Gone), (90, 91));
    assert_eq!(after(claimed(), [unheard(40), unheard(60), gone]), "");
}

#[test]
fn command_that_outlives_its_claim_is_detected() {
    let runs = |fence, at| done("sh", What::Runs(fence), (at, at));
    let second = done("bob", claim("bob", 2), (1500, 1510));
    assert_eq!(
        after(claimed(), [runs(1, 1400), second.clone(), runs(2, 1600)]),
        ""
    );
    let verdict = after(claimed(), [second.clone(), runs(1, 1600)]);
    assert_contains(&verdict, "sh runs it under the claim with fence 1: done");
    // Unless an operator forced the claim: the command learns of it later.
    let force = done("eve", What::End(By::Force, How::Abandon), (1300, 1310));
    assert_eq!(after(claimed(), [force, second, runs(1, 1600)]), "");
}

/// Generates a correct history of one job: sequential acts, each with an earlier start and a later answer.
fn made_up(count: usize, dice: &mut Dice) -> Vec<Act> {
    let (mut acts, mut now, mut fence) = (Vec::new(), 100, 0);
    let (mut is_there, mut in_trash, mut holder) = (false, false, None::<String>);
    while acts.len() < count {
        now += 1 + dice.below(9);
        let who = format!("actor-{}", dice.below(5));
        let how = [How::Abandon, How::Consume, How::Trash][dice.below(3) as usize];
        let (what, is_done) = match dice.below(6) {
            0 if !is_there && in_trash => (What::Restore, true),
            0 | 1 if !is_there => (What::Post, true),
            2 if in_trash => (What::Purge, true),
            2 | 3 if is_there && holder.is_none() => {
                fence += 1;
                let owner = who.as_str().into();
                let (fence, term) = (Some(fence), None);
                (What::Claim { owner, fence, term }, true)
            }
            // An actor finishes one act before the next.
            4 if holder.is_some() => (end(holder.as_deref().unwrap(), how), true),
            5 if is_there => (What::Seen(Sight::OnBoard), true),
            _ => (end("nobody", how), false),
        };
        match (&what, is_done) {
            (What::Restore, _) => (is_there, in_trash) = (true, false),
            (What::Post, _) => is_there = true,
            (What::Purge, _) => in_trash = false,
            (What::Claim { .. }, _) => holder = Some(who.clone()),
            (What::End(..), true) => {
                holder = None;
                is_there = how == How::Abandon;
                in_trash |= how == How::Trash;
            }
            _ => {}
        }
        let answer = match is_done {
            true if dice.below(12) == 0 => Answer::Unknown,
            true => Answer::Done,
            false if is_there => Answer::NotTheirs,
            false => Answer::NoSuchJob,
        };
        let span = (now - dice.below(20), now + dice.below(20));
        acts.push(act(&who, what, answer, span));
    }
    acts
}

#[test]
fn consistent_history_differs_from_an_inconsistent_one() {
    for _ in 0..size(200, 5) {
        let seed = random(1 << 32);
        let dice = &mut Dice::of(seed);
        let mut acts = made_up(1000, dice);
        assert_eq!(judged(acts.clone()), "", "seed {seed}");
        let last = acts.iter().map(|act| act.ended).max().unwrap().as_millis() as u64;
        let at = dice.below(last);
        // No claim uses that fence.
        acts.push(done("bob", What::Runs(1 << 40), (at, at + 30)));
        let verdict = judged(acts);
        assert!(verdict.contains("bob runs it"), "seed {seed}: {verdict}");
        assert!(verdict.lines().count() < 20, "{verdict}");
    }
}

#[test]
fn forgetful_redis_is_detected() {
    need!(stage = Stage::redis());
    let server = stage.redis_server().unwrap();
    let (history, other) = (History::new(), Other::default());
    let crew = Crew::new(&stage.env, &history, "job");
    let hand = |name: &str| Hand::new(&crew, name, &other);
    let (ada, bob) = (hand("shell-ada"), hand("shell-bob"));
    ada.post(true);
    let job = crew.jobs().remove(0);
    let claim = |hand: &Hand<'_>| hand.claim(&job, Some(Duration::from_secs(3600)));
    assert_eq!(claim(&ada).code, 0);
    assert_eq!(claim(&bob).code, 4);
    assert_eq!(history.wrong().len(), 0);
    // As after a failover that lost them.
    for key in server.run(&["--scan", "--pattern", "*"]).lines() {
        if key.contains(&job) {
            server.run(&["DEL", key]);
        }
    }
    assert_eq!(claim(&bob).code, 0);
    let verdict = history.wrong().remove(0).to_string();
    assert_contains(&verdict, "shell-bob claims it as shell-bob for 3600s");
    assert_contains(&verdict, "claimed by shell-ada with fence");

    bob.post(false);
    let lost = crew.jobs().remove(1);
    server.run(&["HDEL", "taskflow:listings", &lost]);
    bob.look(&lost);
    let verdict: String = history.wrong().iter().map(ToString::to_string).collect();
    assert_contains(&verdict, "sees that it is not on the board");
}
