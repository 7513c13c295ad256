//! Starting and restarting: reads the board into a picture while messages arrive.

use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt};
use redis::PushKind;
use tokio::time::Instant;

use super::RedisWatcher;
use crate::{
    board::{
        BoardError, Detail, InitialListing, Query, Result,
        cached_job::{CachedJob, Modified, ReadTime},
        redis::{
            events::{
                conductors::ConductorPresences,
                picture::{BoardPicture, Traces},
                recheck::{RecheckQueue, Urgency},
                survey::{AnnouncedNumbers, Numbers},
            },
            read::scan::PAGES_READ_AHEAD,
        },
    },
    job::Location,
};

impl RedisWatcher<'_> {
    /// Builds a picture of the board and passes it to an initial listing. After a loss the picture is incomplete.
    pub(crate) async fn start(&mut self, mut listing: Option<InitialListing<'_>>) -> Result<()> {
        self.forget()?;
        let before = self.counts().await?.sequence;
        let mut picture = BoardPicture::default();
        self.read(Location::Board, &mut picture, listing.as_mut())
            .await?;
        self.read(Location::Trash, &mut picture, None).await?;
        let sequence = self.counts().await?.sequence;
        self.skip()?;
        // Numbers never go back unless the board was deleted, which some servers do not report.
        self.has_lost |= sequence < before;
        self.picture = picture;
        self.announced_numbers = AnnouncedNumbers::at(sequence);
        Ok(())
    }

    fn forget(&mut self) -> Result<()> {
        while let Some(push) = self.pushed() {
            if push.kind == PushKind::Disconnection {
                return self.receive(Some(push));
            }
        }
        self.picture = BoardPicture::default();
        (self.recheck, self.conductors) = (RecheckQueue::default(), ConductorPresences::default());
        (self.hashes_stale_since, self.unsettled_number) = (Some(Instant::now()), None);
        self.numbers = Numbers::default();
        self.pending.clear();
        self.has_lost = false;
        Ok(())
    }

    /// Adds a location to a picture page by page. Stops at a loss, unless an initial listing needs the rest.
    async fn read(
        &mut self,
        location: Location,
        picture: &mut BoardPicture,
        listing: Option<&mut InitialListing<'_>>,
    ) -> Result<()> {
        let board = self.board;
        let (detail, needs_sidecar, mut receive) = match listing {
            Some(listing) => (
                Detail::Whole,
                Some(listing.needs_sidecar),
                Some(&mut listing.receive),
            ),
            None => (Detail::Brief, None, None),
        };
        let query = Query::all(location, detail);
        let pages = board.scanned(location).map(move |page| async move {
            let asked = Instant::now();
            let page = match needs_sidecar {
                Some(needs_sidecar) => board.page_wanted(query, page?, needs_sidecar).await?,
                None => {
                    let page = board.page(query, page?).await?;
                    page.into_iter().map(|entry| (entry, true)).collect()
                }
            };
            let answered = Instant::now();
            Ok::<_, BoardError>((page, ReadTime { asked, answered }))
        });
        let mut pages = pin!(pages.buffered(PAGES_READ_AHEAD));
        while receive.is_some() || !self.has_lost {
            let Some((page, looked)) = pages.try_next().await? else {
                break;
            };
            for (entry, is_complete) in page {
                let mut known = CachedJob::of(&entry, looked);
                if !is_complete {
                    known.modified = Modified::Unknown;
                }
                picture.put(location, entry.key(), known);
                if let Some(receive) = &mut receive
                    && entry.holding().is_none()
                {
                    // Without an order, any later record may rank higher.
                    let _ = receive(entry);
                }
            }
            self.skip()?;
        }
        Ok(())
    }

    /// Takes pushed messages without applying them: they may predate the read, so their jobs are read again.
    fn skip(&mut self) -> Result<()> {
        for key in self.drain()? {
            self.recheck.add(key, Urgency::Noted, Traces::default());
        }
        self.pending.clear();
        Ok(())
    }
}
