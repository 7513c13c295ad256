//! Starting, also anew: a picture of the board is made while what happens meanwhile is heard.

use std::pin::pin;

use futures_util::{StreamExt, TryStreamExt};
use redis::PushKind;
use tokio::time::Instant;

use super::Watcher;
use crate::{
    board::{
        BoardError, Detail, Onlooker, Query, Result,
        known::{Known, Looked, Modified},
        redis::{
            events::{
                conductors::Conductors,
                picture::{Picture, Traces},
                recheck::{Cause, RecheckQueue},
                survey::{Account, Numbers},
            },
            read::{
                look::{entries, entries_wanted},
                scan::{AHEAD, scanned},
            },
        },
    },
    job::Shelf,
};

impl Watcher<'_> {
    /// Makes a picture of the board as it is, and shows it to an onlooker; where something was lost
    /// meanwhile, it is not whole.
    pub(crate) async fn start(&mut self, mut onlooker: Option<Onlooker<'_>>) -> Result<()> {
        self.forget()?;
        let before = self.counts().await?.sequence;
        let mut picture = Picture::default();
        self.read(Shelf::Board, &mut picture, onlooker.as_mut())
            .await?;
        self.read(Shelf::Trash, &mut picture, None).await?;
        let sequence = self.counts().await?.sequence;
        self.skip()?;
        // Numbers never go back, unless everything was removed; not every server tells of that.
        self.has_lost |= sequence < before;
        self.picture = picture;
        self.account = Account::at(sequence);
        Ok(())
    }

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

    /// Adds a shelf to a picture, page by page, for as long as nothing is lost, or to its end if somebody
    /// looks on.
    async fn read(
        &mut self,
        shelf: Shelf,
        picture: &mut Picture,
        onlooker: Option<&mut Onlooker<'_>>,
    ) -> Result<()> {
        let board = self.board;
        let (client, keys) = (&board.client, &board.keys);
        let (detail, wants, mut sees) = match onlooker {
            Some(onlooker) => (
                Detail::Whole,
                Some(onlooker.wants),
                Some(&mut onlooker.sees),
            ),
            None => (Detail::Brief, None, None),
        };
        let query = Query::all(shelf, detail);
        let pages = scanned(client, keys, shelf).map(move |page| async move {
            let asked = Instant::now();
            let page = match wants {
                Some(wants) => entries_wanted(client, keys, query, page?, wants).await?,
                None => {
                    let page = entries(client, keys, query, page?).await?;
                    page.into_iter().map(|entry| (entry, true)).collect()
                }
            };
            let answered = Instant::now();
            Ok::<_, BoardError>((page, Looked { asked, answered }))
        });
        let mut pages = pin!(pages.buffered(AHEAD));
        while sees.is_some() || !self.has_lost {
            let Some((page, looked)) = pages.try_next().await? else {
                break;
            };
            for (entry, is_complete) in page {
                let mut known = Known::of(&entry, looked);
                if !is_complete {
                    known.modified = Modified::Unknown;
                }
                picture.put(shelf, entry.key(), known);
                if let Some(sees) = &mut sees
                    && entry.holding().is_none()
                {
                    // In no order, nothing ranks behind it for sure.
                    let _ = sees(entry);
                }
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
