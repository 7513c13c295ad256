//! Postings and times in MessagePack, as TaskFlow keeps them in Redis.
//!
//! What is written equals TaskFlow's own bytes. What is read may come from any version of it, and
//! from anybody else: nothing is trusted, and whatever TaskFlow 6.5 reads as a job is one.

mod extension;
mod read;
mod stored;
mod time;
mod token;
mod value;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use self::{
    read::{around_number, decode, edited, rank},
    time::read_time,
    write::{encode, message, sequence, time},
};
