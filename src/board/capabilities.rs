//! Capabilities of the backends, and the behaviour of TaskFlow's readers.

/// The differences between backends that callers must know; a backend without one has `false` or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// Whether a claim can end at a given time ([`Term::For`](crate::job::Term::For)), which `renew` moves.
    ///
    /// Otherwise a lease ends one term after the server last heard from the session of its client. A new leader may
    /// not know of the last confirmed contact, so callers count from the contact before that.
    pub(crate) has_expiring_claims: bool,
    /// Whether [`Board::conductors`](super::Board::conductors) also returns the conductors of TaskFlow itself.
    pub(crate) lists_peer_conductors: bool,
    /// Whether [`Board::find`](super::Board::find) looks up a uuid directly. Otherwise it reads the whole board.
    pub(crate) finds_by_uuid: bool,
    /// The behaviour of TaskFlow's own readers, if they support this kind of board.
    pub(crate) peers: Option<PeerTraits>,
}

impl Capabilities {
    /// Whether other programs may end jobs there without recording them in the history.
    pub(crate) fn has_peers(self) -> bool {
        self.peers.is_some()
    }

    pub(crate) fn peer_order(self) -> Option<PeerOrder> {
        self.peers.map(|it| it.order)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeerTraits {
    /// Their order of jobs in a listing.
    pub(crate) order: PeerOrder,
    /// Whether a listing may delete an unreadable record; otherwise it fails on the record.
    pub(crate) deletes_malformed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerOrder {
    NewestOfTheMostUrgent,
    OldestOfTheLeastUrgent,
}
