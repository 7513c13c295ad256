//! Typed command lines that do not parse: their meaning, and a better line.

pub(super) mod corrected;
pub(super) mod early_format;
pub(super) mod misuse;
pub(super) mod synonyms;
