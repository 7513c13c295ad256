//! Which jobs are copied, and as what.

use std::cell::Cell;

use chrono::Utc;
use futures_util::StreamExt;

use crate::{
    board::{Board, Detail, Order, Query, filter::Filters},
    commands::bulk::{plan::PlannedMove, shared_trash::SharedArgs},
    exit::CommandError,
    job::{Draft, Entry, Shelf},
    transfer::{
        batches::{Batches, NextRecord, RecordSource, Unusable},
        record::{self, Conversion},
    },
};

/// The most records of a batch, and their size but for the last one, in bytes: small enough for a slow network.
const BATCH: (usize, usize) = (200, 4 << 20);

pub(super) type CopyResult = (Entry, anyhow::Result<&'static str>);

pub(super) struct CopyChoice<'a> {
    pub(super) shared: &'a SharedArgs,
    pub(super) filters: Filters,
    pub(super) is_fresh: bool,
    pub(super) is_dry: bool,
    pub(super) conversion: Conversion,
    pub(super) is_move: bool,
    pub(super) unreadable: Cell<u64>,
    pub(super) planned: Option<PlannedMove>,
}

impl<'a> CopyChoice<'a> {
    pub(super) fn batches(
        &'a self,
        board: &'a dyn Board,
        shelf: Shelf,
        order: Order,
    ) -> Batches<impl RecordSource<Record = Passenger>> {
        let entries = board.entries(Query {
            order,
            ..Query::all(shelf, Detail::Stored)
        });
        Batches::new(
            entries.map(|entry| anyhow::Ok(self.candidate(entry?))),
            BATCH,
        )
    }

    fn candidate(&self, entry: Entry) -> NextRecord<Passenger> {
        let size = entry.job().map(|job| job.raw.len());
        match self.draft(&entry) {
            Ok(Some(draft)) => Ok(Some(((entry, draft), size.unwrap_or_default()))),
            Ok(None) => {
                self.unreadable.update(|it| it + u64::from(size.is_none()));
                Ok(None)
            }
            Err(why) => Err(Unusable {
                job: (entry.name().into_owned(), entry.reference().into_owned()),
                error: CommandError::refused(why).into(),
            }),
        }
    }

    fn draft(&self, entry: &Entry) -> Result<Option<Draft>, String> {
        let is_meant = self.shared.admits(entry) && self.filters.matches(entry, Utc::now());
        let is_meant = is_meant && self.planned.as_ref().is_none_or(|it| it.takes(entry));
        let Some(job) = entry.job().filter(|_| is_meant) else {
            return Ok(None);
        };
        if self.is_move && job.is_misnamed {
            return Err("another record has the same uuid".to_owned());
        }
        let mut draft = record::draft(job, job.raw.clone(), self.conversion)?;
        if let (Some(former), true) = (&mut draft.former, self.is_fresh) {
            former.begin_anew();
        }
        Ok(Some(draft))
    }
}

pub(super) type Passenger = (Entry, Draft);

pub(super) fn borrowed(batch: &[Passenger]) -> Vec<(&Entry, &Draft)> {
    batch.iter().map(|(entry, draft)| (entry, draft)).collect()
}
