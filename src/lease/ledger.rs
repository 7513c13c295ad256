//! The renewed claims, and until when each of them is ours.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{Lost, Unanswered};
use crate::{
    board::{self, Board, BoardError},
    job::Claim,
    optional::or_never,
    process::{
        clock::{self, Boottime},
        group::ProcessGroup,
        guard::{Guard, GuardedCommand},
        label::Label,
        lease_times::{Deadlines, grace, known_after, renew_after},
    },
};

#[derive(Debug)]
pub(super) struct Ledger {
    entries: Mutex<BTreeMap<u64, LedgerEntry>>,
    /// Whether the keeper is gone. Changed under the lock of the entries.
    is_closed: AtomicBool,
    /// The number of the next entry, never reused: an answer may still be in transit.
    next: AtomicU64,
    pub(super) changed: Notify,
    /// Whether claims end with the session of this client.
    has_session: bool,
}

#[derive(Debug)]
struct LedgerEntry {
    claim: Claim,
    /// When we sent the last two granted requests, the last one first. For a new claim both are the claim.
    confirmed: [Boottime; 2],
    guarded: Option<(Arc<Guard>, ProcessGroup)>,
    lost: oneshot::Sender<Lost>,
}

impl LedgerEntry {
    fn renew_at(&self) -> Boottime {
        self.confirmed[0] + renew_after(self.claim.term)
    }

    fn deadlines(&self, ledger: &Ledger) -> Deadlines {
        let ([last, before], term) = (self.confirmed, self.claim.term);
        let since = match ledger.has_session {
            // The server that ends sessions may not know of the last request, if the server between them has died. It
            // knows of the request before, and of each contact older than `known_after`.
            //
            // Two requests may follow each other closely, for the sake of other claims.
            true if !planted!(CountsFromTheRequests) => before.min(last - known_after(term)),
            true => before,
            false => last,
        };
        Deadlines::before(since + term, term)
    }

    fn lose(self, lost: Lost) {
        // The holder may have dropped it this moment.
        let _ = self.lost.send(lost);
    }
}

impl Ledger {
    pub(super) fn of(board: &dyn Board) -> Self {
        let has_session = !board.capabilities().has_expiring_claims;
        Self {
            entries: Mutex::default(),
            is_closed: AtomicBool::new(false),
            next: AtomicU64::new(0),
            changed: Notify::new(),
            has_session: has_session && !planted!(CountsFromTheLastConfirmation),
        }
    }

    pub(super) fn add(&self, claim: Claim, asked: Boottime) -> (u64, oneshot::Receiver<Lost>) {
        let (sender, lost) = oneshot::channel();
        let entry = LedgerEntry {
            confirmed: [asked, asked],
            claim,
            guarded: None,
            lost: sender,
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let mut entries = self.entries.lock();
        let moments = |entry: &LedgerEntry| [entry.renew_at(), entry.deadlines(self).terminate];
        let [due, end] = moments(&entry);
        // The keeper waits for the first renewal, or for the first loss.
        let others: Vec<_> = entries.values().map(moments).collect();
        let is_first = others.iter().all(|it| it[0] > due) || others.iter().all(|it| it[1] > end);
        if !self.is_closed.load(Ordering::Relaxed) {
            entries.insert(id, entry);
        }
        drop(entries);
        if is_first {
            self.changed.notify_one();
        }
        (id, lost)
    }

    pub(super) fn remove(&self, id: u64) {
        self.entries.lock().remove(&id);
    }

    /// Removes all claims, and rejects new ones. Their holders learn that nothing renews them.
    pub(super) fn close(&self) {
        let mut entries = self.entries.lock();
        self.is_closed.store(true, Ordering::Relaxed);
        entries.clear();
    }

    pub(super) fn guarded_command(&self, id: u64, label: Label) -> GuardedCommand {
        let deadlines = self
            .entries
            .lock()
            .get(&id)
            .map(|entry| entry.deadlines(self));
        // A lost claim has no time left.
        let deadlines =
            deadlines.unwrap_or_else(|| Deadlines::before(Boottime::now(), Duration::ZERO));
        GuardedCommand { deadlines, label }
    }

    pub(super) fn protect(&self, id: u64, guard: &Arc<Guard>, group: ProcessGroup) {
        if let Some(entry) = self.entries.lock().get_mut(&id) {
            entry.guarded = Some((Arc::clone(guard), group));
        }
    }

    pub(super) fn first_renewal(&self) -> Option<Boottime> {
        let entries = self.entries.lock();
        entries.values().map(LedgerEntry::renew_at).min()
    }

    /// Waits until the next claim expires, by the present entries.
    pub(super) async fn some_loss(&self) {
        let deadlines = |entry: &LedgerEntry| entry.deadlines(self).terminate;
        let first = self.entries.lock().values().map(deadlines).min();
        or_never(first.map(clock::sleep_until)).await;
    }

    pub(super) fn claims(&self) -> (Vec<u64>, Vec<Claim>) {
        let entries = self.entries.lock();
        let claims = entries.iter().map(|(&id, entry)| (id, entry.claim.clone()));
        claims.unzip()
    }

    pub(super) fn expire(&self, last: Option<&Arc<BoardError>>) {
        let now = Boottime::now();
        let mut entries = self.entries.lock();
        let over: Vec<u64> = entries
            .iter()
            .filter(|(_, entry)| entry.deadlines(self).terminate <= now)
            .map(|(&id, _)| id)
            .collect();
        for entry in over.iter().filter_map(|id| entries.remove(id)) {
            let kill_at = entry.deadlines(self).kill;
            let last = last.cloned();
            entry.lose(Lost::Expired { kill_at, last });
        }
    }

    /// Fails if some claims were neither granted nor refused, with the board's reason if it gave one.
    pub(super) fn enter(
        &self,
        ids: &[u64],
        answers: Vec<board::Result<()>>,
        asked: Boottime,
    ) -> Result<(), Unanswered> {
        let mut open = (answers.len() < ids.len()).then_some(None);
        for (&id, answer) in ids.iter().zip(answers) {
            match answer {
                Ok(()) => self.confirm(id, asked),
                Err(error) if error.is_about_the_claim() => self.refuse(id, error),
                // Any other error may pass before the claim expires.
                Err(error) => open = Some(Some(Arc::new(error))),
            }
        }
        open.map_or(Ok(()), Err)
    }

    /// Extends a claim from the time of the request: the board counts from later on.
    fn confirm(&self, id: u64, asked: Boottime) {
        if let Some(entry) = self.entries.lock().get_mut(&id) {
            entry.confirmed = [asked, entry.confirmed[0]];
            let deadlines = entry.deadlines(self);
            if let Some((guard, group)) = &entry.guarded {
                // If the guard ended and no new one starts, the task that tends the guards tries again.
                let _ = guard.extend(*group, deadlines);
            }
        }
    }

    /// Drops a claim that the board refuses: another client may hold it already.
    fn refuse(&self, id: u64, source: BoardError) {
        let entry = self.entries.lock().remove(&id);
        if let Some(entry) = entry {
            let grace = grace(entry.claim.term).min(Duration::from_secs(1));
            entry.lose(Lost::refused(source, grace));
        }
    }
}
