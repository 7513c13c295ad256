//! `jobboard` administers job boards.
//!
//! An invocation flows one way: `commands` turns the command line into requests; `conductor` runs jobs as commands;
//! `board` stores the jobs, in one of its backends; `job` is the data model. `output` prints results for people and
//! programs, and `exit` turns errors into messages and exit codes.

/// Whether a test plants this fault here.
#[cfg(test)]
macro_rules! planted {
    ($fault:ident) => {
        crate::process::simulation::has(crate::process::simulation::Planted::$fault)
    };
}
#[cfg(not(test))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

mod atomic_file;
mod backoff;
mod board;
mod bounded_read;
mod commands;
mod conductor;
mod config;
mod context;
mod diagnosis;
mod duration;
mod exit;
mod glob;
mod job;
mod lease;
mod logbook;
mod names;
mod optional;
mod output;
mod printable;
mod problem;
mod process;
mod retry;
mod secret;
mod size;
mod suggest;
#[cfg(test)]
mod tests;
mod trace;
mod transfer;
mod trust;
#[cfg(test)]
mod untrusted;
mod watched_fd;
mod worker;

use std::{ffi::OsString, path::Path, process::ExitCode, time::Instant};

use anyhow::{Context as _, bail};
use nix::sys::prctl::set_dumpable;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    commands::{Cli, EarlyFormat, answer_shell, dispatch, dispatch_alone, misuse, ours},
    config::{Config, Environment, Flags},
    context::Context,
    exit::{CommandError, ErrorPrinter},
    output::{Format, Output, Style},
    process::{
        forwarder, guard,
        job_control::{self, Role},
        signal::{Signals, keep_ended_children},
    },
};

#[cfg(not(target_os = "linux"))]
compile_error!("jobboard runs on Linux only: it relies on pidfd, inotify and the boot clock");

pub fn main() -> ExitCode {
    // A guard watches the commands of another process, and does nothing else.
    let word = std::env::args_os().nth(1).unwrap_or_default();
    if word == guard::WORD {
        return ExitCode::from(u8::from(guard::main().is_err()));
    }
    if answer_shell() {
        return ExitCode::SUCCESS;
    }
    let words: Vec<_> = std::env::args_os().collect();
    let (early, cli) = Cli::read(&words);
    match cli {
        Ok(cli) => run(cli, early),
        Err(error) => complain(&error, early, &words),
    }
}

fn run(cli: Cli, early: EarlyFormat) -> ExitCode {
    let environment = Environment::of_process();
    let flag = cli.global.format();
    // An invalid variable is reported with the rest of the configuration.
    let format = config::format(flag, &environment).map_or(flag, |format| format.value);
    let style = Style {
        format,
        color: cli.global.color,
        verbosity: cli.global.verbosity(),
        is_plain: environment.wants_plain_text(),
    };
    let printer = ErrorPrinter::new(
        &Output::new(style),
        cli.global.flags().program(),
        early.command.clone(),
    );
    if let Some(mistake) = mistake(&cli, &early) {
        return printer.conclude(Err(mistake.into()));
    }
    // Independent of an invalid configuration; and no variable turns a shell script into JSON.
    let mut documents = Output::new(Style {
        format: flag,
        ..style
    });
    if let Some(result) = dispatch_alone(&mut documents, &cli.command) {
        return printer.conclude(result);
    }
    if let Err(error) = surroundings(&cli) {
        return printer.conclude(Err(match cli.command.hands_the_terminal_over() {
            true => ours(error),
            false => error,
        }));
    }
    if cli.command.executes() {
        // Our commands run as our own user, and could read our environment and memory. A kernel without this setting
        // allows it.
        let _ = set_dumpable(false);
        if forwarder::is_first() {
            let ended = forwarder::run().context("cannot start");
            return ended.map_or_else(|error| printer.conclude(Err(error)), ExitCode::from);
        }
    } else {
        // A core file would contain the password.
        let none = Rlimit {
            current: Some(0),
            ..getrlimit(Resource::Core)
        };
        let _ = setrlimit(Resource::Core, none);
    }
    let terminal = match divide(&cli, &environment) {
        Ok(Role::Done(code)) => return ExitCode::from(code),
        Ok(Role::Worker(terminal)) => Some(terminal),
        Ok(Role::Alone) => None,
        Err(error) => return printer.conclude(Err(error)),
    };
    let flags = cli.global.flags();
    let result = Config::load(flags.clone(), &environment)
        .map_err(|error| CommandError::of_config(&error).into())
        .and_then(|config| {
            // The variable is a default, for commands with output in its format.
            let suits = |it: &Format| flag.is_some() || cli.command.prints(*it);
            let out = Output::new(Style {
                format: format.filter(suits),
                ..style
            });
            let printer = printer.clone();
            let ctx = Context::new(flags, config, out, environment, terminal, printer);
            perform(ctx, cli)
        });
    printer.conclude(result)
}

/// Finds a mistake that the grammar allows.
fn mistake(cli: &Cli, early: &EarlyFormat) -> Option<CommandError> {
    // A trailing `--` comes from a script with an empty variable; running no command would hide that.
    if std::env::args_os().last().is_some_and(|last| last == "--") {
        return Some(CommandError::usage("the command after `--` is missing"));
    }
    let asked = cli.global.format().filter(|it| *it == Format::Uuid)?;
    let name = early.command.as_deref().unwrap_or_default();
    let message = format!("`{name}` has no -o uuid output");
    let hint = "omit -o uuid, or use `jobboard list -o uuid`";
    (!cli.command.prints(asked)).then(|| CommandError::usage(message).hint(hint))
}

/// Checks basic requirements first, where the library's or the kernel's own error would be unclear.
fn surroundings(cli: &Cli) -> anyhow::Result<()> {
    /// The most descriptors that a command has open, without the pipes of its children, and some spare.
    const FILES: u64 = 32;
    if let Some(files) = getrlimit(Resource::Nofile).current.filter(|it| *it < FILES) {
        bail!("this process may open at most {files} files; raise the limit with `ulimit -n 1024`");
    }
    if cli.command.executes() && !Path::new("/proc/self/exe").exists() {
        bail!(
            "/proc is not mounted, so jobboard cannot supervise commands; run `mount -t proc proc /proc`"
        );
    }
    keep_ended_children()?;
    Ok(())
}

fn divide(cli: &Cli, environment: &Environment) -> anyhow::Result<Role> {
    if !cli.command.hands_the_terminal_over() {
        return Ok(Role::Alone);
    }
    let mark = environment.variable(job_control::MARK);
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    job_control::enter(mark.as_deref(), &args).context("cannot prepare the terminal")
}

fn perform(mut ctx: Context, cli: Cli) -> anyhow::Result<()> {
    // One thread: all concurrent work here is waiting.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        Signals::catch_file_limit_signal()?;
        let start = Instant::now();
        let result = dispatch(&mut ctx, cli.command).await;
        ctx.close().await;
        ctx.out.detail(format!("took {:.1?}", start.elapsed()));
        result
    });
    // A pending read of standard input must not delay the exit.
    runtime.shutdown_background();
    result
}

fn complain(error: &clap::Error, early: EarlyFormat, words: &[OsString]) -> ExitCode {
    let environment = Environment::of_process();
    let format = config::format(early.format, &environment);
    let mut out = Output::new(Style {
        format: format.map_or(None, |format| format.value),
        color: early.color,
        is_plain: environment.wants_plain_text(),
        ..Style::default()
    });
    let printer = ErrorPrinter::new(&out, Flags::default().program(), early.command.clone());
    let words = words.iter().map(|it| it.to_string_lossy().into_owned());
    let words: Vec<_> = words.collect();
    if !error.use_stderr() {
        let printed = out.help(&error.render());
        return printer.conclude(printed);
    }
    match misuse(error, &early, &words) {
        Some(misuse) => printer.conclude(Err(misuse.into())),
        // Without arguments, print the full help.
        None => {
            let _ = out.help(&error.render());
            ExitCode::from(exit::USAGE)
        }
    }
}
