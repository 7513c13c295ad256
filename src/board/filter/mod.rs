//! The grammar for choosing jobs: `FIELD OP VALUE`, as in `held>10m` or `name=backup-*`.
//!
//! `grammar` parses expressions, `field` and `operator` define their parts, `values` parses values and compares them,
//! and `order` sorts by fields.

mod error;
mod field;
mod grammar;
mod operator;
mod order;
mod values;

#[cfg(test)]
mod tests;

use std::{collections::HashSet, fmt, str::FromStr};

use chrono::{DateTime, Utc};

use self::{
    error::Fault,
    field::{Predicate, Test},
    grammar::Clause,
    operator::{Operator, Relation},
    values::Pattern,
};
pub(crate) use self::{
    error::InvalidFilter,
    field::FieldPath,
    operator::CHARS as OPERATOR_CHARS,
    order::{FieldOrder, SortKey, compare_values},
};
use crate::{
    board::Detail,
    job::{Entry, FieldSource, JobField, State, octavia},
};

/// Parsing compiles everything, so that matching a whole listing is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    text: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone)]
struct Condition {
    test: Test,
    is_negated: bool,
    /// Also matches Octavia jobs with these flows, whose details lack the resource.
    flows: HashSet<String>,
}

impl Filter {
    /// A missing or unknown value fails every comparison, and so matches every negated one.
    pub(crate) fn matches(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        let mut conditions = self.conditions.iter();
        conditions.all(|it| it.holds(entry, now))
    }

    /// Parses the filter of a command that acts on its jobs: a bare word would select by accident.
    ///
    /// The error names the commands that search for it.
    pub(crate) fn of_fields(text: &str, searchers: &'static str) -> Result<Self, InvalidFilter> {
        match text.trim() {
            word if is_search(word) => {
                let fault = Fault::Word(word.to_owned(), searchers);
                Err(InvalidFilter::new(word, fault))
            }
            text => text.parse(),
        }
    }

    pub(crate) fn needs_details(&self) -> bool {
        self.conditions
            .iter()
            .any(|it| it.test.source() == FieldSource::Details)
    }

    /// Matches a name, literally or by glob; `none` is an ordinary name here.
    pub(crate) fn by_name(glob: &str) -> Result<Self, InvalidFilter> {
        let pattern = Pattern::new(Relation::Is, glob);
        let pattern = pattern.map_err(|fault| InvalidFilter::new(glob, fault))?;
        Ok(Self::by_field(JobField::Name, glob, pattern))
    }

    pub(crate) fn or_of_flows(mut self, flows: &HashSet<String>) -> Self {
        for condition in &mut self.conditions {
            condition.flows.extend(flows.iter().cloned());
        }
        self
    }

    pub(crate) fn by_state(state: State) -> Self {
        let state = state.to_string();
        Self::by_field(JobField::State, &state, Pattern::Exact(state.clone()))
    }

    fn by_field(field: JobField, value: &str, pattern: Pattern) -> Self {
        let test = Test::new(FieldPath::Named(field), Predicate::Text(pattern));
        Self {
            text: format!("{}={value}", field.name()),
            conditions: vec![Condition::of(test)],
        }
    }
}

impl Condition {
    fn of(test: Test) -> Self {
        Self {
            test,
            is_negated: false,
            flows: HashSet::new(),
        }
    }

    fn holds(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        let flow = || octavia::flow_uuid(&entry.job()?.name);
        let is_known = !self.flows.is_empty() && flow().is_some_and(|it| self.flows.contains(it));
        is_known || self.test.holds(entry, now) != self.is_negated
    }

    fn search(text: &str) -> Result<Self, Fault> {
        let predicate = Predicate::Search(Pattern::caseless(&regex::escape(text))?);
        let field = FieldPath::Named(JobField::Name);
        Ok(Self::of(Test::new(field, predicate)))
    }

    fn compile(part: &Clause<'_>) -> Result<Self, Fault> {
        if part.field.is_empty() {
            let (operator, fields) = (part.operator.to_owned(), field::fields());
            return Err(Fault::NoField { operator, fields });
        }
        let field = FieldPath::named(part.field)?;
        let operator = Operator::named(part.operator)?;
        Ok(Self {
            is_negated: operator.is_negated,
            ..Self::of(field.test(operator, &part.value)?)
        })
    }
}

fn is_search(text: &str) -> bool {
    /// Names and uuids are never longer.
    const MAX_SEARCH_BYTES: usize = 200;

    text.len() <= MAX_SEARCH_BYTES
        && text
            .chars()
            .all(|it| it.is_alphanumeric() || "-_.:/@".contains(it))
        && FieldPath::named(text).is_err()
        && !text.starts_with("details.")
}

impl FromStr for Filter {
    type Err = InvalidFilter;

    fn from_str(text: &str) -> Result<Self, InvalidFilter> {
        let text = text.trim();
        let conditions = match text {
            "" => Err(Fault::Nothing),
            text if is_search(text) => Condition::search(text).map(|search| vec![search]),
            text => grammar::parts(text)
                .and_then(|parts| parts.iter().map(Condition::compile).collect()),
        };
        match conditions {
            Ok(conditions) => Ok(Self {
                text: text.to_owned(),
                conditions,
            }),
            Err(fault) => Err(InvalidFilter::new(text, fault)),
        }
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Filters that must all hold; an empty list matches every entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Filters(Vec<Filter>);

impl Filters {
    pub(crate) fn new(filters: Vec<Filter>) -> Self {
        Self(filters)
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.iter().map(Filter::to_string).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, entry: &Entry, now: DateTime<Utc>) -> bool {
        self.0.iter().all(|filter| filter.matches(entry, now))
    }

    pub(crate) fn detail(&self) -> Detail {
        match self.needs_details() {
            true => Detail::Whole,
            false => Detail::Brief,
        }
    }

    pub(crate) fn needs_details(&self) -> bool {
        self.0.iter().any(Filter::needs_details)
    }

    /// Whether events carry every value that the filters need.
    pub(crate) fn are_answered_by_events(&self) -> bool {
        self.conditions()
            .all(|it| it.test.source() == FieldSource::Event)
    }

    pub(crate) fn change_with_time(&self) -> bool {
        self.conditions().any(|it| it.test.changes_with_time())
    }

    fn conditions(&self) -> impl Iterator<Item = &Condition> {
        self.0.iter().flat_map(|filter| &filter.conditions)
    }
}

impl fmt::Display for Filters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, filter) in self.0.iter().enumerate() {
            let and = if at == 0 { "" } else { " and " };
            write!(f, "{and}{filter}")?;
        }
        Ok(())
    }
}
