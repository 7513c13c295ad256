//! Waits for a file descriptor of the kernel, such as the end of a process or a timer.

use std::{io, os::fd::OwnedFd};

use tokio::io::{Interest, unix::AsyncFd};

/// A file descriptor that only signals readiness.
#[derive(Debug)]
pub(crate) struct WatchedFd(AsyncFd<OwnedFd>);

impl WatchedFd {
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        Self::for_interest(fd, Interest::READABLE)
    }

    pub(crate) fn of_writer(fd: OwnedFd) -> io::Result<Self> {
        Self::for_interest(fd, Interest::ERROR)
    }

    fn for_interest(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        #[expect(
            deprecated,
            reason = "its successor is unsafe to call, for types that do not own their descriptor"
        )]
        AsyncFd::with_interest(fd, interest).map(Self)
    }

    pub(crate) async fn failed(&self) {
        // An error can only mean that the runtime is ending, and this future with it.
        let _ = self.0.ready(Interest::ERROR).await;
    }

    pub(crate) async fn wait(&self) {
        // An error can only mean that the runtime is ending, and this future with it.
        let _ = self.0.readable().await;
    }

    pub(crate) async fn drain(&self) {
        let Ok(mut ready) = self.0.readable().await else {
            return std::future::pending().await;
        };
        let mut buffer = [0; 4096];
        while rustix::io::read(&self.0, &mut buffer).is_ok_and(|length| length > 0) {}
        ready.clear_ready();
    }
}
