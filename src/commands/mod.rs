//! The command line: its grammar and the dispatch to the commands.

mod abandon;
mod apply;
mod bulk;
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
mod drill;
mod dump;
mod explain;
mod extend;
mod flow;
mod guide;
mod help;
mod list;
mod load;
mod man;
mod mend;
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
mod typing;
mod wait;
mod watch;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::{ArgMatches, Args, ColorChoice, FromArgMatches, error::ErrorKind};

pub(crate) use self::{
    completions::complete::answer_shell,
    parts::under_claim::ours,
    typing::{early_format::EarlyFormat, misuse::misuse},
};
use self::{
    guide::{PROGRAM, grammar},
    typing::synonyms,
};

use crate::{
    config::Flags,
    context::Context,
    duration,
    output::{Format, Output, Verbosity},
};

/// Administer job boards: post, list, claim, run and repair jobs
///
/// A board is a shared list of jobs. A poster adds a job, a worker claims it, does the work, and consumes it.
/// Failed jobs are retried and finally go to the trash. --board, JOBBOARD_URL or the configuration selects the
/// board; the default is a file in your home directory.
///
/// JOB is a uuid or its prefix, @SEQUENCE, key:TEXT, unique:KEY, or - for standard input; `show`, `explain`,
/// `owner`, `wait`, `retry`, `restore`, `change` and `trash` also take a name. DURATION is 500ms, 90s,
/// 15m, 1h30m or 2d.
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
    /// The first word is the name of the program.
    pub(crate) fn read(words: &[OsString]) -> (EarlyFormat, Result<Self, clap::Error>) {
        let (early, matches) = read_lean(words);
        let unknown = early.unknown.as_ref();
        if let Some(words) = unknown.and_then(|(at, _)| synonyms::expand(words, at + 1)) {
            return Self::read(&words);
        }
        let matches = match matches {
            // The complete grammar words the error and has the suggestions.
            Err(error) if error.kind() != ErrorKind::DisplayVersion => {
                grammar().try_get_matches_from(words)
            }
            matches => matches,
        };
        let read = matches.and_then(|mut matches| Self::from_arg_matches_mut(&mut matches));
        (early, read)
    }
}

/// Parses with the grammar of the called command only: building all of them takes longer than a post.
fn read_lean(words: &[OsString]) -> (EarlyFormat, Result<ArgMatches, clap::Error>) {
    let program = GlobalArgs::augment_args(clap::Command::new(PROGRAM))
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .subcommand_required(true);
    let arguments = words.iter().skip(1).filter_map(|word| word.to_str());
    let early = EarlyFormat::of(arguments.map(str::to_owned), &program);
    let command = early.command.as_deref().and_then(Command::named);
    let program = program.subcommands(command.map(|grammar| grammar()));
    (early, program.try_get_matches_from(words))
}

/// Options of every command.
///
/// No `Debug`: the board may be a URL with a password.
#[derive(clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Board: a URL such as sqlite:PATH, or a configured name [env: JOBBOARD_URL]
    #[arg(long, global = true, value_name = "URL|NAME")]
    board: Option<String>,

    /// Read only this configuration file [env: JOBBOARD_CONFIG]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Owner name for claims [env: JOBBOARD_WHO] [default: your user and host]
    #[arg(long, global = true, value_name = "NAME")]
    who: Option<String>,

    /// Output format [env: JOBBOARD_FORMAT] [default: table on a terminal, otherwise tsv]
    #[arg(short = 'o', long, global = true, value_enum, value_name = "FORMAT")]
    format: Option<Format>,

    /// Short for --format json
    #[arg(long, global = true, conflicts_with = "format")]
    json: bool,

    /// When to use color
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "WHEN",
        default_value_t,
        hide_default_value = true
    )]
    pub(crate) color: ColorChoice,

    /// Print only errors on standard error
    #[arg(short, long, global = true)]
    quiet: bool,

    /// Also print the board, the owner name and the duration
    #[arg(short, long, global = true, conflicts_with = "quiet")]
    verbose: bool,

    /// Time limit per board operation; connecting takes at most 3s [env: JOBBOARD_OP_TIMEOUT] [default: 5s]
    #[arg(long, global = true, value_name = "DURATION", value_parser = duration::parse)]
    op_timeout: Option<Duration>,

    /// File with the board's password, or - for standard input [env: JOBBOARD_PASSWORD_FILE]
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,

    /// Refuse all changes to the board [env: JOBBOARD_READ_ONLY]
    #[arg(long, global = true)]
    read_only: bool,

    /// Print long help without a pager (or set PAGER=cat)
    #[arg(long = "no-pager", global = true)]
    _no_pager: bool,
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

macro_rules! commands {
    (
        boards { $($Name:ident($module:ident::$Args:ident) $(or $alias:literal)?,)* }
        alone { $($Alone:ident($other:ident::$OtherArgs:ident),)* }
    ) => {
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Command {
            $($(#[command(visible_alias = $alias)])? $Name($module::$Args),)*
            $($Alone($other::$OtherArgs),)*
        }

        impl Command {
            fn named(word: &str) -> Option<fn() -> clap::Command> {
                $(if word == stringify!($module) $(|| word == $alias)? {
                    return Some(|| {
                        let command = clap::Command::new(stringify!($module));
                        $module::$Args::augment_args(command$(.visible_alias($alias))?)
                    });
                })*
                $(if word == stringify!($other) {
                    return Some(|| {
                        $other::$OtherArgs::augment_args(clap::Command::new(stringify!($other)))
                    });
                })*
                None
            }
        }

        pub(crate) fn dispatch_alone(out: &mut Output, command: &Command) -> Option<anyhow::Result<()>> {
            match command {
                $(Command::$Alone(args) => Some($other::run(out, args)),)*
                _ => None,
            }
        }

        pub(crate) async fn dispatch(ctx: &mut Context, command: Command) -> anyhow::Result<()> {
            match command {
                $(Command::$Name(args) => $module::run(ctx, args).await,)*
                $(Command::$Alone(args) => $other::run(&mut ctx.out, &args),)*
            }
        }
    };
}

commands! {
    boards {
        Post(post::PostArgs),
        Run(run::RunArgs),
        List(list::ListArgs) or "ls",
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
        Apply(apply::ApplyArgs),
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
        Mend(mend::MendArgs),
        Selftest(selftest::SelftestArgs),
        Drill(drill::DrillArgs),
        Ping(ping::PingArgs),
        Config(config::ConfigArgs),
    }
    alone {
        Schema(schema::SchemaArgs),
        Completions(completions::CompletionsArgs),
        Man(man::ManArgs),
        Help(help::HelpArgs),
    }
}

impl Command {
    /// Whether a command of the user runs on this terminal.
    pub(crate) fn hands_the_terminal_over(&self) -> bool {
        match self {
            Self::Run(_) => true,
            Self::Claim(args) => args.has_command(),
            _ => false,
        }
    }

    /// Whether it has output in this format.
    pub(crate) fn prints(&self, format: Format) -> bool {
        let is_json = matches!(format, Format::Json | Format::Jsonl);
        match self {
            Self::Dash(_) => !is_json,
            Self::Metrics(args) => !is_json || args.textfile.is_some(),
            Self::Report(args) if args.file.is_some() => !is_json && format != Format::Uuid,
            Self::Report(_)
            | Self::Status(_)
            | Self::Explain(_)
            | Self::Doctor(_)
            | Self::Conductors(_)
            | Self::Ping(_)
            | Self::Config(_) => format != Format::Uuid,
            _ => true,
        }
    }

    /// Whether it runs commands.
    pub(crate) fn executes(&self) -> bool {
        match self {
            Self::Conduct(_) => true,
            Self::Watch(args) => args.has_command(),
            _ => self.hands_the_terminal_over(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, error::Result};

    use super::*;

    #[test]
    fn grammar_is_valid() {
        grammar().debug_assert();
    }

    /// Asserts that both grammars parse a line alike; returns whether they accept it.
    pub(super) fn grammars_agree(whole: &clap::Command, line: &[&str]) -> bool {
        let shown = |matches: Result<ArgMatches>| {
            let cli = matches.and_then(|mut it| Cli::from_arg_matches_mut(&mut it));
            cli.map(|Cli { global, command }| {
                let flags = (&global.board, &global.config, &global.who, global.format());
                let others = (global.color, global.verbosity(), global.read_only);
                let last = (global.op_timeout, &global.password_file);
                format!("{command:?} {flags:?} {others:?} {last:?}")
            })
        };
        let words: Vec<_> = line.iter().map(OsString::from).collect();
        let lean = shown(read_lean(&words).1);
        let whole = shown(whole.clone().try_get_matches_from(line));
        match (lean, whole) {
            (Ok(lean), Ok(whole)) => assert_eq!(lean, whole, "{line:?}"),
            (Err(lean), Err(whole)) => {
                assert_eq!(lean.exit_code(), whole.exit_code(), "{line:?}");
                if lean.kind() == ErrorKind::DisplayVersion {
                    assert_eq!(lean.to_string(), whole.to_string(), "{line:?}");
                }
                return false;
            }
            (lean, whole) => panic!("{line:?}: {lean:?}, but {whole:?}"),
        }
        true
    }

    #[test]
    fn lean_grammar_parses_like_the_complete_one() {
        let whole = grammar();
        let program = Cli::command();
        let names = program.get_subcommands().flat_map(|command| {
            let name = command.get_name();
            std::iter::once(name).chain(command.get_all_aliases())
        });
        let mut understood = 0;
        for name in names.chain(["lst", "--", "-x", ""]) {
            for line in [
                &[name] as &[&str],
                &[name, "@1", "key:x"],
                &[name, name, "--json"],
                &["--json", "-q", "--who", "list", name, "x", "--board=post"],
                &["-ojson", name, "--color", "never", "--", "show"],
                &["-qo", "json", "-o", "list", name, "--op-timeout", "9s"],
                &["--board", name, "list", "--read-only", "--op-timeout=9"],
                &[name, "--nonsens", "x", "--dry-run"],
                &[name, "--help"],
                &[name, "--version"],
                &["-V", name],
                &["--board", "--", name],
            ] {
                let line = [&[PROGRAM], line].concat();
                understood += u32::from(grammars_agree(&whole, &line));
            }
        }
        assert!(understood > 100, "{understood}");
        assert!(!grammars_agree(&whole, &[PROGRAM]) && !grammars_agree(&whole, &[]));
    }
}
