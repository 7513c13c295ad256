//! Repeats requests without a reply.

use std::time::Duration;

use tokio::time::{self, Instant};

/// How long a request is repeated.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The pause before each repetition.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);

/// Repeats a request until it returns an answer; gives up after five seconds.
pub(crate) async fn until_answered<T>(mut request: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + TIMEOUT;
    while Instant::now() < end {
        let answer = time::timeout_at(end, request()).await.ok()?;
        if answer.is_some() {
            return answer;
        }
        time::sleep(PAUSE).await;
    }
    None
}
