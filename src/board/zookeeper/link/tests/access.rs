//! Authentication and access rights.

use super::*;
use crate::board::zookeeper::testing::Server;

fn of(server: &Server, user: &str, password: &str) -> ZooKeeperClient {
    let url = zookeeper_url(&format!("zk://{user}@{}?acl=creator", server.host()));
    ZooKeeperClient::new(&url, Some(Secret::new(password)), OP_TIMEOUT)
}

async fn look(client: &ZooKeeperClient, path: &str) -> Result<Vec<u8>, String> {
    let session = client.session("read").await.unwrap();
    let looked = session.ask("read", session.client.get_data(path)).await;
    match looked {
        Ok(answer) => Ok(answer.unwrap().0),
        Err(RequestFailure::NotSent(error)) => Err(summary(error)),
        Err(failure) => panic!("{failure:?}"),
    }
}

#[tokio::test]
async fn private_node_opens_only_to_the_password_of_its_creator() {
    need!(server = Server::shared());
    let ada = of(server, "ada", "hunter2");
    let session = ada.session("write to").await.unwrap();
    let path = format!("/{}", uuid::Uuid::new_v4());
    let options = CreateMode::Persistent.with_acls(ada.acls());
    let created = session.client.create(&path, b"secret", &options);
    session.ask("write to", created).await.unwrap().unwrap();
    assert_eq!(look(&ada, &path).await, Ok(b"secret".to_vec()));
    let inside = format!("zk://ada:hunter2@{}", server.host());
    assert_eq!(look(&client(&inside), &path).await, Ok(b"secret".to_vec()));
    let peer = server.host();
    for (user, password) in [("ada", "hunter3"), ("bob", "hunter2")] {
        let expected = format!(
            "denied: {peer} does not allow the user {user} to read the nodes of /taskflow/jobs: \
             the password is wrong, or another user owns the nodes"
        );
        let message = look(&of(server, user, password), &path).await;
        assert_eq!(message, Err(expected));
    }
    let stranger = ZooKeeperClient::new(&server.url(""), None, OP_TIMEOUT);
    assert_eq!(
        look(&stranger, &path).await,
        Err(format!(
            "denied: {peer} does not allow anonymous clients to read the nodes of /taskflow/jobs: the board URL \
             names no user"
        ))
    );
}

#[tokio::test]
async fn debug_output_contains_no_password() {
    need!(server = Server::shared());
    let ada = of(server, "ada", "hunter2");
    let session = ping(&ada).await;
    let shown = format!("{ada:?} {session:?} {} {:?}", ada.name(), session.client);
    assert!(shown.contains("ada@"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[tokio::test]
async fn user_without_a_password_is_denied() {
    assert_eq!(
        failure(&client("zk://ada@127.0.0.1:1")).await,
        "denied: the user ada has no password, so any client could use that name"
    );
}
