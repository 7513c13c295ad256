//! The job counter: its limits and invalid values.

use futures_util::StreamExt;

use super::{permission::all, unnamed_claims::jobs, *};
use crate::{
    board::{EventKind, conformance::post, wire::msgpack},
    job::{Draft, Former},
};

const SEQUENCE: &str = "taskflow:sequence";
const FENCE: &str = "taskflow:fence";
/// The greatest exact integer in Lua.
const EXACT: i64 = (1 << 53) - 1;

#[tokio::test]
async fn numbers_are_exact_up_to_the_limit_of_scripts() {
    need!((board, server) = open());
    // The limits of Lua's numbers, half words and MessagePack forms.
    for last in [125, 254, 65_533, 4_294_967_293, EXACT - 4] {
        server.run::<()>(&["FLUSHALL"]);
        server.run::<()>(&["SET", SEQUENCE, &last.to_string()]);
        let expected: Vec<_> = (last + 1..=last + 4).collect();
        let drafts = [(); 4].map(|()| draft("resize"));
        let posted = board.post(&drafts, None).await.unwrap().into_iter();
        let posted: Vec<_> = posted.map(|job| job.unwrap().sequence).collect();
        assert_eq!(posted, expected);
        let listed: Vec<_> = jobs(&board).await.iter().map(|job| job.sequence).collect();
        let expected: Vec<_> = expected.into_iter().map(Some).collect();
        assert_eq!(listed, expected);
    }
}

#[tokio::test]
async fn wrong_number_prediction_is_corrected() {
    need!((board, server) = open());
    let other = board_of(&server, None);
    // Around these the encoded length changes, so the prediction has another length.
    for last in [122, 250, 65_530, 4_294_967_290] {
        server.run::<()>(&["FLUSHALL"]);
        server.run::<()>(&["SET", SEQUENCE, &last.to_string()]);
        let mut events = board.events().await.unwrap().stream;
        let mut posted = Vec::new();
        let posters = [&board, &other, &board, &board, &other];
        for (poster, count) in posters.into_iter().zip([2, 1, 3, 2, 1]) {
            let drafts: Vec<_> = (0..count).map(|_| draft("resize")).collect();
            let answers = poster.post(&drafts, None).await.unwrap();
            posted.extend(answers.into_iter().map(|answer| {
                let answer = answer.unwrap();
                (answer.key, Some(answer.sequence))
            }));
        }
        let expected: Vec<_> = (last + 1..=last + 9).map(Some).collect();
        let sequences: Vec<_> = posted.iter().map(|(_, sequence)| *sequence).collect();
        assert_eq!(sequences, expected);
        let listed = jobs(&board).await.into_iter();
        let listed: Vec<_> = listed.map(|job| (job.key, job.sequence)).collect();
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
async fn loaded_job_keeps_the_bytes_of_its_number() {
    need!((board, server) = open());
    let draft = draft("resize");
    // Three bytes for a number that needs one.
    let raw = [msgpack::encode(&draft, Utc::now()), vec![0xcd, 0, 7]].concat();
    let mut job = Job::named("resize");
    job.sequence = Some(7);
    let former = Some(Box::new(Former::of(&job, raw.clone())));
    let key = post(&board, Draft { former, ..draft }).await;
    let stored: Vec<u8> = server.run(&["HGET", "taskflow:listings", &key.to_string()]);
    assert_eq!(stored, raw);
    let next = board.post_one(&super::draft("next"), None).await.unwrap();
    assert_eq!(next.sequence, 8);
}

#[tokio::test]
async fn numbers_above_the_limit_are_refused_without_effect() {
    need!((board, server) = open());
    let free = post_one(&board, "free").await;
    let by = claimant("ada", Term::Lease(LONG));
    let four = [(); 4].map(|()| draft("new"));
    for (key, last) in [
        (SEQUENCE, EXACT - 3),
        (SEQUENCE, EXACT),
        (SEQUENCE, i64::MAX - 4),
        (FENCE, EXACT),
    ] {
        server.run::<()>(&["SET", key, &last.to_string()]);
        let before = everything(&server);
        let refused = match key {
            SEQUENCE => all(board.post(&four, None).await),
            _ => all(board.claim(from_ref(&free), &by, 1, BY_HAND).await),
        };
        let Err(BoardError::Failed { source, .. }) = refused else {
            panic!("{key} {last}: {refused:?}");
        };
        let expected = format!(
            "{} has a counter above 2^53 under {key}; set the key to the highest number ever \
             assigned",
            server.host()
        );
        assert_eq!(source.to_string(), expected);
        assert_eq!(everything(&server), before, "{key} {last}");
        server.run::<()>(&["SET", key, "7"]);
    }
    server.run::<()>(&["SET", FENCE, &(EXACT - 3).to_string()]);
    let posted = board.post(&four[..3], Some(&by)).await.unwrap();
    let fences = posted.into_iter().map(|job| job.unwrap().fence.unwrap().0);
    let expected = [2, 1, 0].map(|less| (EXACT - less).to_string());
    assert_eq!(fences.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn fences_increase_even_if_the_counter_falls() {
    need!((board, server) = open());
    let by = claimant("ada", Term::Lease(LONG));
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
async fn broken_counter_is_named_without_effect() {
    need!((board, server) = open());
    let free = post_one(&board, "free").await;
    let by = claimant("ada", Term::Lease(LONG));
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
                "{} has no number under {key}; rename that key, or set it to the highest number ever assigned",
                server.host()
            );
            assert_eq!(source.to_string(), expected);
            assert_eq!(everything(&server), before, "{key} {value}");
        }
        server.run::<()>(&["SET", key, "7"]);
    }
    claim_one(&board, &free, &ada()).await.unwrap();
}
