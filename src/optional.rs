//! Futures that may be missing.

/// Awaits the future, or never returns if there is none, such as in a branch of `select!`.
pub(crate) async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
