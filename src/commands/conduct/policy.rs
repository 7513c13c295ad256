//! Builds the execution policy from the command line.

use std::{ffi::OsString, path::PathBuf};

use crate::{
    conductor::policy::{
        Directory, ExecutionPolicy, Glob, Handlers, InvalidPattern, ProgramCache, absolute_search,
        check_board,
    },
    config::{Config, Environment, MayRun, Sourced},
    exit::CommandError,
    process::command::find,
    trust::Untrusted,
};

/// The execution policy.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Execution policy")]
pub(super) struct PolicyArgs {
    /// Run each job with the program in DIR that has the job's name; it gets the details on standard input
    #[arg(long, value_name = "DIR")]
    handlers: Option<PathBuf>,

    /// Allow jobs to run the programs whose absolute paths match PATTERN; * matches no slash
    #[arg(long, value_name = "PATTERN", value_parser = Glob::of_path)]
    allow: Vec<Glob>,

    /// Allow jobs to run any program. Anyone who can post can then run any command
    #[arg(long, conflicts_with = "allow")]
    allow_any: bool,

    /// Allow jobs to set matching variables, except LD_*, PATH and JOBBOARD_*, which are always refused
    #[arg(long, value_name = "GLOB")]
    allow_env: Vec<Glob>,

    /// Run this command for each job instead of the job's own; it gets the details on standard input
    ///
    /// Environment variables describe the job (`help conducting`). TaskFlow flows are skipped. On a network board,
    /// --filter is required.
    #[arg(last = true, value_name = "COMMAND", conflicts_with_all = ["handlers", "allow", "allow_any", "allow_env"])]
    command: Vec<OsString>,
}

impl PolicyArgs {
    pub(super) fn policy(
        &self,
        config: &Config,
        env: &Environment,
    ) -> anyhow::Result<ExecutionPolicy> {
        let Some(may_run) = config.may_run.as_ref().filter(|_| !self.allows_any()) else {
            return self.decide(config, env);
        };
        let mut configured = Self::of(may_run)?;
        // Variables alone lift no limit on programs.
        if !self.allow_env.is_empty() {
            configured.allow_env.clone_from(&self.allow_env);
        }
        configured.decide(config, env)
    }

    fn allows_any(&self) -> bool {
        let has_commands = !self.allow.is_empty() || !self.command.is_empty();
        self.handlers.is_some() || self.allow_any || has_commands
    }

    /// Whether --filter is required, so that COMMAND does not run for the jobs of other clients.
    pub(super) fn needs_filter(&self, config: &Config) -> bool {
        !self.command.is_empty() && config.board.value.url.is_network()
    }

    fn of(Sourced { value, source }: &Sourced<MayRun>) -> anyhow::Result<Self> {
        let wrong = |error| {
            let message = format!("{source}: `conduct`: {error}");
            anyhow::Error::from(CommandError::usage(message))
        };
        let MayRun {
            handlers,
            allow,
            allow_any,
            allow_env,
        } = value;
        if *allow_any && !allow.is_empty() {
            return Err(wrong("use either `allow` or `allow_any`".to_owned()));
        }
        let paths = allow.iter().map(|text| Glob::of_path(text));
        let paths: Result<_, _> = paths.collect();
        Ok(Self {
            handlers: handlers.clone(),
            allow: paths.map_err(|error: InvalidPattern| wrong(error.to_string()))?,
            allow_any: *allow_any,
            allow_env: allow_env.iter().map(|it| Glob::from(&**it)).collect(),
            command: Vec::new(),
        })
    }

    fn decide(&self, config: &Config, env: &Environment) -> anyhow::Result<ExecutionPolicy> {
        let file = config.board.value.url.file();
        if let Some(path) = file {
            check_board(path).map_err(|error| refusal(&error, OUR_BOARD))?;
        }
        let is_ours_alone = file.is_some() && self.command.is_empty();
        if !is_ours_alone && !self.allows_any() {
            let message = "without an execution policy, anyone who can post to this board could \
                run any program here";
            let hint = "set an execution policy: --handlers DIR, --allow PATTERN, --allow-any or -- COMMAND";
            return Err(CommandError::refused(message).hint(hint).into());
        }
        let search = absolute_search(env.variable("PATH").as_deref());
        let runs_any = self.allow.is_empty() && (self.allow_any || is_ours_alone);
        let sets_any = self.allow_env.is_empty() && is_ours_alone;
        Ok(ExecutionPolicy {
            programs: (!runs_any).then(|| self.allow.clone()),
            variables: (!sets_any).then(|| self.allow_env.clone()),
            handlers: self.handlers(&search)?,
            search,
            found: Some(ProgramCache::default()),
        })
    }

    fn handlers(&self, search: &[PathBuf]) -> anyhow::Result<Option<Handlers>> {
        if let Some(program) = self.command.first() {
            let found = find(program, search);
            return Ok(Some(Handlers::ForEach {
                program: found.map_err(|error| CommandError::usage(error.to_string()))?,
                argv: self.command.clone(),
                problem: None,
            }));
        }
        let Some(directory) = &self.handlers else {
            return Ok(None);
        };
        // A missing directory is probably a typing error.
        if !directory.is_dir() && directory.try_exists().is_ok() {
            let message = format!("--handlers: no directory {}", directory.display());
            return Err(CommandError::usage(message).into());
        }
        let handlers = Directory::new(directory).map_err(|error| refusal(&error, OUR_HANDLERS))?;
        if !self.allow_any && handlers.is_program_directory(search) {
            let message = format!(
                "every program in {} would be a handler that every poster can run",
                directory.display()
            );
            let hint = "use a directory that contains only handlers, or --allow-any to allow every program";
            return Err(CommandError::refused(message).hint(hint).into());
        }
        Ok(Some(Handlers::Directory(handlers)))
    }
}

const OUR_BOARD: &str = "the board and its directory must belong to the conductor's user, every \
    parent directory to that user or root, and no other user may have write access";
const OUR_HANDLERS: &str = "the directory and its parents must belong to the conductor's user or to \
    root, and no other user may have write access";

fn refusal(error: &Untrusted, hint: &'static str) -> anyhow::Error {
    let mut message = format!("refusing to run commands from jobs: {error}");
    if let Some(source) = std::error::Error::source(error) {
        message = format!("{message}: {source}");
    }
    CommandError::refused(message).hint(hint).into()
}
