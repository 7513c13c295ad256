//! Awaits a future that may be missing.

/// Awaits the future, or forever if there is none; for branches of `select!`.
pub(crate) async fn or_never<F: Future>(future: Option<F>) -> F::Output {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}
