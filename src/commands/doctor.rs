//! `jobboard doctor`.

mod fix;
mod plan;
mod report;

use anyhow::Context as _;

use self::report::{Diagnosis, ListedCheck};
use super::parts::{notes, problems, words::Words};
use crate::{
    board::Board,
    context::{Consent, Context},
    diagnosis::examine,
    exit::{CommandError, PARTLY},
    output::{Column, Fit, listed},
    problem::{Code, Group, Problem},
};

/// Diagnose the board and suggest fixes
///
/// Checks the connection, your permissions, the server, its keys, the jobs, the conductors and this machine. Lists
/// every problem, the worst first: how many jobs have it, their common cause, and the command that fixes them all. Jobs
/// that are supposed to wait (paused, backing off) are only counted. If a check fails or is forbidden, the others still
/// run, and the report lists what could not be checked. Nothing is changed without --fix.
///
/// `jobboard help troubleshooting` explains each code.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Check only these groups or codes, for example jobs
    #[arg(long, value_name = "CHECK", value_delimiter = ',', conflicts_with = "skip",
          value_parser = Words { all: ChosenCheck::names, read: ChosenCheck::read })]
    only: Vec<ChosenCheck>,

    /// Skip these groups or codes
    #[arg(long, value_name = "CHECK", value_delimiter = ',',
          value_parser = Words { all: ChosenCheck::names, read: ChosenCheck::read })]
    skip: Vec<ChosenCheck>,

    /// List all checks without running them
    #[arg(long)]
    list: bool,

    /// Show the fixes as a plan, and run each one that you confirm
    ///
    /// The plan begins with the safe fixes and ends with the destructive ones. Each step asks: y runs the fix, n skips
    /// it, a also runs all later safe fixes, s shows the jobs, q quits. --yes runs the safe fixes
    /// without asking; --yes --only CODE runs the fix for CODE, even if it is destructive. Each step reads its jobs
    /// again, and skips any that changed.
    #[arg(long, conflicts_with = "list")]
    fix: bool,

    /// With --fix: show the plan, and run nothing
    #[arg(long, requires = "fix")]
    dry_run: bool,

    /// With --fix: reason to record on each job; the problem's code is appended
    #[arg(long, value_name = "TEXT", requires = "fix")]
    reason: Option<String>,

    /// Whether to omit the search for stray keys.
    #[arg(skip)]
    omits_strays: bool,

    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChosenCheck {
    Group(Group),
    Code(Code),
}

impl ChosenCheck {
    fn names() -> Vec<&'static str> {
        let groups = Group::ALL.iter().map(|it| it.name());
        groups.chain(checks().map(Code::name)).collect()
    }

    fn read(text: &str) -> Result<Self, String> {
        let group = text.parse().map(Self::Group);
        let chosen = group.or_else(|_| text.parse().map(Self::Code));
        let known = chosen
            .ok()
            .filter(|it| !matches!(it, Self::Code(code) if !code.is_problem()));
        known.ok_or_else(|| "`jobboard doctor --list` lists groups and codes".to_owned())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Group(group) => group.name(),
            Self::Code(code) => code.name(),
        }
    }

    fn means(self, code: Code) -> bool {
        match self {
            Self::Group(group) => code.group() == group,
            Self::Code(one) => code == one,
        }
    }
}

fn checks() -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(|code| code.is_problem())
}

impl DoctorArgs {
    pub(super) fn of_board() -> Self {
        let groups = [Group::Jobs, Group::Conductors, Group::Keys];
        Self {
            only: groups.map(ChosenCheck::Group).into(),
            omits_strays: true,
            ..Self::default()
        }
    }

    fn wants(&self, code: Code) -> bool {
        let is_named = self.only.is_empty() || self.only.iter().any(|it| it.means(code));
        is_named && !self.skip.iter().any(|it| it.means(code))
    }

    fn groups(&self) -> Vec<Group> {
        let is_wanted = |group: &Group| checks().any(|it| it.group() == *group && self.wants(it));
        Group::ALL.iter().copied().filter(is_wanted).collect()
    }
}

pub(crate) async fn run(ctx: &mut Context, args: DoctorArgs) -> anyhow::Result<()> {
    if args.list {
        return list(ctx, &args);
    }
    let board = ctx.board()?;
    let mut diagnosis = diagnose(ctx, &*board, &args).await?;
    if args.fix && diagnosis.unread.is_none() {
        let Some(fixed) = fix::fix(ctx, &args, &diagnosis.problems).await? else {
            return Ok(());
        };
        match fixed.has_run() {
            true => {
                fixed.summary().iter().for_each(|line| ctx.out.note(line));
                diagnosis = diagnose(ctx, &*board, &args).await?;
            }
            false if fixed.steps.is_empty() => {}
            false => ctx.out.note("nothing was changed"),
        }
        let result = fixed.result();
        diagnosis.fixed = Some(fixed.steps);
        ctx.out.report(&diagnosis)?;
        result?;
    } else {
        ctx.out.report(&diagnosis)?;
    }
    let has_problems = diagnosis.problems.iter().any(Problem::is_wrong);
    match diagnosis.unread {
        Some(error) if !has_problems => {
            Err(error).with_context(|| ctx.trying("examine", "the jobs"))
        }
        _ if diagnosis.sound => Ok(()),
        _ => Err(CommandError::Command(PARTLY).into()),
    }
}

async fn diagnose(
    ctx: &Context,
    board: &dyn Board,
    args: &DoctorArgs,
) -> anyhow::Result<Diagnosis> {
    let mut groups = args.groups();
    let is_of_octavia = ctx.config.board.value.is_of_octavia();
    groups.retain(|group| *group != Group::Octavia || is_of_octavia);
    let mut checkup = examine(&ctx.config, board, &groups, None, !args.omits_strays).await?;
    if let Some(health) = &checkup.health {
        notes::note_if_unused(ctx, board, health);
    }
    checkup.problems.retain(|it| args.wants(it.code));
    let only = listed(args.only.iter().map(|it| it.name()));
    let mut diagnosis = Diagnosis::new(board.url(), checkup, &groups, only, ctx.program());
    if !args.fix {
        problems::omit_refused(ctx, &mut diagnosis.problems);
    }
    Ok(diagnosis)
}

fn list(ctx: &mut Context, args: &DoctorArgs) -> anyhow::Result<()> {
    let columns = ["group", "code", "severity", "impact"].map(|it| Column::new(it, Fit::Shrinks));
    let wanted = checks().filter(|code| args.wants(*code));
    ctx.out.table(&columns, wanted.map(ListedCheck::of))
}
