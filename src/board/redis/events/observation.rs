//! Reads a few jobs at one moment: on the board, in the trash, and their sidecars.

use redis::{Pipeline, Value, from_redis_value};

use super::picture::Place;
use crate::{
    board::{
        Detail,
        known::{Known, Looked},
        redis::{
            keys::{Keys, field_of},
            read::record::{Reading, Sidecars, read},
        },
        wire::posting::Limit,
    },
    job::{JobKey, Shelf},
};

pub(super) fn commands(keys: &Keys, jobs: &[JobKey]) -> Pipeline {
    let fields: Vec<_> = jobs.iter().map(field_of).collect();
    let mut commands = Pipeline::with_capacity(3 + jobs.len());
    for hash in [keys.listings(), keys.trash()] {
        let command = commands.cmd("HMGET").arg(hash);
        for field in &fields {
            command.arg(field.as_slice());
        }
    }
    let beside: Vec<_> = fields.iter().map(|field| keys.beside(field)).collect();
    let command = commands.cmd("MGET");
    for names in &beside {
        command
            .arg(names.owner.as_slice())
            .arg(names.last_modified.as_slice())
            .arg(names.side.as_slice());
    }
    for names in &beside {
        commands.cmd("PTTL").arg(names.owner.as_slice());
    }
    commands
}

/// Decodes the replies for each key; `None` if invalid.
pub(super) fn places(
    jobs: &[JobKey],
    answers: Vec<Value>,
    looked: Looked,
) -> Option<Vec<Place<Known>>> {
    let mut answers = answers.into_iter();
    let mut list = || -> Option<std::vec::IntoIter<Option<Vec<u8>>>> {
        let list: Vec<Option<Vec<u8>>> = from_redis_value(answers.next()?).ok()?;
        Some(list.into_iter())
    };
    let (mut board, mut trash, mut beside) = (list()?, list()?, list()?);
    let mut places = Vec::with_capacity(jobs.len());
    for key in jobs {
        let (posting, trashed) = (board.next()?, trash.next()?);
        let (owner, last_modified, side) = (beside.next()?, beside.next()?, beside.next()?);
        let left: i64 = from_redis_value(answers.next()?).ok()?;
        let field = field_of(key);
        let mut beside = Sidecars {
            last_modified,
            side,
            ..Sidecars::default()
        };
        let known = |shelf: Shelf, posting: &[u8], beside: Sidecars| {
            Known::of(&read(brief(shelf), &field, posting, beside), looked)
        };
        let trash = trashed.map(|posting| known(Shelf::Trash, &posting, beside.clone()));
        // In the trash a job is never claimed.
        beside.claim(owner, left);
        places.push(Place {
            board: posting.map(|posting| known(Shelf::Board, &posting, beside)),
            trash,
        });
    }
    Some(places)
}

pub(super) fn posted(key: &JobKey, posting: &[u8], looked: Looked) -> Known {
    let alone = Sidecars::default();
    let entry = read(brief(Shelf::Board), &field_of(key), posting, alone);
    Known::of(&entry, looked)
}

fn brief(shelf: Shelf) -> Reading {
    Reading {
        shelf,
        detail: Detail::Brief,
        limit: Limit::USUAL,
    }
}
