//! Postings, locks and conductors in JSON, as TaskFlow keeps them in ZooKeeper.
//!
//! What is written equals TaskFlow's own bytes. What is read may come from any version of it, and
//! from anybody else: nothing is trusted, and whatever TaskFlow 6.5 reads as a job is one. Its
//! reader takes more than JSON has, so that the grammar is a module of its own here.

mod entity;
mod lock;
mod pick;
mod read;
mod text;
mod token;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    entity::Entity,
    lock::{Lock, lock, read_lock},
    read::{decode, edited, weight},
    value::{member, oversized_integer},
    write::encode,
};
