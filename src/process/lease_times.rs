//! The times within a lease: when it is renewed, and when the command under it must end.
//!
//! A term counts from the last granted request. After 4/12 of it the next request is sent, and again after each 3/12
//! without a reply. After 10/12 the command is asked to end, after 11/12 it is killed. On a board with sessions the
//! term counts from the request before the last, so the command ends 4/12 earlier.

use std::time::Duration;

use super::clock::Boottime;

/// How long after a granted request the next one is sent.
pub(crate) fn renew_after(term: Duration) -> Duration {
    term / 3
}

/// How long a request for a renewal may take. If claims expire, two more fit before the loss, even if the board is
/// silent.
pub(crate) fn retry_after(term: Duration) -> Duration {
    term / 4
}

/// How long after a request the server that ends sessions knows of it, even if another server received it.
pub(crate) fn known_after(session: Duration) -> Duration {
    session / 4
}

/// How long before the deadline a command is asked to end.
fn terminate_before(term: Duration) -> Duration {
    term / 6
}

/// How long a command gets to end before it is killed.
pub(crate) fn grace(term: Duration) -> Duration {
    term / 12
}

/// A living owner renews before so little is left.
pub(crate) fn least_left(term: Duration) -> Duration {
    term / 3
}

/// When a command must end because its lease does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub(crate) terminate: Boottime,
    pub(crate) kill: Boottime,
}

impl Deadlines {
    /// Places both limits before the deadline of a lease of this length.
    pub(crate) fn before(deadline: Boottime, term: Duration) -> Self {
        Self {
            terminate: deadline - terminate_before(term),
            kill: deadline - grace(term),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_follow_in_twelfths_of_the_term() {
        let term = Duration::from_secs(12);
        let times = [renew_after(term), retry_after(term), least_left(term)];
        assert_eq!(times.map(|it| it.as_secs()), [4, 3, 4]);
    }

    #[test]
    fn both_moments_precede_the_deadline() {
        let deadlines =
            Deadlines::before(Boottime::from_nanos(12_000), Duration::from_nanos(12_000));
        assert_eq!(deadlines.terminate.as_nanos(), 10_000);
        assert_eq!(deadlines.kill.as_nanos(), 11_000);
    }
}
