//! Starting, also anew: a picture of the board is made while what happens meanwhile is heard.

use redis::PushKind;
use tokio::time::Instant;

use super::Watcher;
use crate::{
    board::{
        Detail, Query, Result,
        known::{Known, Looked},
        redis::{
            events::{
                conductors::Conductors,
                picture::{Picture, Traces},
                recheck::{Cause, RecheckQueue},
                survey::{Account, Numbers},
            },
            read::{look::entries, scan::Scan},
        },
    },
    job::Shelf,
};

impl Watcher<'_> {
    /// Makes a picture of the board as it is; where something was lost meanwhile, it is not whole.
    pub(crate) async fn start(&mut self) -> Result<()> {
        self.forget()?;
        let before = self.counts().await?.sequence;
        let mut picture = Picture::default();
        for shelf in [Shelf::Board, Shelf::Trash] {
            self.read(shelf, &mut picture).await?;
        }
        let sequence = self.counts().await?.sequence;
        self.skip()?;
        // Numbers never go back, unless everything was removed; not every server tells of that.
        self.has_lost |= sequence < before;
        self.picture = picture;
        self.account = Account::at(sequence);
        Ok(())
    }

    /// Forgets all that is known, and what was pushed by now.
    fn forget(&mut self) -> Result<()> {
        while let Some(push) = self.pushed() {
            if push.kind == PushKind::Disconnection {
                return self.hear(Some(push));
            }
        }
        self.picture = Picture::default();
        (self.recheck, self.conductors) = (RecheckQueue::default(), Conductors::default());
        (self.stale_since, self.to_settle) = (Some(Instant::now()), None);
        self.numbers = Numbers::default();
        self.pending.clear();
        self.has_lost = false;
        Ok(())
    }

    /// Adds a shelf to a picture, page by page, for as long as nothing is lost.
    async fn read(&mut self, shelf: Shelf, picture: &mut Picture) -> Result<()> {
        let query = Query::all(shelf, Detail::Brief);
        let (client, keys) = (&self.board.client, &self.board.keys);
        let mut scan = Scan::of(keys, shelf);
        while !self.has_lost {
            let asked = Instant::now();
            let Some(page) = scan.next(client).await? else {
                break;
            };
            let page = entries(client, keys, query, page).await?;
            let answered = Instant::now();
            for entry in page {
                let known = Known::of(&entry, Looked { asked, answered });
                picture.put(shelf, entry.key(), known);
            }
            self.skip()?;
        }
        Ok(())
    }

    /// Hears what was pushed by now: it may be older than what was read, and is looked at again.
    fn skip(&mut self) -> Result<()> {
        for key in self.drain()? {
            self.recheck.add(key, Cause::Noted, Traces::default());
        }
        self.pending.clear();
        Ok(())
    }
}
