//! Postings and times in MessagePack, as TaskFlow stores them in Redis.
//!
//! Written bytes equal TaskFlow's own. Records may come from any version or any client, so nothing is trusted. Every
//! record that TaskFlow 6.5 reads as a job is one here.

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
    stored::bytes,
    time::read_time,
    write::{encode, sequence, time},
};
