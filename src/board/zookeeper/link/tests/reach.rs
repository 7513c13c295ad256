//! Servers that are there, and those that are not.

use super::*;
use crate::board::zookeeper::testing::free_port;

#[tokio::test]
async fn where_nobody_listens_the_connection_is_refused() {
    let port = free_port();
    assert_eq!(
        failure(&link(&format!("zk://127.0.0.1:{port}"))).await,
        format!("unreachable: 127.0.0.1:{port} refused the connection")
    );
}
