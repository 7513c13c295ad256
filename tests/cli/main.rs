//! The command line, as its users meet it: each test runs the program on a board of its own.
//!
//! A file per subcommand shows that it is wired; the others are about what all commands share.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "this is a test from end to end, also where it is no #[test] function"
)]

pub(crate) mod support;

mod abandon;
mod apply;
mod change;
mod check;
mod claim;
mod completions;
mod conduct;
mod conductors;
mod config;
mod consume;
mod copy;
mod dash;
mod doctor;
mod dump;
mod extend;
mod hold;
mod list;
mod man;
mod metrics;
mod octavia;
mod owner;
mod pause;
mod ping;
mod post;
mod progress;
mod purge;
mod release;
mod report;
mod restore;
mod retry;
mod run;
mod schema;
mod selftest;
mod show;
mod status;
mod suggested;
mod trash;
mod typed;
mod wait;
mod watch;

mod board;
mod denied;
mod errors;
mod events;
mod explain;
mod faults;
mod guesses;
mod help;
mod hostile;
mod input;
mod interop;
mod limits;
mod lines;
mod loops;
mod malformed;
mod mending;
mod names;
mod night;
mod output;
mod packages;
mod past;
mod precedence;
mod readme;
mod redis;
mod references;
mod sharing;
mod strangers;
mod terminal;
mod zookeeper;
