//! What is special about a board on Redis.

use std::{
    slice::from_ref,
    sync::Arc,
    time::{Duration, Instant},
};

use chrono::Utc;
use futures_util::{TryStreamExt, future::join_all};

use super::{Redis, testing::Server};
use crate::{
    board::{
        BoardError, BoardExt, ClaimRules, Detail, JobRef, Query, Result,
        conformance::{
            ATTEMPT, BY_HAND, LONG, Subject, WHOLE_BOARD, ada, by_name, claim_one, claimant, draft,
            get, keeps_its_promises, post_one, release, until_free,
        },
    },
    job::{
        Aftermath, Authority, Claim, Failure, Fence, JobKey, Outcome, Settlement, Shelf, Term,
        Witness,
    },
};

mod counter;
mod oddity;
mod restart;

const PATIENCE: Duration = Duration::from_secs(5);

fn open() -> Option<(Subject, Server)> {
    let server = Server::start(&[])?;
    Some((board_of(&server, None), server))
}

/// Returns a board with a connection of its own, as some user of the server.
fn board_of(server: &Server, user: Option<&str>) -> Subject {
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let url = super::testing::redis_url(&format!("redis://{user}127.0.0.1:{}", server.port()));
    Arc::new(Redis::new(&url, None, PATIENCE))
}

keeps_its_promises!(open);

/// Returns all keys, what is under each, and when it is to end.
fn everything(server: &Server) -> Vec<(String, Vec<u8>, i64)> {
    let mut keys: Vec<String> = server.run(&["KEYS", "*"]);
    keys.sort();
    keys.into_iter()
        .map(|key| {
            let bytes = server.run(&["DUMP", &key]);
            let end = server.run(&["PEXPIRETIME", &key]);
            (key, bytes, end)
        })
        .collect()
}

#[tokio::test]
async fn faults_of_many_claimants_with_connections_of_their_own_one_wins() {
    let Some((board, server)) = open() else {
        return;
    };
    let boards: Vec<_> = (0..64).map(|_| board_of(&server, None)).collect();
    let is_full = std::env::var_os("JOBBOARD_FAULTS").is_some_and(|asked| asked == "full");
    let (rounds, start) = (if is_full { 1000 } else { 20 }, Instant::now());
    for _ in 0..rounds {
        let key = post_one(&board, "resize").await;
        let claims = boards.iter().enumerate().map(|(number, board)| {
            let (board, key) = (Arc::clone(board), key.clone());
            tokio::spawn(async move {
                let by = claimant(&format!("worker{number}"), Term::Indefinite);
                claim_one(&board, &key, &by).await.map(|_| by.owner)
            })
        });
        let answers = join_all(claims).await.into_iter().map(Result::unwrap);
        let (won, lost): (Vec<_>, Vec<_>) = answers.partition(Result::is_ok);
        assert_eq!((won.len(), lost.len()), (1, 63));
        let winner = won.into_iter().next().unwrap().unwrap();
        for refused in lost {
            assert!(
                matches!(&refused, Err(BoardError::AlreadyClaimed { owner: Some(owner) }) if *owner == winner),
                "{refused:?}"
            );
        }
    }
    eprintln!(
        "faults: 64 claimants after one job on Redis: one winner in each of {rounds} rounds, all \
         in {:.1?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn a_lease_that_lapsed_and_was_won_again_is_not_the_first_holders() {
    let Some((board, _server)) = open() else {
        return;
    };
    let key = post_one(&board, "resize").await;
    let short = claimant("ada", Term::Kept(Duration::from_millis(50)));
    let first = board.claim_one(&key, &short, ATTEMPT).await.unwrap();
    until_free(&board, &key).await;
    let again = claimant("ada", Term::Kept(LONG));
    let second = board.claim_one(&key, &again, ATTEMPT).await.unwrap();
    let claim = |fence: &Fence| Claim {
        key: key.clone(),
        owner: again.owner.clone(),
        fence: Some(fence.clone()),
        term: LONG,
    };
    let claims = [claim(&first.fence), claim(&second.fence)];
    let renewed = board.renew(&claims).await.unwrap();
    assert!(
        matches!(renewed[..], [Err(BoardError::Changed), Ok(())]),
        "{renewed:?}"
    );
    let late = Authority::Claim(again.owner.clone(), first.fence);
    let refused = board.settle_one(&key, Outcome::Consume, late).await;
    assert!(matches!(refused, Err(BoardError::Changed)), "{refused:?}");
    let in_time = Authority::Claim(again.owner, second.fence);
    board
        .settle_one(&key, Outcome::Consume, in_time)
        .await
        .unwrap();
}

/// What a board can be asked to change, in as many ways as a script has.
#[derive(Debug, Clone, Copy)]
enum Change {
    Post,
    PostClaimed,
    Claim,
    Renew,
    Settle(&'static str),
    Force(&'static str),
    Restore,
    Purge,
}

const CHANGES: [Change; 12] = [
    Change::Post,
    Change::PostClaimed,
    Change::Claim,
    Change::Renew,
    Change::Settle("abandon"),
    Change::Settle("consume"),
    Change::Settle("trash"),
    Change::Force("abandon"),
    Change::Force("consume"),
    Change::Force("trash"),
    Change::Restore,
    Change::Purge,
];

/// Every command that a script may run and that changes or reads what is on the board.
const COMMANDS: [&str; 10] = [
    "hget", "hset", "hexists", "hdel", "get", "set", "del", "incrby", "pexpire", "evalsha",
];

/// A board with a job that is free, one that ada has, and one that is in the trash.
struct Scene {
    free: JobKey,
    claimed: JobKey,
    trashed: JobKey,
}

impl Scene {
    async fn set(board: &Subject) -> Self {
        let free = post_one(board, "free").await;
        let claimed = post_one(board, "claimed").await;
        let by = claimant("ada", Term::Kept(LONG));
        board.claim_one(&claimed, &by, ATTEMPT).await.unwrap();
        let trashed = post_one(board, "trashed").await;
        claim_one(board, &trashed, &ada()).await.unwrap();
        board
            .settle_one(&trashed, Outcome::Trash(None), by_name("ada"))
            .await
            .unwrap();
        Self {
            free,
            claimed,
            trashed,
        }
    }

    /// Tries a change, and returns the error around all of it.
    async fn change(&self, board: &Subject, change: Change) -> Result<()> {
        let by = claimant("bob", Term::Kept(LONG));
        match change {
            Change::Post => all(board.post(&[draft("new")], None).await),
            Change::PostClaimed => all(board.post(&[draft("new")], Some(&by)).await),
            Change::Claim => {
                let rules = ClaimRules {
                    is_attempt: true,
                    ..BY_HAND
                };
                all(board.claim(from_ref(&self.free), &by, 1, rules).await)
            }
            Change::Renew => {
                let claim = Claim {
                    key: self.claimed.clone(),
                    owner: ada().owner,
                    fence: None,
                    term: LONG,
                };
                all(board.renew(&[claim]).await)
            }
            Change::Settle(verb) => {
                let settlement = self.settlement(verb, by_name("ada"));
                all(board.settle(&[settlement]).await)
            }
            Change::Force(verb) => {
                let seen = Witness::Claimed {
                    owner: Some(ada().owner),
                    fence: None,
                };
                let settlement = self.settlement(verb, Authority::Override(seen));
                all(board.settle(&[settlement]).await)
            }
            Change::Restore => all(board.restore(from_ref(&self.trashed)).await),
            Change::Purge => all(board.purge(from_ref(&self.trashed)).await),
        }
    }

    fn settlement(&self, verb: &str, authority: Authority) -> Settlement {
        let failure = Failure {
            exit_code: Some(1),
            signal: None,
            reason: "exit code 1".to_owned(),
            stderr: String::new(),
            conductor: "c".to_owned(),
            time: Utc::now(),
        };
        Settlement {
            key: self.claimed.clone(),
            outcome: match verb {
                "abandon" => Outcome::Abandon(Aftermath::Failed {
                    failure,
                    not_before: None,
                }),
                "consume" => Outcome::Consume,
                _ => Outcome::Trash(Some(failure)),
            },
            authority,
        }
    }
}

/// Returns the first error, be it about the whole exchange or about one job.
fn all<T>(answers: Result<Vec<Result<T>>>) -> Result<()> {
    for answer in answers? {
        answer?;
    }
    Ok(())
}

#[tokio::test]
async fn a_change_that_is_denied_one_of_its_commands_does_not_happen_at_all() {
    let Some((board, server)) = open() else {
        return;
    };
    for change in CHANGES {
        let mut denied = 0;
        for command in COMMANDS {
            server.run::<()>(&["FLUSHALL"]);
            let scene = Scene::set(&board).await;
            let rule = format!("-{command}");
            let user = ["ACL", "SETUSER", "eve", "reset", "on", "nopass"];
            let rights = ["allkeys", "allchannels", "+@all", &rule];
            server.run::<()>(&[&user[..], &rights].concat());
            let before = everything(&server);
            let limited = board_of(&server, Some("eve"));
            match scene.change(&limited, change).await {
                // This command is none of those that it needs.
                Ok(()) => continue,
                Err(error) => assert!(
                    matches!(error, BoardError::Denied { .. }),
                    "{change:?} without {command}: {error:?}"
                ),
            }
            denied += 1;
            assert_eq!(everything(&server), before, "{change:?} without {command}");
        }
        // At the least, what it reads, what it changes, and the scripts themselves.
        assert!(denied >= 3, "{change:?}: {denied}");
    }
}

#[tokio::test]
async fn a_change_that_may_use_only_a_part_of_the_keys_does_not_happen_at_all() {
    let Some((board, server)) = open() else {
        return;
    };
    for pattern in [
        "taskflow:listings",
        "taskflow:trash",
        "taskflow:*.owned",
        "taskflow:*.last_modified",
        "taskflow:*.jobboard",
    ] {
        for change in CHANGES {
            server.run::<()>(&["FLUSHALL"]);
            let scene = Scene::set(&board).await;
            let user = ["ACL", "SETUSER", "eve", "reset", "on", "nopass"];
            let keys = format!("~{pattern}");
            let rights = [&keys, "allchannels", "+@all"];
            server.run::<()>(&[&user[..], &rights].concat());
            let before = everything(&server);
            let limited = board_of(&server, Some("eve"));
            let refused = scene.change(&limited, change).await;
            assert!(
                matches!(refused, Err(BoardError::Denied { .. })),
                "{change:?} with {pattern}: {refused:?}"
            );
            assert_eq!(everything(&server), before, "{change:?} with {pattern}");
        }
    }
}

#[tokio::test]
async fn reading_changes_nothing() {
    let Some((board, server)) = open() else {
        return;
    };
    let scene = Scene::set(&board).await;
    server.run::<()>(&["HSET", "taskflow:listings", "bad", "nonsense"]);
    // As a claim that has no job any more.
    server.run::<()>(&["SET", "taskflow:gone.owned", "ada"]);
    let before = everything(&server);
    let reader = board_of(&server, None);
    for shelf in [Shelf::Board, Shelf::Trash] {
        for detail in [Detail::Brief, Detail::Whole] {
            let query = Query {
                shelf,
                detail,
                ..WHOLE_BOARD
            };
            let entries: Vec<_> = reader.entries(query).try_collect().await.unwrap();
            assert_eq!(entries.len(), if shelf == Shelf::Board { 3 } else { 1 });
        }
        let wanted = ["bad", "gone", scene.claimed.as_str()].map(JobKey::new);
        let wanted = wanted.map(JobRef::Key);
        reader.find(shelf, &wanted).await.unwrap();
    }
    assert!(get(&reader, Shelf::Board, &scene.free).await.is_some());
    reader.health().await.unwrap();
    reader.conductors().await.unwrap();
    drop(reader.events().await.unwrap());
    let refused = reader
        .settle_one(&scene.claimed, release(), by_name("bob"))
        .await;
    assert!(matches!(refused, Err(BoardError::NotOwner { .. })));
    reader.close().await;
    assert_eq!(everything(&server), before);
}

#[tokio::test]
async fn what_somebody_put_beside_a_job_by_hand_harms_no_other() {
    let Some((board, server)) = open() else {
        return;
    };
    let (odd, held) = (
        post_one(&board, "odd").await,
        post_one(&board, "held").await,
    );
    let free = post_one(&board, "free").await;
    let side = format!("taskflow:{odd}.jobboard");
    let owner = format!("taskflow:{held}.owned");
    for key in [&side, &owner] {
        let _: i64 = server.run(&["LPUSH", key, "x"]);
    }
    let keys = [held, free.clone(), odd];
    let answers = board.claim(&keys, &ada(), 2, BY_HAND).await.unwrap();
    let won: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(won, [false, true, true], "{answers:?}");
    assert!(matches!(
        answers[0],
        Err(BoardError::AlreadyClaimed { owner: None })
    ));
    let settlements = keys.map(|key| Settlement {
        key,
        outcome: Outcome::Consume,
        authority: by_name("ada"),
    });
    let answers = board.settle(&settlements).await.unwrap();
    let settled: Vec<_> = answers.iter().map(Result::is_ok).collect();
    assert_eq!(settled, [false, true, true], "{answers:?}");
}
