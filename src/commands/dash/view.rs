//! The views of the dashboard.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    #[default]
    Jobs,
    /// The claims, by owner
    Claims,
    /// The failures, by what they have in common
    Failures,
    Trash,
    /// The jobs that have left the board, the latest first
    History,
    Conductors,
    Events,
}

impl View {
    pub(super) fn title(self) -> (&'static str, usize) {
        match self {
            Self::Jobs => ("Jobs", 4),
            Self::Claims => ("Claims", 6),
            Self::Failures => ("Failures", 4),
            Self::Trash => ("Trash", 5),
            Self::History => ("History", 4),
            Self::Conductors => ("Conductors", 4),
            Self::Events => ("Events", 6),
        }
    }
}
