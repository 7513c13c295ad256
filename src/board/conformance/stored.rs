//! The contract of stored data, which the tests see and change past the board.

use super::{
    ended::{audit, end},
    events::{all_of, next},
    *,
};
use crate::{
    board::{BoardError, EventKind, Part, examine::Access},
    job::{Claim, Edit, ExpectedState, JobChange, Malformed, MoveRecord, Pause, Purge, Revision},
};

/// The stored data of one board.
pub(crate) trait Storage {
    /// Replaces a record by bytes that the board cannot read, or adds such a record.
    async fn spoil(&self, record: Record<'_>);

    /// Ends the registration of this conductor, as the server does without its heartbeats or its session.
    async fn expire_registration(&self, name: &str);

    /// Opens the board as another client.
    fn again(&self) -> Subject;

    /// Returns everything that is stored, with its versions and deadlines.
    async fn all(&self) -> Vec<String>;
}

#[derive(Clone, Copy)]
pub(crate) enum Record<'a> {
    /// The posting of a job on the board.
    Posting(&'a JobKey),
    Sidecar(&'a JobKey),
    Pause(&'a str),
    Move(&'a str),
}

/// The content of a spoiled record.
pub(crate) const SPOILED: &str = "nonsense";

pub(crate) async fn lookup_shows_each_change_that_a_client_knew_of(
    board: &Subject,
    storage: &impl Storage,
) {
    let (other, key) = (storage.again(), post_one(board, "resize").await);
    for (one, another) in [(board, &other), (&other, board)] {
        claim_one(one, &key, &ada()).await.unwrap();
        let seen = on_board(another, &key).await;
        assert_eq!(seen.owner(), Some(&ada().owner));
        settled(one, &key, release(), by_name("ada")).await;
        assert_eq!(on_board(another, &key).await.holding, None);
    }
    other.close().await;
}

async fn malformed(board: &Subject, location: Location, key: &JobKey) -> Malformed {
    match board.resolve_one(location, &JobRef::Key(key.clone())).await {
        Ok(Entry::Malformed(record)) => record,
        other => panic!("{other:?}"),
    }
}

async fn revise(board: &Subject, revision: Revision) -> Result<()> {
    board.revise(&[revision]).await.unwrap().remove(0)
}

pub(crate) async fn malformed_record_stays_until_it_is_forced_out(
    board: &Subject,
    storage: &impl Storage,
) {
    let (key, good) = (post_one(board, "bad").await, post_one(board, "good").await);
    storage.spoil(Record::Posting(&key)).await;
    let is_intact = async |location| {
        let record = malformed(board, location, &key).await;
        assert_eq!(
            (record.raw, record.holding),
            (SPOILED.as_bytes().to_vec(), None)
        );
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
    let retry = Revision {
        location: Location::Board,
        ..Revision::from_trash(key.clone(), audit("mended"))
    };
    let rename = Edit {
        name: Some("renamed".to_owned()),
        ..Edit::default()
    };
    let edit = Revision {
        change: JobChange::Edit(rename),
        ..retry.clone()
    };
    let refused = revise(board, edit).await;
    assert_matches!(refused, Err(BoardError::Malformed { .. }));
    let refused = revise(board, retry).await;
    assert_matches!(refused, Err(BoardError::Malformed { .. }));
    let purged = board.purge(&[Purge::of(key.clone())]).await.unwrap();
    assert_matches!(purged.as_slice(), [Err(BoardError::NoSuchJob)]);
    is_intact(Location::Board).await;

    let force = || Authority::Force(ExpectedState::Unclaimed);
    settled(board, &key, to_trash(), force()).await;
    is_intact(Location::Trash).await;
    let purged = board.purge(&[Purge::of(key.clone())]).await.unwrap();
    assert_matches!(purged.as_slice(), [Ok(_)]);
    storage.spoil(Record::Posting(&good)).await;
    settled(board, &good, Decision::Consume, force()).await;
    let left: Vec<Entry> = board.entries(WHOLE_BOARD).try_collect().await.unwrap();
    assert_eq!(left, []);
}

/// Redis also announces the claim and release of a malformed map, which only its client can decode.
pub(crate) async fn refused_claim_of_a_record_that_is_no_posting_emits_no_event(
    board: &Subject,
    storage: &impl Storage,
) {
    let key = post_one(board, "bad").await;
    storage.spoil(Record::Posting(&key)).await;
    let mut events = board.events().await.unwrap().stream;
    for rules in [BY_HAND, ATTEMPT] {
        let refused = board.claim_one(&key, &ada(), rules).await;
        assert_matches!(refused, Err(BoardError::Malformed { .. }));
    }
    post_one(board, "next").await;
    let seen = next(&mut events, 1).await;
    assert_eq!(seen, all_of("next", &[EventKind::Posted]));
}

pub(crate) async fn unreadable_sidecar_refuses_only_claims_that_need_it(
    board: &Subject,
    storage: &impl Storage,
) {
    let mut keys = Vec::new();
    for name in ["first", "second", "third"] {
        keys.push(post_one(board, name).await);
    }
    let key = &keys[1];
    storage.spoil(Record::Sidecar(key)).await;
    let odd = on_board(board, key).await;
    assert!(odd.is_unfit && odd.problem.is_some(), "{odd:?}");
    let kept = claimant("ada", Term::Lease(LONG));
    for (by, rules) in [(ada(), ATTEMPT), (kept, BY_HAND)] {
        let claimed = board.claim(&keys, &by, 3, rules).await.unwrap();
        assert_matches!(
            claimed.as_slice(),
            [Ok(_), Err(BoardError::Unclaimable { .. }), Ok(_)]
        );
        for key in [&keys[0], &keys[2]] {
            settled(board, key, release(), by_name("ada")).await;
        }
    }
    assert_eq!(on_board(board, key).await.holding, None);
    // A claim by name succeeds, and so does its settlement.
    claim_one(board, key, &ada()).await.unwrap();
    settled(board, key, Decision::Consume, by_name("ada")).await;
}

pub(crate) async fn unreadable_pause_is_listed_and_can_be_ended(
    board: &Subject,
    storage: &impl Storage,
) {
    post_one(board, "backup").await;
    storage.spoil(Record::Pause("back*")).await;
    let [pause] = board.pauses().await.unwrap().try_into().unwrap();
    assert_eq!((&*pause.names, pause.is_unreadable), ("back*", true));
    let resumed = audit("resumed").unwrap();
    for is_there in [true, false] {
        assert_eq!(board.resume("back*", &resumed).await.unwrap(), is_there);
        assert_eq!(board.pauses().await.unwrap(), []);
    }
}

pub(crate) async fn unreadable_move_records_are_skipped(board: &Subject, storage: &impl Storage) {
    let record = MoveRecord::commit(&owner("move:ada@h:h:1:c0ffee01"), "3f9a");
    board.begin_move(&record).await.unwrap();
    storage.spoil(Record::Move("move:ada@h:h:1:c0ffee02")).await;
    storage.spoil(Record::Move("nobody")).await;
    assert_eq!(board.moves().await.unwrap(), [record]);
}

fn to_trash() -> Decision {
    Decision::Trash(Aftermath::None)
}

pub(crate) async fn reads_and_examinations_change_nothing(board: &Subject, storage: &impl Storage) {
    let nothing = storage.all().await;
    assert_eq!(look_everywhere(board).await, [0; 6]);
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
    storage.spoil(Record::Posting(&keys[4])).await;
    let before = storage.all().await;
    // Two jobs and the bad record, the trashed job, and the consumed one, each in both details.
    assert_eq!(look_everywhere(board).await, [3, 3, 1, 1, 1, 1]);
    for key in &keys {
        board
            .find(Location::Board, &[JobRef::Key(key.clone())])
            .await
            .unwrap();
    }
    let refused = board.settle_one(&keys[1], release(), by_name("bob")).await;
    assert_matches!(refused, Err(BoardError::NotOwner { .. }));
    assert_eq!(storage.all().await, before);
}

/// Returns the number of listed records at each location, in each detail.
async fn look_everywhere(board: &Subject) -> Vec<usize> {
    let mut counts = Vec::new();
    for location in [Location::Board, Location::Trash, Location::History] {
        for detail in [Detail::Brief, Detail::Whole] {
            let query = Query {
                location,
                detail,
                ..WHOLE_BOARD
            };
            let listed: Vec<Entry> = board.entries(query).try_collect().await.unwrap();
            counts.push(listed.len());
        }
        let wanted = [JobRef::Sequence(1), JobRef::Key(JobKey::new("gone"))];
        board.find(location, &wanted).await.unwrap();
    }
    drop(board.events().await.unwrap());
    board.pauses().await.unwrap();
    board.moves().await.unwrap();
    board.conductors().await.unwrap();
    board.health().await.unwrap();
    let highest = Some(1);
    let parts = [
        Part::Connection(Access::Change),
        Part::Server,
        Part::Strays,
        Part::History,
    ];
    for part in parts.into_iter().chain([Part::Keys { highest }]) {
        board.examine(part).await.unwrap();
    }
    counts
}
