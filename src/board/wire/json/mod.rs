//! Postings, locks and conductors in JSON, as TaskFlow stores them in ZooKeeper.
//!
//! Written bytes equal TaskFlow's own. Records may come from any version or any client, so nothing is trusted. Every
//! record that TaskFlow 6.5 reads as a job is one here, except those with half a surrogate pair, which Rust strings
//! cannot hold. Python's reader accepts more than JSON, so the grammar has its own module.

mod nodes;
mod read;
mod token;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    nodes::{Entity, Lock, lock, read_lock},
    read::{decode, edited, weight},
    value::{oversized_integer, value_of},
    write::encode,
};
