//! The contract of stored data, which the tests see and change past the board.

use super::{
    ended::{audit, end},
    *,
};
use crate::{
    board::{BoardError, Part},
    job::{Claim, Edit, ExpectedState, Malformed, MoveRecord, Pause, Purge, Restore},
};

/// The stored data of one board.
pub(crate) trait Storage {
    /// Replaces the posting of a job on the board by bytes that it cannot read.
    async fn spoil(&self, key: &JobKey);

    /// Returns everything that is stored, with its versions and deadlines.
    async fn all(&self) -> Vec<String>;
}

async fn malformed(board: &Subject, location: Location, key: &JobKey) -> Malformed {
    match board.resolve_one(location, &JobRef::Key(key.clone())).await {
        Ok(Entry::Malformed(record)) => record,
        other => panic!("{other:?}"),
    }
}

async fn restore(board: &Subject, restore: Restore) -> Result<()> {
    board.restore(&[restore]).await.unwrap().remove(0)
}

pub(crate) async fn malformed_record_stays_until_it_is_overridden(
    board: &Subject,
    storage: &impl Storage,
) {
    let (key, good) = (post_one(board, "bad").await, post_one(board, "good").await);
    storage.spoil(&key).await;
    let is_intact = async |location| {
        let record = malformed(board, location, &key).await;
        assert_eq!((record.raw, record.holding), (b"nonsense".to_vec(), None));
    };
    is_intact(Location::Board).await;
    let keys = [key.clone(), good.clone()];
    for rules in [BY_HAND, ATTEMPT] {
        let claimed = board.claim(&keys, &ada(), 2, rules).await.unwrap();
        assert_matches!(
            claimed.as_slice(),
            [Err(BoardError::Malformed { .. }), Ok(_)]
        );
        settled(board, &good, release(), by_name("ada")).await;
        is_intact(Location::Board).await;
    }
    let claim = Claim {
        key: key.clone(),
        owner: ada().owner,
        fence: Some(crate::job::Fence("1".to_owned())),
        term: LONG,
    };
    let renewed = board.renew(&[claim]).await.unwrap().remove(0);
    assert_matches!(renewed, Err(BoardError::NotClaimed));
    let outcomes = [release(), Decision::Consume, to_trash()];
    for decision in &outcomes {
        let refused = board.settle_one(&key, decision.clone(), by_name("ada"));
        let refused = refused.await;
        assert_matches!(refused, Err(BoardError::NotClaimed));
    }
    let retry = Restore {
        location: Location::Board,
        ..Restore::from_trash(key.clone(), audit("mended"))
    };
    let rename = Edit {
        name: Some("renamed".to_owned()),
        ..Edit::default()
    };
    for edit in [None, Some(rename)] {
        let retry = Restore {
            edit,
            ..retry.clone()
        };
        assert!(restore(board, retry.clone()).await.is_err(), "{retry:?}");
    }
    let purged = board.purge(&[Purge::of(key.clone())]).await.unwrap();
    assert_matches!(purged.as_slice(), [Err(BoardError::NoSuchJob)]);
    is_intact(Location::Board).await;

    let force = || Authority::Override(ExpectedState::Unclaimed);
    board.settle_one(&key, to_trash(), force()).await.unwrap();
    is_intact(Location::Trash).await;
    let purged = board.purge(&[Purge::of(key.clone())]).await.unwrap();
    assert_matches!(purged.as_slice(), [Ok(_)]);
    storage.spoil(&good).await;
    let consumed = board.settle_one(&good, Decision::Consume, force());
    consumed.await.unwrap();
    let left: Vec<Entry> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
    assert_eq!(left, []);
}

fn to_trash() -> Decision {
    Decision::Trash(Aftermath::None)
}

pub(crate) async fn reads_and_examinations_change_nothing(board: &Subject, storage: &impl Storage) {
    let nothing = storage.all().await;
    look_everywhere(board).await;
    assert_eq!(storage.all().await, nothing, "on a new board");

    let mut keys = Vec::new();
    for name in ["free", "claimed", "trashed", "consumed", "bad"] {
        keys.push(post_one(board, name).await);
    }
    for key in &keys[1..4] {
        board.claim_one(key, &ada(), ATTEMPT).await.unwrap();
    }
    trash_as_ada(board, &keys[2]).await;
    end(board, &keys[3], Decision::Consume, None).await;
    let by = audit("full").unwrap();
    let pause = Pause::new("back*".to_owned(), Some(chrono::Utc::now()), by);
    board.pause(&pause).await.unwrap();
    let record = MoveRecord::commit(&owner("move:ada@h:h:1:c0ffee01"), "3f9a");
    board.begin_move(&record).await.unwrap();
    storage.spoil(&keys[4]).await;
    let before = storage.all().await;
    look_everywhere(board).await;
    assert_eq!(storage.all().await, before);
}

async fn look_everywhere(board: &Subject) {
    for location in [Location::Board, Location::Trash, Location::History] {
        let query = Query {
            location,
            ..WHOLE_BOARD
        };
        let _: Vec<Entry> = board.entries(query).try_collect().await.unwrap();
        board.find(location, &[JobRef::Sequence(1)]).await.unwrap();
    }
    board.pauses().await.unwrap();
    board.moves().await.unwrap();
    board.conductors().await.unwrap();
    board.health().await.unwrap();
    let highest = Some(1);
    for part in [Part::Connection, Part::Server, Part::Keys { highest }] {
        board.examine(part).await.unwrap();
    }
    board.check_history().await.unwrap();
}
