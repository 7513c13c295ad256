//! A record as a row of a listing, in the selected columns.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::{
    JobView,
    columns::{COLUMNS, Fact, JobColumn},
};
use crate::{
    job::Location,
    output::{Cell, Column, Row},
};

#[derive(Debug, Clone)]
pub(crate) struct JobColumns(Vec<(&'static JobColumn, bool)>);

impl JobColumns {
    /// Returns the default columns of a location. They are a contract: scripts read them by position.
    pub(crate) fn usual(location: Location) -> Self {
        Self::of(match location {
            Location::Board => "uuid name state priority age owner held expires attempts note",
            Location::Trash => "uuid name trashed attempts by reason",
            Location::History => "uuid name outcome ended waited took by reason",
        })
    }

    /// Returns the columns of a dash, where the name comes first.
    pub(crate) fn in_dash(location: Location) -> Self {
        Self::of(match location {
            Location::Board => "name state age owner held expires attempts note uuid",
            Location::Trash => "name trashed attempts by reason uuid",
            Location::History => "name outcome ended waited took by reason uuid",
        })
    }

    pub(crate) fn of(names: &str) -> Self {
        debug_assert!(names.split(' ').all(|it| find(it).is_some()), "{names}");
        let columns = names.split(' ').filter_map(find);
        Self(columns.map(|column| (column, false)).collect())
    }

    /// Applies changes: columns without a sign replace all default ones.
    pub(crate) fn but(mut self, changes: &[ColumnChange]) -> Self {
        if changes.iter().any(|change| change.sign.is_none()) {
            self.0.clear();
        }
        for change in changes {
            let present = |it: &&mut (&JobColumn, bool)| it.0.name == change.column.name;
            match (self.0.iter_mut().find(present), change.sign) {
                (_, Some('-')) => self.0.retain(|it| it.0.name != change.column.name),
                (Some(it), _) => it.1 = true,
                (None, _) => self.0.push((change.column, true)),
            }
        }
        self
    }

    pub(crate) fn row<'a>(&'a self, view: JobView<'a>) -> JobRow<'a> {
        JobRow {
            view,
            columns: self,
        }
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.0.iter().map(|(column, _)| column.name).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns them for a table, which never drops selected columns.
    pub(crate) fn shapes(&self) -> Vec<Column> {
        let shapes = self.0.iter().map(|(column, is_asked)| {
            let shape = column.shape.clone();
            let falls = shape.falls.filter(|_| !is_asked);
            shape.falling(falls)
        });
        shapes.collect()
    }
}

/// A selected column, an addition to the default ones (`+`), or a removal (`-`).
#[derive(Debug, Clone)]
pub(crate) struct ColumnChange {
    sign: Option<char>,
    column: &'static JobColumn,
}

impl ColumnChange {
    pub(crate) fn names() -> Vec<&'static str> {
        COLUMNS.iter().map(|column| column.name).collect()
    }

    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let (sign, name) = match text.chars().next() {
            Some(sign @ ('+' | '-')) => (Some(sign), &text[1..]),
            _ => (None, text),
        };
        let column = find(name).ok_or_else(|| {
            let names = Self::names().join(", ");
            format!("no column `{name}`; the columns are {names}")
        })?;
        Ok(Self { sign, column })
    }
}

fn find(name: &str) -> Option<&'static JobColumn> {
    let mut columns = COLUMNS.iter();
    columns.find(|column| column.name == name || column.shape.title == name)
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct JobRow<'a> {
    view: JobView<'a>,
    columns: &'a JobColumns,
}

impl<'a> JobRow<'a> {
    fn facts(&self) -> impl Iterator<Item = Fact<'a>> {
        let (view, columns) = (self.view, self.columns);
        columns.0.iter().map(move |(column, _)| column.read(view))
    }
}

impl Serialize for JobRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view.serialize(serializer)
    }
}

impl Row for JobRow<'_> {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        self.facts().map(|fact| fact.field(self.view.now)).collect()
    }

    fn reference(&self) -> Option<Cow<'_, str>> {
        Some(self.view.entry.reference())
    }

    fn cells(&self) -> Vec<Cell> {
        self.facts().map(|fact| fact.cell(self.view.now)).collect()
    }
}
