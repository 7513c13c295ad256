//! Expiry of claims and of registry entries.

use rusqlite::params;

use super::{
    read::record::RowJob,
    registry::read_status,
    store::{texts::text_of, transaction::Change},
};
use crate::board::EventKind;

pub(super) fn expire(change: &Change<'_>, boot: &str) -> rusqlite::Result<()> {
    change.follow_reboot(boot)?;
    change.expire_claims()?;
    change.expire_conductors()
}

impl Change<'_> {
    fn expire_claims(&self) -> rusqlite::Result<()> {
        let columns = RowJob::columns(self);
        let sql =
            format!("SELECT {columns} FROM job WHERE expires_boot <= ?1 ORDER BY expires_boot");
        for job in self.all::<_, Vec<_>>(&sql, [self.now.boot], RowJob::read)? {
            self.run(
                "UPDATE job SET owner = NULL, fence = NULL, claimed_on = NULL,
                                expires_boot = NULL, expires_wall = NULL
                 WHERE sequence = ?1",
                [job.sequence],
            )?;
            self.log_job(EventKind::Expired, &job)?;
        }
        Ok(())
    }

    fn follow_reboot(&self, boot: &str) -> rusqlite::Result<()> {
        let is_new_boot = self.run("UPDATE board SET boot = ?1 WHERE boot <> ?1", [boot])? > 0;
        if is_new_boot {
            self.run(
                "UPDATE job
                 SET expires_boot = ?1 + min(max(0, expires_wall - ?2), 1000000000000000)
                 WHERE expires_boot IS NOT NULL",
                params![self.now.boot, self.now.wall_millis()],
            )?;
            self.run("UPDATE conductor SET alive_boot = 0", [])?;
            self.convert_departed()?;
        }
        Ok(())
    }

    fn expire_conductors(&self) -> rusqlite::Result<()> {
        let [name, unsettled] = ["name", "unsettled"].map(|column| self.bounded(column));
        let sql = format!(
            "SELECT rowid, {name}, alive_boot, {unsettled} FROM conductor WHERE alive_boot <= ?1"
        );
        let gone: Vec<(i64, String, i64, _)> = self.all(&sql, [self.now.boot], |row| {
            Ok((
                row.get(0)?,
                text_of(row, 1)?,
                row.get(2)?,
                read_status(row, 3)?,
            ))
        })?;
        for (row, name, alive, status) in gone {
            self.keep_departed(&name, &status, alive)?;
            self.run("DELETE FROM conductor WHERE rowid = ?1", [row])?;
            self.log_conductor(EventKind::ConductorLeft, &name)?;
        }
        Ok(())
    }
}
