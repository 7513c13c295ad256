//! The operators of a filter.

use std::{
    borrow::Borrow,
    cmp::Ordering::{self, Equal, Greater, Less},
};

use super::error::Fault;

pub(crate) const CHARS: [char; 5] = ['=', '!', '~', '<', '>'];

/// All operators; each negated one follows its opposite.
const OPERATORS: [Operator; 8] = [
    Operator::new("=", Relation::Is),
    Operator::new("!=", Relation::Is),
    Operator::new("~", Relation::Like),
    Operator::new("!~", Relation::Like),
    Operator::new("<", Relation::Order(Orderings(&[Less]))),
    Operator::new("<=", Relation::Order(Orderings(&[Less, Equal]))),
    Operator::new(">", Relation::Order(Orderings(&[Greater]))),
    Operator::new(">=", Relation::Order(Orderings(&[Greater, Equal]))),
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub(super) name: &'static str,
    pub(super) relation: Relation,
    pub(super) is_negated: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Relation {
    /// Equal, or matching a glob.
    Is,
    /// Matching a regular expression.
    Like,
    Order(Orderings),
}

impl Operator {
    const fn new(name: &'static str, relation: Relation) -> Self {
        Self {
            name,
            relation,
            is_negated: name.as_bytes()[0] == b'!',
        }
    }

    pub(super) fn named(name: &str) -> Result<Self, Fault> {
        OPERATORS
            .into_iter()
            .find(|operator| operator.name == name)
            .ok_or_else(|| Fault::UnknownOperator {
                name: name.to_owned(),
                operators: names(),
            })
    }
}

impl Relation {
    pub(super) fn order(self) -> Option<Orderings> {
        match self {
            Self::Is => Some(Orderings(&[Equal])),
            Self::Like => None,
            Self::Order(order) => Some(order),
        }
    }
}

pub(super) fn names() -> String {
    OPERATORS.map(|operator| operator.name).join(" ")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Orderings(&'static [Ordering]);

#[derive(Debug, Clone)]
pub(super) struct Comparison<T> {
    order: Orderings,
    operand: T,
}

impl<T> Comparison<T> {
    pub(super) fn new(order: Orderings, operand: T) -> Self {
        Self { order, operand }
    }

    /// Whether the comparison holds; false for an incomparable value.
    pub(super) fn fits<V>(&self, value: &V) -> bool
    where
        T: Borrow<V>,
        V: PartialOrd + ?Sized,
    {
        value
            .partial_cmp(self.operand.borrow())
            .is_some_and(|ordering| self.order.0.contains(&ordering))
    }
}
