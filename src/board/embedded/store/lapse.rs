//! Expiry of claims and of registry entries.

use rusqlite::{Transaction, params};

use super::clock::Moment;
use crate::board::{
    EventKind,
    embedded::{
        departed,
        events::journal::{self, About, How},
        read::record::RowJob,
        registry::read_told,
    },
};

pub(crate) fn lapse(
    transaction: &Transaction<'_>,
    now: Moment,
    boot: &str,
) -> rusqlite::Result<()> {
    follow_reboot(transaction, now, boot)?;
    lapse_claims(transaction, now)?;
    lapse_conductors(transaction, now)
}

/// Converts deadlines of an earlier boot to the clock of this one.
fn follow_reboot(transaction: &Transaction<'_>, now: Moment, boot: &str) -> rusqlite::Result<()> {
    let moved = transaction
        .prepare_cached("UPDATE board SET boot = ?1 WHERE boot <> ?1")?
        .execute(params![boot])?;
    if moved > 0 {
        transaction.execute(
            "UPDATE job SET expires_boot = ?1 + min(max(0, expires_wall - ?2), 1000000000000000)
             WHERE expires_boot IS NOT NULL",
            params![now.boot, now.wall / 1000],
        )?;
        transaction.execute("UPDATE conductor SET alive_boot = 0", [])?;
        departed::follow_reboot(transaction, now)?;
    }
    Ok(())
}

fn lapse_claims(transaction: &Transaction<'_>, now: Moment) -> rusqlite::Result<()> {
    let lapsed = transaction
        .prepare_cached(&format!(
            "SELECT {} FROM job WHERE expires_boot <= ?1 ORDER BY expires_boot",
            RowJob::COLUMNS
        ))?
        .query_map(params![now.boot], RowJob::read)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for job in lapsed {
        free(transaction, job.sequence)?;
        journal::write(
            transaction,
            now,
            EventKind::Expired,
            About::Job(&job, How::default()),
        )?;
    }
    Ok(())
}

fn lapse_conductors(transaction: &Transaction<'_>, now: Moment) -> rusqlite::Result<()> {
    let gone = transaction
        .prepare_cached("SELECT name, alive_boot, unsettled FROM conductor WHERE alive_boot <= ?1")?
        .query_map([now.boot], |row| {
            Ok((
                row.get::<_, String>(0)?,
                row.get(1)?,
                read_told(row.get(2)?),
            ))
        })?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    for (name, alive, told) in gone {
        departed::keep(transaction, now, &name, &told, alive)?;
        transaction.execute("DELETE FROM conductor WHERE name = ?1", [&name])?;
        let about = About::Conductor(&name);
        journal::write(transaction, now, EventKind::ConductorLeft, about)?;
    }
    Ok(())
}

pub(crate) fn free(transaction: &Transaction<'_>, sequence: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE job SET owner = NULL, fence = NULL, claimed_on = NULL,
                            expires_boot = NULL, expires_wall = NULL
             WHERE sequence = ?1",
        )?
        .execute(params![sequence])?;
    Ok(())
}
