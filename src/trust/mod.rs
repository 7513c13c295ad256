//! Files that are trusted with commands or passwords: who else could change them, or lead us to others.

mod ownership;
mod way;

pub(crate) use self::{
    ownership::{Trust, Untrusted, check, is_absent, kind, unseen},
    way::{Others, Way},
};
