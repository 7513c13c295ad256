//! Counters: how far they go, and what is no counter.

use futures_util::StreamExt;

use super::{oddity::jobs, permission::all, *};
use crate::board::EventKind;

const SEQUENCE: &str = "taskflow:sequence";
const FENCE: &str = "taskflow:fence";

#[tokio::test]
async fn numbers_stay_exact_however_large_they_are() {
    let Some((board, server)) = open() else {
        return;
    };
    // Where Lua's numbers, halves of words, and forms of msgpack end.
    for last in [
        125,
        254,
        65_533,
        4_294_967_293,
        9_007_199_254_740_991,
        9_007_199_254_740_993,
        i64::MAX - 4,
    ] {
        server.run::<()>(&["FLUSHALL"]);
        server.run::<()>(&["SET", SEQUENCE, &last.to_string()]);
        let expected: Vec<_> = (last + 1..=last + 4).collect();
        let drafts = [(); 4].map(|()| draft("resize"));
        let posted = board.post(&drafts, None).await.unwrap();
        let posted: Vec<_> = posted
            .into_iter()
            .map(|job| job.unwrap().sequence)
            .collect();
        assert_eq!(posted, expected);
        let listed: Vec<_> = jobs(&board).await.iter().map(|job| job.sequence).collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(listed, expected);
    }
}

#[tokio::test]
async fn numbers_that_were_foreseen_wrongly_are_put_right() {
    let Some((board, server)) = open() else {
        return;
    };
    let other = board_of(&server, None);
    // Around these the forms of numbers have other lengths, so that what was foreseen is longer or shorter.
    for last in [122, 250, 65_530, 4_294_967_290] {
        server.run::<()>(&["FLUSHALL"]);
        server.run::<()>(&["SET", SEQUENCE, &last.to_string()]);
        let mut events = board.events().await.unwrap();
        let mut posted = Vec::new();
        for (poster, count) in [
            (&board, 2),
            (&other, 1),
            (&board, 3),
            (&board, 2),
            (&other, 1),
        ] {
            let drafts: Vec<_> = (0..count).map(|_| draft("resize")).collect();
            let answers = poster.post(&drafts, None).await.unwrap();
            posted.extend(answers.into_iter().map(|answer| {
                let answer = answer.unwrap();
                (answer.key, Some(answer.sequence))
            }));
        }
        let expected: Vec<_> = (last + 1..=last + 9).map(Some).collect();
        let told: Vec<_> = posted.iter().map(|(_, sequence)| *sequence).collect();
        assert_eq!(told, expected);
        let listed = jobs(&board).await;
        let listed: Vec<_> = listed
            .into_iter()
            .map(|job| (job.key, job.sequence))
            .collect();
        assert_eq!(listed, posted);
        let mut heard = Vec::new();
        while heard.len() < posted.len() {
            let event = events.next().await.unwrap().unwrap();
            if let (EventKind::Posted, Some(subject)) = (event.kind, event.subject) {
                heard.push((subject.key, subject.sequence));
            }
        }
        assert_eq!(heard, posted);
    }
}

#[tokio::test]
async fn no_event_tells_a_number_that_is_rounded() {
    let Some((board, server)) = open() else {
        return;
    };
    let large = 9_007_199_254_740_993;
    server.run::<()>(&["SET", SEQUENCE, &large.to_string()]);
    let mut events = board.events().await.unwrap();
    post_one(&board, "resize").await;
    let event = loop {
        let event = events.next().await.unwrap().unwrap();
        if event.kind == EventKind::Posted {
            break event;
        }
    };
    let told = event.subject.unwrap().sequence;
    assert!(told.is_none_or(|told| told == large + 1), "{told:?}");
}

#[tokio::test]
async fn fences_stay_exact_however_large_they_are() {
    let Some((board, server)) = open() else {
        return;
    };
    let large = 9_007_199_254_740_992_u64;
    server.run::<()>(&["SET", FENCE, &large.to_string()]);
    let by = claimant("ada", Term::Kept(LONG));
    for number in 1..=2 {
        let key = post_one(&board, "resize").await;
        let claimed = board.claim_one(&key, &by, ATTEMPT).await.unwrap();
        assert_eq!(claimed.fence.0, (large + number).to_string());
    }
    let drafts = [draft("resize"), draft("resize")];
    let posted = board.post(&drafts, Some(&by)).await.unwrap();
    let fences: Vec<_> = posted
        .into_iter()
        .map(|posted| posted.unwrap().fence.unwrap().0)
        .collect();
    assert_eq!(fences, [3, 4].map(|number| (large + number).to_string()));
}

#[tokio::test]
async fn fences_go_on_growing_when_the_server_has_less_than_it_had() {
    let Some((board, server)) = open() else {
        return;
    };
    let by = claimant("ada", Term::Kept(LONG));
    let mut last = 0;
    for forgotten in [None, Some("7"), Some("0"), None] {
        match forgotten {
            None => server.run::<i64>(&["DEL", FENCE]),
            Some(older) => {
                server.run::<()>(&["SET", FENCE, older]);
                0
            }
        };
        let drafts = [draft("resize"), draft("resize")];
        let posted = board.post(&drafts, Some(&by)).await.unwrap();
        let fences = posted.into_iter().map(|posted| posted.unwrap().fence);
        let mut fences: Vec<u64> = fences.map(|it| it.unwrap().0.parse().unwrap()).collect();
        let keys = [post_one(&board, "a").await, post_one(&board, "b").await];
        let claimed = board.claim(&keys, &by, 2, ATTEMPT).await.unwrap();
        let claimed = claimed.into_iter().map(|claimed| claimed.unwrap().fence.0);
        fences.extend(claimed.map(|fence| fence.parse::<u64>().unwrap()));
        for fence in fences {
            assert!(fence > last, "{fence} behind {last}");
            last = fence;
        }
    }
}

#[tokio::test]
async fn a_counter_that_cannot_count_is_named_and_nothing_is_done() {
    let Some((board, server)) = open() else {
        return;
    };
    let free = post_one(&board, "free").await;
    let by = claimant("ada", Term::Kept(LONG));
    for key in [SEQUENCE, FENCE] {
        for value in ["many", "-7", &i64::MAX.to_string(), "list"] {
            server.run::<()>(&["DEL", key]);
            match value {
                "list" => server.run::<i64>(&["LPUSH", key, "x"]),
                value => server.run::<i64>(&["APPEND", key, value]),
            };
            let before = everything(&server);
            let refused = match key {
                SEQUENCE => all(board.post(&[draft("new")], None).await),
                _ => all(board.claim(from_ref(&free), &by, 1, BY_HAND).await),
            };
            let Err(BoardError::Failed { source, .. }) = refused else {
                panic!("{key} {value}: {refused:?}");
            };
            let expected = format!(
                "{} has no count under {key}; put the highest number there that it ever gave out",
                server.host()
            );
            assert_eq!(source.to_string(), expected);
            assert_eq!(everything(&server), before, "{key} {value}");
        }
        server.run::<()>(&["SET", key, "7"]);
    }
    claim_one(&board, &free, &ada()).await.unwrap();
}
