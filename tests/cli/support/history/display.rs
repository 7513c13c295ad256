//! Prints a history.

use std::{fmt, time::Duration};

use super::{
    Act, Answer, By, How, Sight, What, Wrong,
    job::{Free, Job},
};

/// The number of acts printed on either side of the inconsistency.
const NEARBY_ACTS: usize = 6;

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            job, before, next, ..
        } = self;
        writeln!(f, "{job}: no order of its acts is consistent")?;
        let left_out = before.len().saturating_sub(NEARBY_ACTS);
        if left_out > 0 {
            writeln!(f, "  ... {left_out} acts that can be true")?;
        }
        for act in &before[left_out..] {
            writeln!(f, "  {act}")?;
        }
        let (state, since) = &self.state;
        writeln!(
            f,
            "  so it is {state} from {} on, and then none of these can be next:",
            Time(*since)
        )?;
        for act in next.iter().take(NEARBY_ACTS) {
            writeln!(f, "  {act}")?;
        }
        match next.len().saturating_sub(NEARBY_ACTS) {
            0 => Ok(()),
            more => writeln!(f, "  ... or one of {more} others"),
        }
    }
}

/// A time since the start of the history.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.3}s", self.0.as_secs_f64()))
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begun = Time(self.begun);
        match self.answer {
            Answer::Unknown => write!(f, "{begun:>9} ->         ? ")?,
            _ => write!(f, "{begun:>9} -> {:>9} ", Time(self.ended))?,
        }
        write!(f, "{} {}: {}", self.who, self.what, self.answer)
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Post => f.write_str("posts it"),
            Self::Claim { owner, fence, term } => {
                write!(f, "claims it as {owner}")?;
                if let Some(term) = term {
                    write!(f, " for {term:?}")?;
                }
                fence.map_or(Ok(()), |fence| write!(f, ", fence {fence}"))
            }
            Self::Extend { owner, term } => write!(f, "extends the claim of {owner} to {term:?}"),
            Self::End(by, how) => {
                let verb = match how {
                    How::Abandon => "abandons",
                    How::Consume => "consumes",
                    How::Trash => "trashes",
                    How::Any => "ends",
                };
                match by {
                    By::Name(owner) => write!(f, "{verb} it as {owner}"),
                    By::Claim(fence) => write!(f, "{verb} it by the claim with fence {fence}"),
                    By::Force => write!(f, "{verb} it by force"),
                }
            }
            Self::Restore => f.write_str("restores it"),
            Self::Retry => f.write_str("retries it"),
            Self::Purge => f.write_str("purges it"),
            Self::Runs(fence) => write!(f, "runs it under the claim with fence {fence}"),
            Self::Seen(sight) => f.write_str(match sight {
                Sight::Gone => "sees that it is not on the board",
                Sight::OnBoard => "sees it on the board",
                Sight::Held(owner) => return write!(f, "sees that {owner} owns it"),
                Sight::InTrash => "sees it in the trash",
                Sight::NotInTrash => "sees that it is not in the trash",
            }),
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Done => "done",
            Self::NoSuchJob => "the job does not exist",
            Self::Exists => "it is there already",
            Self::Claimed(None) => "somebody has it",
            Self::Claimed(Some(owner)) => return write!(f, "{owner} has it"),
            Self::NotTheirs => "it is not theirs",
            Self::Unknown => "nobody knows",
        })
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.on_board {
            None if self.is_in_trash => return f.write_str("in the trash"),
            None => return f.write_str("not on the board"),
            Some(Free::Yes) => f.write_str("free")?,
            Some(Free::No(holding)) => {
                write!(f, "claimed by {}", holding.owner)?;
                if let Some(fence) = holding.fence {
                    write!(f, " with fence {fence}")?;
                }
                match holding.lapses {
                    Some(lapses) => write!(f, ", until {} at least,", Time(lapses))?,
                    None => f.write_str(" without end")?,
                }
            }
        }
        match self.is_in_trash {
            true => f.write_str(" (another one of its uuid is in the trash)"),
            false => Ok(()),
        }
    }
}
