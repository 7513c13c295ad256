//! Why jobs do not run: everything is read once, each job is judged by one function, and every command shows views of
//! the same counts and problems.

mod causes;
mod checkup;
mod explain;
mod figures;
mod fixes;
mod holder;
mod judge;
mod octavia;
mod problems;
mod runner;
mod sentence;
mod signature;
mod snapshot;
mod survey;
#[cfg(test)]
mod tests;

pub(crate) use self::{
    causes::{Cause, CauseSubject, ProblemSelector, count},
    checkup::{Checkup, examine, read_snapshot},
    explain::{ExplainedJob, Explanation},
    figures::{ByName, ByOwner, Figures, OutcomeCounts, Standing, age},
    holder::{
        Death, Holder, Recheck, SKEW, has_mover_ended, is_copy_of_move, is_left_by_move,
        is_move_over, is_of_broken_move, process_of,
    },
    judge::Judged,
    octavia::{Asked, BalancerReport, JudgedBalancer, OctaviaReader, Verdict, Workers},
    runner::{absence, has_died, is_silent},
    signature::{FailureGroup, Sample, Signatures, signature},
    snapshot::{Snapshot, apart, or_gap},
    survey::{BOARD, Survey, Surveyor, TRASH},
};
