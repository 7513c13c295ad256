//! The verbs on many jobs: select, preview, plan, confirm, act and report.

pub(super) mod act;
pub(super) mod action;
pub(super) mod args;
pub(super) mod bookless;
mod namesakes;
pub(super) mod plan;
pub(super) mod references;
pub(super) mod report;
pub(super) mod select;
pub(super) mod settle;
pub(super) mod shared_trash;
pub(super) mod task;
