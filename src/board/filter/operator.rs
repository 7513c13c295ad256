//! The operators of a filter, and what they ask of a value.

use std::{
    borrow::Borrow,
    cmp::Ordering::{self, Equal, Greater, Less},
};

use super::error::Fault;

/// The characters that operators are made of.
pub(crate) const CHARS: [char; 5] = ['=', '!', '~', '<', '>'];

/// All operators; the negated ones ask for the exact opposite of those before them.
const OPERATORS: [Operator; 8] = [
    Operator::new("=", Relation::Is),
    Operator::not("!=", Relation::Is),
    Operator::new("~", Relation::Like),
    Operator::not("!~", Relation::Like),
    Operator::new("<", Relation::Order(Order(&[Less]))),
    Operator::new("<=", Relation::Order(Order(&[Less, Equal]))),
    Operator::new(">", Relation::Order(Order(&[Greater]))),
    Operator::new(">=", Relation::Order(Order(&[Greater, Equal]))),
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    pub(super) name: &'static str,
    pub(super) relation: Relation,
    /// Whether the relation must not hold.
    pub(super) is_negated: bool,
}

/// How a value is to relate to the one in the expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Relation {
    /// Be the same; a text may be given by a glob.
    Is,
    /// Contain what a regular expression describes.
    Like,
    /// Come before it, or behind it, or be the same.
    Order(Order),
}

impl Operator {
    const fn new(name: &'static str, relation: Relation) -> Self {
        Self {
            name,
            relation,
            is_negated: false,
        }
    }

    const fn not(name: &'static str, relation: Relation) -> Self {
        Self {
            name,
            relation,
            is_negated: true,
        }
    }

    /// Finds an operator by the characters it is made of.
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
    /// Returns the outcomes of a comparison that satisfy it, if it is about comparing.
    pub(super) fn order(self) -> Option<Order> {
        match self {
            Self::Is => Some(Order(&[Equal])),
            Self::Like => None,
            Self::Order(order) => Some(order),
        }
    }

    /// Like [`Self::order`], but to be exactly the same does not count.
    pub(super) fn strict_order(self) -> Option<Order> {
        match self {
            Self::Is | Self::Like => None,
            Self::Order(order) => Some(order),
        }
    }
}

pub(super) fn names() -> String {
    OPERATORS.map(|operator| operator.name).join(" ")
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Order(&'static [Ordering]);

#[derive(Debug, Clone)]
pub(super) struct Comparison<T> {
    order: Order,
    operand: T,
}

impl<T> Comparison<T> {
    pub(super) fn new(order: Order, operand: T) -> Self {
        Self { order, operand }
    }

    /// Whether a value compares as it should; one that cannot be compared does not.
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
