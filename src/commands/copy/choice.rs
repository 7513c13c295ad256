//! Which jobs are copied, and as what.

use std::cell::Cell;

use chrono::Utc;
use futures_util::StreamExt;

use super::CopyArgs;
use crate::{
    board::{Board, BoardError, Detail, Order, Query, filter::Filters},
    exit::CommandError,
    job::{Draft, Entry, Location},
    suggest::Hint,
    transfer::{
        batches::{Batches, NextRecord, RecordSource, Unusable},
        moving::Candidate,
        record::{self, Conversion},
    },
};

/// The most records of a batch, and their size but for the last one, in bytes: small enough for a slow network.
const BATCH: (usize, usize) = (200, 4 << 20);

pub(super) struct CopyChoice<'a> {
    pub(super) args: &'a CopyArgs,
    pub(super) filters: Filters,
    pub(super) conversion: Conversion,
    pub(super) unreadable: Cell<u64>,
}

impl<'a> CopyChoice<'a> {
    pub(super) fn batches(
        &'a self,
        board: &'a dyn Board,
        location: Location,
        order: Order,
    ) -> Batches<impl RecordSource<Record = Candidate>> {
        let entries = board.entries(Query {
            order,
            ..Query::all(location, Detail::Stored)
        });
        Batches::new(
            entries.map(|entry| anyhow::Ok(self.candidate(entry?))),
            BATCH,
        )
    }

    fn candidate(&self, entry: Entry) -> NextRecord<Candidate> {
        let Some(job) = entry.job() else {
            self.unreadable.update(|it| it + 1);
            return Ok(None);
        };
        let is_meant = self.args.shared.admits(&entry)
            && self.filters.matches(&entry, Utc::now())
            && self.args.planned.as_ref().is_none_or(|it| it.takes(&entry));
        if !is_meant {
            return Ok(None);
        }
        let is_moved = self.args.is_move && job.location == Location::Board;
        let draft = match job.is_misnamed && self.args.is_move {
            // Parts that are too large to read could change unnoticed.
            false if is_moved && job.is_unfit => {
                Err(BoardError::unclaimable(job.problem.clone()).into())
            }
            true => {
                let reference = entry.reference();
                let hint = Hint::new("`jobboard explain {}` explains it", [&[&reference]]);
                let message = "the uuid of the posting does not identify this record";
                Err(CommandError::refused(message).hint(hint).into())
            }
            false => record::draft(job, job.raw.clone(), self.conversion)
                .map_err(|error| CommandError::refused(error).into()),
        };
        let mut draft = draft.map_err(|error| Unusable {
            job: (entry.name().into_owned(), entry.reference().into_owned()),
            error,
        })?;
        if let (Some(former), true) = (&mut draft.former, self.args.fresh) {
            former.begin_anew();
        }
        let size = job.raw.len();
        Ok(Some(((entry, draft), size)))
    }
}

pub(super) fn borrowed(batch: &[Candidate]) -> Vec<(&Entry, &Draft)> {
    batch.iter().map(|(entry, draft)| (entry, draft)).collect()
}
