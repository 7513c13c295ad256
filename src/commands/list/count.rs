//! Counts jobs, in total or by group.

use std::{borrow::Cow, cmp::Reverse, collections::HashMap};

use anyhow::Context as _;
use futures_util::{StreamExt as _, TryStreamExt, stream};
use serde::{Serialize, Serializer, ser::SerializeMap};
use serde_json::Value;

use super::{
    ListArgs,
    selected::{ListFilter, query},
    trying,
};
use crate::{
    board::{
        Board, Query,
        filter::{FieldPath, compare_values},
    },
    context::Context,
    job::{JobField, MAX_BRIEF, MAX_TEXT_BYTES, brief},
    output::{ABSENT, Cell, Column, Fit, Row, Tone},
    secret::covered_member,
};

#[derive(Debug)]
struct GroupCount<'a> {
    fields: &'a [FieldPath],
    values: Vec<Value>,
    count: u64,
}

impl Serialize for GroupCount<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (field, value) in self.fields.iter().zip(&self.values) {
            map.serialize_entry(&field.name(), value)?;
        }
        map.serialize_entry("count", &self.count)?;
        map.end()
    }
}

impl Row for GroupCount<'_> {
    fn fields(&self) -> Vec<Cow<'_, str>> {
        let texts = self.values.iter().map(|value| match value {
            Value::Null => Cow::default(),
            Value::String(text) => text.into(),
            value => value.to_string().into(),
        });
        texts.chain([self.count.to_string().into()]).collect()
    }

    fn cells(&self) -> Vec<Cell> {
        let none = || Cell::toned(Tone::Faint, ABSENT);
        let cells = self.fields.iter().zip(&self.values);
        let cells = cells.map(|(field, value)| field.in_words(value).map_or_else(none, Cell::new));
        cells.chain([Cell::new(self.count.to_string())]).collect()
    }
}

/// Longer texts are grouped in brief form; in bytes.
fn longest(field: &FieldPath) -> usize {
    match field.name() == JobField::Owner.name() {
        true => MAX_BRIEF,
        false => MAX_TEXT_BYTES,
    }
}

pub(super) async fn count(
    ctx: &mut Context,
    board: &dyn Board,
    args: &ListArgs,
    filter: &ListFilter,
) -> anyhow::Result<u64> {
    let query = query(ctx, args, filter);
    let locations = args.locations().into_iter();
    let locations = locations.map(|location| board.entries(Query { location, ..query }));
    let mut entries = stream::iter(locations).flatten();
    let hides = ctx.hides_secrets();
    let mut counts = HashMap::<Vec<Value>, u64>::new();
    while let Some(entry) = entries.try_next().await.with_context(|| trying(ctx))? {
        if filter.admits(&entry) {
            let value = |field: &FieldPath| {
                let value = match field.group(&entry, filter.now) {
                    value if hides => covered_member(&field.name(), value),
                    value => value,
                };
                match value {
                    Value::String(text) if text.len() > longest(field) => brief(&text).into(),
                    value => value,
                }
            };
            let values = args.by.iter().map(value);
            *counts.entry(values.collect()).or_default() += 1;
        }
    }
    let count: u64 = counts.values().sum();
    if args.by.is_empty() {
        ctx.out.answer(&[count.to_string()], &count)?;
    } else {
        print_groups(ctx, &args.by, counts)?;
    }
    Ok(count)
}

fn print_groups(
    ctx: &mut Context,
    fields: &[FieldPath],
    counts: HashMap<Vec<Value>, u64>,
) -> anyhow::Result<()> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|(values, count), (others, other)| {
        let pairs = values.iter().zip(others);
        let by_value = pairs.map(|(one, other)| compare_values(one, other));
        let by_value = by_value.reduce(|order, next| order.then(next));
        Reverse(count)
            .cmp(&Reverse(other))
            .then(by_value.unwrap_or(std::cmp::Ordering::Equal))
    });
    let titles = fields.iter();
    let titles = titles.map(|field| Column::titled(field.name(), Fit::KeepsEnds));
    let columns: Vec<_> = titles.chain([Column::new("count", Fit::Number)]).collect();
    let rows = counts.into_iter().map(|(values, count)| GroupCount {
        fields,
        values,
        count,
    });
    ctx.out.table(&columns, rows)
}
