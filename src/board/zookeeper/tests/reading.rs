//! Reading malformed nodes; reading changes nothing.

use zookeeper_client::{Acl, AuthId, Permission};

use super::*;
use crate::board::Order;
use futures_util::TryStreamExt;

const TOLERANCE: &str = include_str!("../../wire/fixtures/zk_reader_tolerance.json");

async fn entries(board: &Subject, order: Order) -> Vec<Entry> {
    let query = crate::board::Query {
        order,
        ..WHOLE_BOARD
    };
    board.entries(query).try_collect().await.unwrap()
}

#[tokio::test]
async fn reading_creates_no_node() {
    need!(server = Server::start(&[]));
    let plain = Site::on(&server);
    let nodes = plain.nodes().await;
    let before = nodes.below("/").await;
    let url = format!(
        "zk://127.0.0.1:{}{}?chroot=/none/here",
        plain.port, plain.path
    );
    let inside: Subject = Arc::new(ZooKeeper::new(
        &zookeeper_url(&url),
        None,
        OP_TIMEOUT,
        crate::job::HISTORY,
    ));
    for board in [plain.board(), inside] {
        assert!(entries(&board, Order::Rank).await.is_empty());
        assert!(entries(&board, Order::Any).await.is_empty());
        let wanted = [
            JobRef::Uuid("abcd".to_owned()),
            JobRef::Sequence(3),
            JobRef::Key(JobKey::new("job/../x")),
            JobRef::Key(JobKey::new("job\u{1}")),
        ];
        for location in Location::LIVE {
            let found = board.find(location, &wanted).await.unwrap();
            assert!(found.iter().all(Vec::is_empty));
        }
        assert!(!board.health().await.unwrap().is_used);
        assert!(board.conductors().await.unwrap().is_empty());
        drop(board.events().await.unwrap());
        board.close().await;
    }
    assert_eq!(nodes.below("/").await, before);
}

#[tokio::test]
async fn unreadable_registration_hides_no_other() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    board
        .register(&crate::job::Conductor::named("day"))
        .await
        .unwrap();
    let unreadable = site.paths.node(NodeKind::Entity, "night");
    nodes.put(&unreadable, "nonsense").await;
    let conductors = board.conductors().await.unwrap().into_iter();
    assert_eq!(conductors.map(|it| it.name).collect::<Vec<_>>(), ["day"]);
    board.close().await;
}

#[tokio::test]
async fn unreadable_node_hides_no_other() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let mut keys = Vec::new();
    for name in ["posting", "lock", "side", "good"] {
        let key = post_claimed(&board, name).await;
        keys.push(key);
    }
    let somebody = AuthId::new("digest", "ada:+7K83PhyQ3ijGj0ADmljf0quVwQ=");
    let acl = [Acl::new(Permission::ALL, somebody)];
    let closed = [
        site.job(&keys[0]),
        site.paths.lock(&keys[1]),
        site.paths.side(&keys[2]),
    ];
    for path in closed {
        nodes.0.set_acl(&path, &acl, None).await.unwrap();
    }
    for order in [Order::Any, Order::Rank] {
        let found = entries(&board, order).await;
        let of = |key: &JobKey| found.iter().find(|entry| entry.key() == key).unwrap();
        assert_eq!(found.len(), 4);
        match of(&keys[0]) {
            Entry::Malformed(record) => assert_eq!(record.problem, "no right to read the record"),
            other => panic!("{other:?}"),
        }
        let locked = of(&keys[1]).job().unwrap();
        assert_eq!(locked.holding.as_ref().unwrap().owner, None);
        assert_eq!(locked.problem.as_deref(), Some("no right to read its lock"));
        let side = of(&keys[2]).job().unwrap().problem.as_deref();
        assert_eq!(side, Some("no right to read the sidecar"));
        assert_eq!(of(&keys[3]).job().unwrap().problem, None);
    }
    let consume = keys
        .iter()
        .map(|key| Settlement::of(key.clone(), Decision::Consume, by_name("ada")));
    let answers = board.settle(&consume.collect::<Vec<_>>()).await.unwrap();
    let denied = answers
        .iter()
        .map(|one| matches!(one, Err(BoardError::Denied { .. })));
    assert_eq!(denied.collect::<Vec<_>>(), [true, true, true, false]);
    assert!(answers[3].is_ok());
}

#[tokio::test]
async fn malformed_nodes_are_listed_once_and_stay() {
    need!(site = Site::new());
    let (board, nodes) = (site.board(), site.nodes().await);
    let tolerance: serde_json::Value = serde_json::from_str(TOLERANCE).unwrap();
    let shapes = tolerance["vectors"].as_array().unwrap();
    let mut expected = BTreeMap::new();
    for (number, shape) in shapes.iter().enumerate() {
        let good = post_one(&board, "good").await;
        expected.insert(good, true);
        let hex = shape["data_hex"].as_str().unwrap();
        let data: Vec<_> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        // Some concern the name of the node.
        let node = shape["node"]
            .as_str()
            .unwrap()
            .replace("0000000900", &format!("{}", 900 + number));
        nodes.put(&format!("{}/{node}", site.path), data).await;
        let returned = shape["iterjobs"]["returns"].as_array();
        let is_job = returned.is_some_and(|jobs| !jobs.is_empty());
        if node.starts_with("job") && !node.ends_with(".lock") {
            expected.insert(JobKey::new(node), is_job);
        }
    }
    assert_eq!(shapes.len(), 21);
    let before = nodes.below(&site.path).await;
    for order in [Order::Any, Order::Rank] {
        let found = entries(&board, order).await;
        let keys: HashSet<_> = found.iter().map(Entry::key).collect();
        assert_eq!(keys.len(), found.len());
        assert!(expected.keys().all(|key| keys.contains(key)) && keys.len() == expected.len());
        for entry in &found {
            // Every job of TaskFlow is a job here, but not the reverse.
            assert!(entry.job().is_some() || !expected[entry.key()], "{entry:?}");
        }
        let malformed = found.iter().filter(|entry| entry.job().is_none()).count();
        assert!(malformed > 5, "{malformed}");
    }
    assert_eq!(nodes.below(&site.path).await, before);
}

#[tokio::test]
async fn acl_option_decides_who_can_read_the_nodes() {
    need!(server = Server::shared());
    for (user, tail) in [("ada@", "?acl=creator"), ("", "")] {
        let site = Site::on(server);
        let chroot = format!("/{}", Uuid::new_v4());
        let join = if tail.is_empty() { "?" } else { "&" };
        let url = format!(
            "zk://{user}127.0.0.1:{}{}{tail}{join}chroot={chroot}",
            site.port, site.path
        );
        let password = (!user.is_empty()).then(|| crate::secret::Secret::new("hunter2"));
        let board: Subject = Arc::new(ZooKeeper::new(
            &zookeeper_url(&url),
            password,
            OP_TIMEOUT,
            crate::job::HISTORY,
        ));
        let key = trashed(&board, chosen("one", Uuid::new_v4())).await;
        restore(&board, &key).await.unwrap();
        claim_one(&board, &key, &ada()).await.unwrap();
        register_worker(&board).await;
        let client = zookeeper_client::Client::connector().with_auth("digest", b"ada:hunter2");
        let client = client
            .connect(&format!("127.0.0.1:{}", site.port))
            .await
            .unwrap();
        let nodes = Nodes(client);
        let all = nodes.below(&chroot).await;
        assert!(all.len() > 12, "{:?}", all.keys());
        for path in all.keys() {
            let (acl, _) = nodes.0.get_acl(path).await.unwrap();
            let expected = if user.is_empty() { "world" } else { "digest" };
            let [only] = &acl[..] else {
                panic!("{path}: {acl:?}");
            };
            assert_eq!(only.scheme(), expected, "{path}");
            assert_eq!(only.permission(), Permission::ALL, "{path}");
        }
        board.close().await;
    }
}
