//! The ZooKeeper board: the same live board that Python TaskFlow is using.
#![expect(dead_code, reason = "for the board")]

mod link;
mod probe;
mod session;
mod tls;
mod trouble;

#[cfg(test)]
mod testing;
