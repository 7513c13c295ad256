//! The command line, as users meet it: each test runs the program on its own board.
//!
//! A file per subcommand shows that it is wired; the others test shared behaviour.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "this is a test from end to end, also where it is no #[test] function"
)]

#[macro_use]
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
mod drill;
mod dump;
mod extend;
mod hold;
mod json_types;
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
mod suggested_commands;
mod trash;
mod wait;
mod watch;

mod board;
mod bulk_post_errors;
mod concurrency;
mod errors;
mod events;
mod explain;
mod faults;
mod file_names;
mod file_permissions;
mod guessed_commands;
mod help;
mod history;
mod hostile;
mod input;
mod interop;
mod malformed;
mod night;
mod output;
mod packages;
mod precedence;
mod readme;
mod redis;
mod references;
mod resource_limits;
mod shell_loops;
mod terminal;
mod untrusted_text;
mod zookeeper;
