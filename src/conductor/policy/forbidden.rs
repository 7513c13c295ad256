//! The reasons why a policy refuses a job, and their remedies.

use std::borrow::Cow;

use thiserror::Error;

use super::decides_what_runs;
use crate::{glob::literal, suggest::Suggestion, trust::Untrusted};

#[derive(Debug, Error)]
pub(crate) enum Forbidden {
    #[error("the job has no command{}", if *has_handlers { ", and no handler matches its name" } else { "" })]
    NoCommand { has_handlers: bool },
    #[error("the job belongs to a TaskFlow flow")]
    Flow,
    #[error("no handler matches its name, and commands are not allowed here")]
    NotHandled,
    #[error("the job's `{field}` must be {wanted}")]
    Malformed {
        field: &'static str,
        wanted: &'static str,
    },
    #[error("{}", match .0.as_str() {
        "" => "the command names no program".to_owned(),
        name => format!("give {} as an absolute path without `..`", excerpt(name)),
    })]
    Relative(String),
    #[error("the program `{}` is not allowed here", excerpt(.0))]
    NotAllowed(String),
    #[error("the program `{}` is not installed here", excerpt(.0))]
    Absent(String),
    #[error("the job sets the variable `{}`, which is not allowed here", excerpt(.0))]
    Variable(String),
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    #[error("{0}")]
    Refused(String),
    #[error(
        "the conductor publishes only some of its handlers, so another one may match this \
             name"
    )]
    Unpublished,
}

/// The longest posted text that a reason repeats, in characters.
const MAX_EXCERPT_CHARS: usize = 200;

pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        None => text.into(),
        Some((end, _)) => format!("{}...", &text[..end]).into(),
    }
}

/// Programs that start any other program, which their arguments name.
const LAUNCHERS: &[&str] = &[
    "ash", "awk", "bash", "busybox", "chroot", "csh", "dash", "doas", "env", "find", "fish",
    "flock", "gawk", "gdb", "ionice", "ksh", "lua", "make", "mawk", "nice", "node", "nohup",
    "nsenter", "parallel", "perl", "php", "pkexec", "python", "ruby", "runuser", "script",
    "setpriv", "setsid", "sh", "ssh", "stdbuf", "strace", "su", "sudo", "taskset", "tclsh", "tcsh",
    "time", "timeout", "unshare", "watch", "xargs", "zsh",
];

/// Returns the warning beside advice to allow a program that starts any other one; otherwise nothing.
pub(crate) fn any_program(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    // Interpreters carry their version, such as python3.11.
    let name = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    match LAUNCHERS.contains(&name) {
        true => " (this allows any program)",
        false => "",
    }
}

impl Forbidden {
    pub(crate) fn is_refusal(&self) -> bool {
        !matches!(self, Self::NoCommand { .. } | Self::Flow)
    }

    /// Returns the remedy on the conductor's machine.
    pub(crate) fn remedy(&self) -> String {
        // A poster chooses the name, so the advice allows nothing else.
        let restart = |option, name: &str| {
            let option = Suggestion::of(option).with([literal(name)]);
            format!("restart the conductor with {option}")
        };
        let fixed = match self {
            Self::NotAllowed(it) if it.starts_with('/') && it.len() <= MAX_EXCERPT_CHARS => {
                return restart("--allow", it) + any_program(it);
            }
            Self::Variable(it) if it.len() <= MAX_EXCERPT_CHARS => {
                return restart("--allow-env", it);
            }
            Self::NotAllowed(_) => "restart the conductor with --allow PROGRAM",
            Self::Variable(_) => "restart the conductor with --allow-env NAME",
            Self::NotHandled => "add a handler, or restart the conductor with --allow PROGRAM",
            Self::Absent(_) => "install the program on the conductor's machine",
            Self::Untrusted(_) | Self::Refused(_) => {
                "correct the program on the conductor's machine; it checks again every ten seconds"
            }
            Self::NoCommand { .. }
            | Self::Flow
            | Self::Malformed { .. }
            | Self::Relative(_)
            | Self::Unpublished => "fix the cause on the conductor's machine",
        };
        fixed.to_owned()
    }

    /// Whether no conductor can ever run the job as posted.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Malformed { .. } | Self::Relative(_) => true,
            Self::Variable(name) => decides_what_runs(name),
            _ => false,
        }
    }
}
