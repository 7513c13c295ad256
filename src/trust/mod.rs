//! Checks of files that we trust with commands or passwords.

mod checked_path;
mod ownership;

pub(crate) use self::{
    checked_path::{CheckedPath, OtherWriters, require_ours},
    ownership::{Trust, Untrusted, check, is_absent, kind, unreadable},
};
