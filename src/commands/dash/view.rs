//! The views of the dashboard.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// The problems that `doctor --only jobs,conductors` lists
    Problems,
    #[default]
    Jobs,
    /// The claims, by owner
    Claims,
    /// The jobs in the trash, by reason
    Trash,
    /// The jobs that have left the board, by outcome, the latest first
    History,
    Conductors,
    Events,
}

impl View {
    pub(super) fn title(self) -> (&'static str, usize) {
        match self {
            Self::Problems => ("Problems", 4),
            Self::Jobs => ("Jobs", 4),
            Self::Claims => ("Claims", 6),
            Self::Trash => ("Trash", 5),
            Self::History => ("History", 4),
            Self::Conductors => ("Conductors", 4),
            Self::Events => ("Events", 6),
        }
    }
}
