//! The command line: its grammar, and which file carries out which command.

mod abandon;
mod change;
mod check;
mod claim;
mod completions;
mod conduct;
mod conductors;
mod config;
mod consume;
mod copy;
mod dash;
mod doctor;
mod dump;
mod explain;
mod extend;
mod flow;
mod help;
mod list;
mod load;
mod man;
mod metrics;
mod owner;
mod parts;
mod pause;
mod ping;
mod post;
mod purge;
mod report;
mod restore;
mod resume;
mod retry;
mod run;
mod schema;
mod selftest;
mod show;
mod status;
mod trash;
mod wait;
mod watch;

use std::{path::PathBuf, time::Duration};

use clap::FromArgMatches;

use self::help::guide::grammar;
pub(crate) use self::{
    completions::complete::answer_shell,
    parts::{early_format::EarlyFormat, misuse::misuse, under_claim::ours},
};

use crate::{
    config::Flags,
    context::Context,
    duration,
    output::{ColorChoice, Format, Output, Verbosity},
};

/// Administer job boards: post, list, claim and finish jobs, run commands for them
///
/// A board is a list of work that several share: somebody posts a job, somebody claims it, performs it,
/// and consumes it. What does not end well is tried again, and ends up in the trash. The board is chosen
/// by --board, JOBBOARD_URL or the configuration; without any it is a file of your own.
///
/// JOB is a uuid or the beginning of one, @SEQUENCE, key:TEXT (as `list --json` has it), unique:KEY (what
/// it was posted under), or - for such on standard input. DURATION is 500ms, 90s, 15m, 1h30m or 2d.
#[derive(clap::Parser)]
#[command(
    name = "jobboard",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches_mut(&mut grammar().try_get_matches()?)
    }
}

/// What every command understands.
///
/// It has no `Debug`: the board may be a URL with a password.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The board: a URL such as sqlite:PATH, or a name from the configuration (or JOBBOARD_URL)
    #[arg(long, global = true, value_name = "URL|NAME")]
    board: Option<String>,

    /// Read this configuration file and no other (or JOBBOARD_CONFIG)
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The name under which jobs are claimed (or JOBBOARD_WHO; otherwise user@host)
    #[arg(long, global = true, value_name = "NAME")]
    who: Option<String>,

    /// The form of the output (or JOBBOARD_FORMAT); a table on a terminal, tsv elsewhere
    #[arg(short = 'o', long, global = true, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// The same as --format json
    #[arg(long, global = true, conflicts_with = "format")]
    json: bool,

    /// When to use colour
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true
    )]
    pub(crate) color: ColorChoice,

    /// Say nothing on stderr but errors
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Also say which board is used, as whom, and how long it took
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,

    /// How long one operation of the board may take, and connecting at most 3s of it (or JOBBOARD_OP_TIMEOUT; otherwise 5s)
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    op_timeout: Option<Duration>,

    /// Read the board's password from this file, or from standard input: - (or JOBBOARD_PASSWORD_FILE)
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Refuse whatever would change the board (or JOBBOARD_READ_ONLY)
    #[arg(long, global = true)]
    read_only: bool,
}

impl GlobalArgs {
    pub(crate) fn format(&self) -> Option<Format> {
        if self.json {
            Some(Format::Json)
        } else {
            self.format
        }
    }

    pub(crate) fn verbosity(&self) -> Verbosity {
        match (self.quiet, self.verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        }
    }

    pub(crate) fn flags(&self) -> Flags {
        Flags {
            board: self.board.clone(),
            config: self.config.clone(),
            who: self.who.clone(),
            format: self.format(),
            read_only: self.read_only,
            password_file: self.password_file.clone(),
            op_timeout: self.op_timeout,
            is_second: false,
        }
    }
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    Post(post::PostArgs),
    Run(run::RunArgs),
    #[command(visible_alias = "ls")]
    List(list::ListArgs),
    Show(show::ShowArgs),
    Explain(explain::ExplainArgs),
    Flow(flow::FlowArgs),
    Owner(owner::OwnerArgs),
    Claim(claim::ClaimArgs),
    Extend(extend::ExtendArgs),
    Abandon(abandon::AbandonArgs),
    Consume(consume::ConsumeArgs),
    Trash(trash::TrashArgs),
    Restore(restore::RestoreArgs),
    Retry(retry::RetryArgs),
    Change(change::ChangeArgs),
    Purge(purge::PurgeArgs),
    Pause(pause::PauseArgs),
    Resume(resume::ResumeArgs),
    Wait(wait::WaitArgs),
    Watch(watch::WatchArgs),
    Conduct(conduct::ConductArgs),
    Conductors(conductors::ConductorsArgs),
    Dump(dump::DumpArgs),
    Load(load::LoadArgs),
    Copy(copy::CopyArgs),
    Status(status::StatusArgs),
    Dash(dash::DashArgs),
    Report(report::ReportArgs),
    Check(check::CheckArgs),
    Metrics(metrics::MetricsArgs),
    Doctor(doctor::DoctorArgs),
    Selftest(selftest::SelftestArgs),
    Ping(ping::PingArgs),
    Config(config::ConfigArgs),
    Schema(schema::SchemaArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
    Help(help::HelpArgs),
}

impl Command {
    /// Whether it runs another program on this terminal.
    pub(crate) fn hands_the_terminal_over(&self) -> bool {
        match self {
            Self::Run(_) => true,
            Self::Claim(args) => args.has_command(),
            _ => false,
        }
    }

    pub(crate) fn executes(&self) -> bool {
        match self {
            Self::Conduct(_) => true,
            Self::Watch(args) => args.has_command(),
            _ => self.hands_the_terminal_over(),
        }
    }
}

/// Carries out a command that is about no board; `None` for those that are.
pub(crate) fn dispatch_alone(out: &mut Output, command: &Command) -> Option<anyhow::Result<()>> {
    match command {
        Command::Completions(args) => Some(completions::run(out, args)),
        Command::Schema(args) => Some(schema::run(out, args)),
        Command::Man(args) => Some(man::run(out, args)),
        Command::Help(args) => Some(help::run(out, args)),
        _ => None,
    }
}

pub(crate) async fn dispatch(ctx: &mut Context, command: Command) -> anyhow::Result<()> {
    match command {
        Command::Post(args) => post::run(ctx, args).await,
        Command::Run(args) => run::run(ctx, args).await,
        Command::List(args) => list::run(ctx, args).await,
        Command::Show(args) => show::run(ctx, args).await,
        Command::Explain(args) => explain::run(ctx, args).await,
        Command::Flow(args) => flow::run(ctx, args).await,
        Command::Owner(args) => owner::run(ctx, args).await,
        Command::Claim(args) => claim::run(ctx, args).await,
        Command::Extend(args) => extend::run(ctx, args).await,
        Command::Abandon(args) => abandon::run(ctx, args).await,
        Command::Consume(args) => consume::run(ctx, args).await,
        Command::Trash(args) => trash::run(ctx, args).await,
        Command::Restore(args) => restore::run(ctx, args).await,
        Command::Retry(args) => retry::run(ctx, args).await,
        Command::Change(args) => change::run(ctx, args).await,
        Command::Purge(args) => purge::run(ctx, args).await,
        Command::Pause(args) => pause::run(ctx, args).await,
        Command::Resume(args) => resume::run(ctx, args).await,
        Command::Wait(args) => wait::run(ctx, args).await,
        Command::Watch(args) => watch::run(ctx, args).await,
        Command::Conduct(args) => conduct::run(ctx, args).await,
        Command::Conductors(args) => conductors::run(ctx, args).await,
        Command::Dump(args) => dump::run(ctx, args).await,
        Command::Load(args) => load::run(ctx, args).await,
        Command::Copy(args) => copy::run(ctx, args).await,
        Command::Status(args) => status::run(ctx, args).await,
        Command::Dash(args) => dash::run(ctx, args).await,
        Command::Report(args) => report::run(ctx, args).await,
        Command::Check(args) => check::run(ctx, args).await,
        Command::Metrics(args) => metrics::run(ctx, args).await,
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Selftest(args) => selftest::run(ctx, args).await,
        Command::Ping(args) => ping::run(ctx, args).await,
        Command::Config(args) => config::run(ctx, args),
        Command::Schema(args) => schema::run(&mut ctx.out, &args),
        Command::Completions(args) => completions::run(&mut ctx.out, &args),
        Command::Man(args) => man::run(&mut ctx.out, &args),
        Command::Help(args) => help::run(&mut ctx.out, &args),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        grammar().debug_assert();
    }
}
