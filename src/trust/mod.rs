//! Checks of files that we trust with commands or passwords.

mod ownership;
mod way;

pub(crate) use self::{
    ownership::{Trust, Untrusted, check, is_absent, kind, unseen},
    way::{Others, Way, require_ours},
};
