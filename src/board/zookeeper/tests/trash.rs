//! A trash shared by sibling boards.

use super::*;
use crate::{
    board::{conformance::ended, error::NodeConflict, zookeeper::paths::numbered},
    job::Former,
};

/// Two boards whose jobs have the same numbers and the same trash.
fn neighbours() -> Option<(Site, Site)> {
    let server = Server::shared()?;
    let parent = Uuid::new_v4();
    let site = |name| Site::at(server.port(), format!("/{parent}/{name}"));
    Some((site("one"), site("two")))
}

#[tokio::test]
async fn occupied_trash_place_is_reported_without_loss() {
    need!((one, two) = neighbours());
    let (ours, theirs) = (one.board(), two.board());
    let key = trashed(&theirs, draft("theirs")).await;
    assert_eq!(post_one(&ours, "ours").await, key);
    claim_one(&ours, &key, &ada()).await.unwrap();
    let nodes = one.nodes().await;
    let before = nodes.below(&one.path).await;
    let refused = ours.settle_one(&key, trash(), by_name("ada")).await;
    match refused {
        Err(BoardError::NodeConflict(NodeConflict::InTrash(node))) => {
            assert_eq!(node, one.trashed(&key))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(nodes.below(&one.path).await, before);
    assert_eq!(
        get(&theirs, Location::Trash, &key).await.unwrap().name,
        "theirs"
    );
    restore(&theirs, &key).await.unwrap();
    settled(&ours, &key, trash(), by_name("ada")).await;
    claim_one(&theirs, &key, &bob()).await.unwrap();
    let refused = theirs.settle_one(&key, trash(), by_name("bob")).await;
    assert_matches!(
        refused,
        Err(BoardError::NodeConflict(NodeConflict::InTrash(_)))
    );
    purge(&ours, &key).await.unwrap();
    settled(&theirs, &key, trash(), by_name("bob")).await;
}

#[tokio::test]
async fn trashed_jobs_are_loaded_beside_those_of_another_board() {
    need!((one, two) = neighbours());
    let (ours, theirs) = (one.board(), two.board());
    trashed(&theirs, draft("theirs")).await;
    let nodes = one.nodes().await;
    for number in [1, 2, 4].into_iter().chain(10..=700) {
        nodes.put(&one.trashed(&numbered(number)), b"theirs").await;
    }
    let load = async |name: &str, count: usize| {
        let draft = || {
            let former = Former {
                location: Location::Trash,
                ..Former::default()
            };
            Draft {
                chosen: true,
                former: Some(Box::new(former)),
                ..draft(name)
            }
        };
        let drafts: Vec<_> = (0..count).map(|_| draft()).collect();
        let posted = ours.post(&drafts, None).await.unwrap();
        let posted = posted.into_iter().map(|it| it.unwrap().sequence);
        posted.collect::<Vec<_>>()
    };
    assert_eq!(load("few", 5).await, [3, 5, 6, 7, 8]);
    assert_eq!(load("many", 3).await, [9, 701, 702]);
    let job = on_board(&ours, &post_one(&ours, "next").await).await;
    assert_eq!(job.sequence, Some(703));
    let key = numbered(701);
    assert_eq!(
        get(&ours, Location::Trash, &key).await.unwrap().name,
        "many"
    );
    restore(&ours, &key).await.unwrap();
    assert_eq!(on_board(&ours, &key).await.name, "many");
}

#[tokio::test]
async fn sidecar_survives_a_trashed_job_of_another_board() {
    need!((one, two) = neighbours());
    let (ours, theirs) = (one.board(), two.board());
    let key = trashed(&theirs, draft("theirs")).await;
    assert_eq!(post_one(&ours, "ours").await, key);
    ours.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    purge(&ours, &key).await.unwrap();
    assert_eq!(on_board(&ours, &key).await.attempts.count, 1);
    assert!(get(&theirs, Location::Trash, &key).await.is_none());
}

#[tokio::test]
async fn history_survives_a_trashed_job_of_another_board() {
    need!((one, two) = neighbours());
    let (ours, theirs) = (one.board(), two.board());
    let key = trashed(&theirs, draft("theirs")).await;
    assert_eq!(post_one(&ours, "ours").await, key);
    ours.claim_one(&key, &ada(), ATTEMPT).await.unwrap();
    ended::end(&ours, &key, Decision::Consume, None).await;
    let trashed = get(&ours, Location::Trash, &key).await.unwrap();
    assert_eq!(
        (trashed.name.as_str(), trashed.attempts.count),
        ("theirs", 0)
    );
    purge(&ours, &key).await.unwrap();
    let remembered = list(&ours, ended::ENDED).await;
    let names: Vec<_> = remembered.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["ours"]);
}

#[tokio::test]
async fn job_of_another_board_in_the_trash_is_a_different_job() {
    need!((one, two) = neighbours());
    let (ours, theirs) = (one.board(), two.board());
    let uuid = Uuid::new_v4();
    let key = trashed(&ours, chosen("ours", uuid)).await;
    // An operator deletes it, and another board's job takes its place.
    let nodes = one.nodes().await;
    nodes.0.delete(&one.trashed(&key), None).await.unwrap();
    assert_eq!(trashed(&theirs, draft("theirs")).await, key);
    let again = post(&ours, chosen("again", uuid)).await;
    assert_ne!(again, key);
    claim_one(&ours, &again, &ada()).await.unwrap();
    settled(&ours, &again, trash(), by_name("ada")).await;
    assert_eq!(
        get(&theirs, Location::Trash, &key).await.unwrap().name,
        "theirs"
    );
}

#[test]
fn board_path_inside_the_trash_is_refused() {
    for path in ["/.trash", "/taskflow/.trash"] {
        let url = format!("zk://localhost{path}").parse::<crate::board::url::BoardUrl>();
        let message = url.unwrap_err().to_string();
        assert!(
            message.contains("is the trash of other boards"),
            "{message}"
        );
    }
}
