//! Batches with one bad job: each job succeeds or fails alone.

use super::{unnamed_claims::jobs, *};
use crate::{
    board::{
        Settled,
        redis::testing::{Proxy, ProxyMode, redis_url},
        wire::sidecar::{MEMBERS, Sidecar},
    },
    job::{Claimed, JobChange, MAX_RECORDS, Revision},
};

/// Unreadable sidecars.
const REFUSED: [&str; 11] = [
    "",
    "x",
    "5",
    "null",
    "[]",
    "{}",
    "{\"v\":1",
    r#"{"v":3,"attempts":{"of":"others"}}"#,
    r#"{"attempts":"x"}"#,
    r#"{"v":1,"failures":[{"reason":5}]}"#,
    r#"{"v":1,"not_before":"2020-02-29 23:59:59Z"}"#,
];

/// Readable sidecars with few, unknown or null members.
const READ: [&str; 4] = [
    r#"{"v":1}"#,
    r#"{"v":1,"of_others":[1e999,{"a":-1e999}]}"#,
    r#"{"v":1,"not_before":"2020-02-29T23:59:59Z","not_before_of":[null,{"a":1}]}"#,
    r#"{"v":1,"not_before":"2020-02-29T23:59:59.123456Z","owner":null,"fence":null}"#,
];

/// Values of each type, and at the limits of numbers and times.
const VALUES: &str = r#"
    null true -1 0 1 2 3 1.5 2147483647 2147483648 4294967295 4294967296 99999999999999
    100000000000000 "" "x" "\ud800" [] [1] [{}] {} {"by":"ada"}
    "2020-02-29T23:59:59Z" "2021-02-29T23:59:59Z" "2020-02-29T24:00:00Z" "2020-02-29T23:60:00Z"
    "2020-02-29T23:59:60Z" "2020-00-29T23:59:59Z" "2020-02-00T23:59:59Z" "0000-02-29T23:59:59Z"
    "2020-02-29T23:59:59z" "2020-02-29t23:59:59Z" "2020-02-29T23:59:59+00:00"
    "2020-02-29T23:59:59+02:00" "2020-02-29T23:59:59" "2020-02-29T23:59:59.Z"
    "2020-02-29T23:59:59.1Z" "2020-02-29T23:59:59.123456Z" "2020-02-29T23:59:59.123456789Z"
    "2020-02-29T23:59:59.1234567890Z"
"#;

/// Returns sidecars with each value for each member, of failures and audit entries too.
fn all_sidecars() -> Vec<String> {
    let failure = r#"{"reason":"","stderr":"","conductor":"","time":"2020-01-01T00:00:00Z"}"#;
    let with = |object: &str, member: &str, value: &str| {
        let mut members: serde_json::Map<_, _> = serde_json::from_str(object).unwrap();
        members.remove(member);
        let others = serde_json::Value::Object(members).to_string();
        let end = if others == "{}" { "" } else { "," };
        format!("{{\"{member}\":{value}{end}{}", &others[1..])
    };
    let mut sides: Vec<_> = REFUSED
        .iter()
        .chain(&READ)
        .map(|it| (*it).to_owned())
        .collect();
    let of_failures = "exit_code signal reason stdout stderr conductor time";
    for value in VALUES.split_whitespace() {
        for member in MEMBERS {
            sides.push(with(r#"{"v":1}"#, member, value));
        }
        for member in of_failures.split(' ') {
            let failures = format!("[{failure},{}]", with(failure, member, value));
            sides.push(with(r#"{"v":1}"#, "failures", &failures));
        }
        for member in ["by", "action", "on", "reason"] {
            let audit = with(r#"{"by":"ada"}"#, member, value);
            sides.push(with(r#"{"v":1}"#, "remark", &audit));
        }
    }
    sides
}

fn side(key: &JobKey) -> String {
    format!("taskflow:{key}.jobboard")
}

async fn three(board: &Subject) -> Vec<JobKey> {
    let mut keys = Vec::new();
    for name in ["first", "second", "third"] {
        keys.push(post_one(board, name).await);
    }
    keys
}

async fn claim_all(board: &Subject, keys: &[JobKey], rules: ClaimRules) -> Vec<Result<Claimed>> {
    let by = claimant("ada", Term::Lease(LONG));
    board.claim(keys, &by, keys.len(), rules).await.unwrap()
}

#[tokio::test]
async fn scripts_and_program_read_the_same_sidecars() {
    need!((board, server) = open());
    let sides = all_sidecars();
    let drafts: Vec<_> = sides.iter().map(|_| draft("resize")).collect();
    let posted = board.post(&drafts, None).await;
    let keys: Vec<_> = (posted.unwrap().into_iter())
        .map(|posted| posted.unwrap().key)
        .collect();
    for (key, text) in keys.iter().zip(&sides) {
        server.run::<()>(&["SET", &side(key), text]);
    }
    claim_all(&board, &keys, ATTEMPT).await;
    let mut refused = 0;
    for (key, text) in keys.iter().zip(&sides) {
        let left: String = server.run(&["GET", &side(key)]);
        let (_, problem) = Sidecar::read(Some(text.as_bytes()));
        // The script writes the claim into each sidecar that it reads, in a readable form.
        assert_eq!(left == *text, problem.is_some(), "{text}: {problem:?}");
        let (_, again) = Sidecar::read(Some(left.as_bytes()));
        assert_eq!(again, problem, "{text}");
        assert!(problem.is_some() || !REFUSED.contains(&&**text), "{text}");
        assert!(problem.is_none() || !READ.contains(&&**text), "{text}");
        refused += usize::from(problem.is_some());
    }
    assert!(refused > 200 && sides.len() - refused > 200, "{refused}");
    // A claim by name succeeds, and so does the settlement of every claim.
    board.claim(&keys, &ada(), refused, BY_HAND).await.unwrap();
    let consume = |key| Settlement::of(key, Decision::Consume, by_name("ada"));
    let settlements: Vec<_> = keys.into_iter().map(consume).collect();
    let settled = board.settle(&settlements).await.unwrap();
    for (answer, text) in settled.iter().zip(&sides) {
        assert!(answer.is_ok(), "{text}: {answer:?}");
    }
}

#[tokio::test]
async fn delays_of_any_precision_end_in_time() {
    need!((board, server) = open());
    for form in ["%FT%TZ", "%FT%T%.3fZ"] {
        let key = post_one(&board, "resize").await;
        let ended = Utc::now().format(form);
        let text = format!(r#"{{"v":1,"not_before":"{ended}"}}"#);
        server.run::<()>(&["SET", &side(&key), &text]);
        let answers = claim_all(&board, from_ref(&key), ATTEMPT).await;
        assert!(matches!(answers[..], [Ok(_)]), "{text}: {answers:?}");
    }
}

#[tokio::test]
async fn sidecar_of_another_type_does_not_block_its_batch() {
    need!((board, server) = open());
    for put in [&["LPUSH"][..], &["SADD"], &["HSET", "field"], &["APPEND"]] {
        let keys = three(&board).await;
        for name in ["jobboard", "last_modified"] {
            let key = format!("taskflow:{}.{name}", keys[1]);
            let words = [&put[..1], &[key.as_str()], &put[1..], &["\u{1}[9,"]].concat();
            server.run::<redis::Value>(&words);
        }
        let listed = jobs(&board).await;
        let odd = listed.iter().find(|job| job.key == keys[1]).unwrap();
        assert!(odd.is_unfit, "{put:?}: {odd:?}");
        let answers = claim_all(&board, &keys, ATTEMPT).await;
        assert_matches!(
            &answers[..],
            [Ok(_), Err(BoardError::Unclaimable { .. }), Ok(_)],
            "{put:?}"
        );
        server.run::<()>(&["FLUSHALL"]);
    }
}

#[tokio::test]
async fn trash_of_another_type_does_not_block_other_ends() {
    need!((board, server) = open());
    let keys = three(&board).await;
    let claimed = claim_all(&board, &keys, ATTEMPT).await;
    server.run::<()>(&["SET", "taskflow:trash", "x"]);
    let outcomes = [
        Decision::Consume,
        Decision::Trash(Aftermath::None),
        Decision::Consume,
    ];
    let settlements: Vec<_> = claimed
        .into_iter()
        .zip(outcomes)
        .map(|(claimed, decision)| {
            let claimed = claimed.unwrap();
            let authority = Authority::Claim(ada().owner, claimed.fence);
            Settlement::of(claimed.job.key, decision, authority)
        })
        .collect();
    let settled: Vec<Result<Settled>> = board.settle(&settlements).await.unwrap();
    assert_matches!(&settled[..], [Ok(_), Err(BoardError::Failed { .. }), Ok(_)]);
    let left = jobs(&board).await;
    assert_eq!(left.len(), 1);
    // Nothing of it was done.
    assert!(left[0].holding.as_ref().unwrap().fence.is_some());
}

#[tokio::test]
async fn read_only_server_refuses_all_without_effect() {
    need!((board, server) = open());
    let keys = three(&board).await;
    let held = claim_all(&board, &keys[..2], ATTEMPT).await;
    let fences: Vec<_> = held.into_iter().map(|held| held.unwrap().fence).collect();
    let trashed = post_one(&board, "trashed").await;
    let trash = (
        Decision::Trash(Aftermath::None),
        Authority::Force(ExpectedState::Unclaimed),
    );
    settled(&board, &trashed, trash.0, trash.1).await;
    let claims: Vec<_> = (keys.iter().zip(&fences))
        .map(|(key, fence)| Claim {
            key: key.clone(),
            owner: ada().owner,
            fence: Some(fence.clone()),
            term: LONG,
        })
        .collect();
    let settlements: Vec<_> = (claims.iter())
        .map(|claim| Settlement::of(claim.key.clone(), Decision::Consume, by_name("ada")))
        .collect();
    let before = everything(&server);
    let by = claimant("bob", Term::Lease(LONG));
    for (begin, end) in [
        (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]),
        (
            ["CONFIG SET", "min-replicas-to-write", "1"],
            ["CONFIG SET", "min-replicas-to-write", "0"],
        ),
    ] {
        let run = |words: [&str; 3]| {
            let words: Vec<_> = words.iter().flat_map(|word| word.split(' ')).collect();
            server.run::<()>(&words);
        };
        run(begin);
        let answers = [
            board.claim(&keys[2..], &by, 1, ATTEMPT).await.map(drop),
            board.renew(&claims).await.map(drop),
            board.settle(&settlements).await.map(drop),
            board
                .revise(&[Revision::from_trash(trashed.clone(), None)])
                .await
                .map(drop),
            board
                .purge(&[crate::job::Purge::of(trashed.clone())])
                .await
                .map(drop),
        ];
        let is_refused = |answer: &Result<()>| {
            let source = answer.as_ref().err().and_then(std::error::Error::source);
            source.is_some_and(|it| {
                ["take", "accept", "replica"]
                    .iter()
                    .any(|word| it.to_string().contains(word))
            })
        };
        assert!(answers.iter().all(is_refused), "{begin:?}: {answers:?}");
        run(end);
        assert_eq!(everything(&server), before, "{begin:?}");
    }
    let renewed = board.renew(&claims).await.unwrap();
    assert!(renewed.iter().all(Result::is_ok), "{renewed:?}");
}

/// Stores a map without members: only the client can tell that it is no posting.
fn store_empty_map(server: &Server) -> JobKey {
    let store = "return redis.call('HSET', KEYS[1], 'bad', '\\128')";
    server.run::<()>(&["EVAL", store, "1", "taskflow:listings"]);
    JobKey::new("bad")
}

#[tokio::test]
async fn malformed_map_is_refused_and_takes_no_place_of_another_job() {
    need!((board, server) = open());
    let keys = [store_empty_map(&server), post_one(&board, "good").await];
    let side = r#"{"v":1,"attempts":2}"#;
    server.run::<()>(&["SET", "taskflow:bad.jobboard", side]);
    let before = everything(&server);
    for change in [JobChange::Restart, JobChange::Continue] {
        let revision = Revision {
            location: Location::Board,
            change,
            ..Revision::from_trash(keys[0].clone(), None)
        };
        let refused = board.revise(&[revision]).await.unwrap().remove(0);
        assert_matches!(refused, Err(BoardError::Malformed { .. }));
    }
    assert_eq!(everything(&server), before);
    let claimed = board.claim(&keys, &ada(), 1, ATTEMPT).await.unwrap();
    assert_matches!(
        claimed.as_slice(),
        [Err(BoardError::Malformed { .. }), Ok(_)]
    );
    assert_eq!(server.run::<u32>(&["EXISTS", "taskflow:bad.owned"]), 0);
}

#[tokio::test]
async fn failed_release_is_not_hidden_by_a_bad_sidecar() {
    need!((board, server) = open());
    // From here on the server knows the scripts.
    let key = post_one(&board, "resize").await;
    let fence = claim_one(&board, &key, &ada()).await.unwrap().fence;
    let by_claim = Authority::Claim(ada().owner, fence);
    settled(&board, &key, release(), by_claim).await;
    let bad = store_empty_map(&server);
    let by_hand = claimant("ada", Term::Indefinite);
    let unread = claim_one(&board, &bad, &by_hand).await;
    assert_matches!(unread, Err(BoardError::Malformed { .. }));
    assert_eq!(server.run::<u32>(&["EXISTS", "taskflow:bad.owned"]), 0);

    let proxy = Proxy::start(server.port());
    let url = redis_url(&format!("redis://127.0.0.1:{}", proxy.port));
    let remote: Subject = Arc::new(Redis::new(
        &url,
        None,
        OP_TIMEOUT,
        Limit::USUAL,
        crate::job::HISTORY,
    ));
    proxy.set_at("EVALSHA", ProxyMode::Stall);
    let claiming = tokio::spawn({
        let bad = bad.clone();
        async move { claim_one(&remote, &bad, &by_hand).await }
    });
    let start = Instant::now();
    while server.run::<u32>(&["EXISTS", "taskflow:bad.owned"]) == 0 {
        assert!(start.elapsed() < OP_TIMEOUT, "it is not claimed");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    server.run::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
    proxy.set(ProxyMode::PassOn);
    let unknown = claiming.await.unwrap();
    assert_matches!(unknown, Err(BoardError::Unknown { .. }));
    assert_eq!(server.run::<u32>(&["EXISTS", "taskflow:bad.owned"]), 1);
}

#[tokio::test]
async fn conductors_are_listed_despite_foreign_entries() {
    need!((board, server) = open());
    server.run::<redis::Value>(&["LPUSH", "taskflow:conductor.odd", "x"]);
    server.run::<redis::Value>(&["SET", "taskflow:conductor.text", "x"]);
    assert_eq!(board.conductors().await.unwrap(), []);
}

#[tokio::test]
async fn excess_move_records_are_not_read() {
    need!((board, server) = open());
    let store =
        "for n = 0, ARGV[1] do redis.call('HSET', KEYS[1], n .. ' move:ada:h:1:c0ffee01', '') end";
    let most = MAX_RECORDS.to_string();
    server.run::<()>(&["EVAL", store, "1", "taskflow:moves", &most]);
    assert_eq!(board.moves().await.unwrap().len(), MAX_RECORDS);
}
