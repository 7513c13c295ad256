//! `jobboard` administers job boards.
//!
//! An invocation flows one way: `commands` turns the command line into requests; `conductor`
//! performs jobs as commands; `board` keeps the jobs, in one of its backends; `job` is the model.
//! `output` shows results to people and programs, `exit` turns the end into words and a code.

mod board;
mod commands;
mod conductor;
mod config;
mod context;
mod duration;
mod exit;
mod job;
mod output;
mod ready;
mod secret;

use std::{path::Path, process::ExitCode, time::Instant};

use anyhow::{Context as _, bail};
use clap::Parser;
use nix::sys::prctl::set_dumpable;
use rustix::process::{Resource, getrlimit};

use crate::{
    commands::{Cli, Glimpse, answer_shell, dispatch, dispatch_alone},
    conductor::{
        front::{self, Role},
        guard, init, leash,
    },
    config::{Config, Environment},
    context::Context,
    exit::CommandError,
    output::{Format, Output, Style},
};

#[cfg(not(target_os = "linux"))]
compile_error!("jobboard runs on Linux only: it relies on pidfd, inotify and the boot clock");

fn main() -> ExitCode {
    // A guard watches over the commands of another process, and does nothing else.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == guard::WORD)
    {
        return match guard::main() {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == leash::WORD)
    {
        // Whoever started us has been told why we are still here.
        let _ = leash::become_command(std::env::args_os().skip(2));
        return ExitCode::FAILURE;
    }
    if answer_shell() {
        return ExitCode::SUCCESS;
    }
    match Cli::try_parse() {
        Ok(cli) => run(cli),
        Err(error) => complain(&error),
    }
}

/// Carries out what the command line says.
fn run(cli: Cli) -> ExitCode {
    let environment = Environment::of_process();
    let flag = cli.global.format();
    // A variable that makes no sense is told of with the rest of the configuration.
    let format = config::format(flag, &environment).map_or(flag, |format| format.value);
    let is_json = matches!(format, Some(Format::Json | Format::Jsonl));
    let style = Style {
        format,
        color: cli.global.color,
        verbosity: cli.global.verbosity(),
        is_plain: environment.wants_plain_text(),
    };
    // Where a script's own variable was to hold a command, nothing would be something else.
    if std::env::args_os().last().is_some_and(|last| last == "--") {
        let mistake = CommandError::usage("there is no command behind --");
        return exit::conclude(Err(mistake.into()), is_json);
    }
    // However wrong the configuration is; and a variable turns no script for a shell into JSON.
    let mut documents = Output::new(Style {
        format: flag,
        ..style
    });
    if let Some(result) = dispatch_alone(&mut documents, &cli.command) {
        return exit::conclude(result, is_json);
    }
    if let Err(error) = surroundings(&cli) {
        return exit::conclude(Err(error), is_json);
    }
    if cli.command.executes() {
        // What we run belongs to our own user, and could read our environment and our memory. The
        // kernel refuses it only where it knows of this at all.
        let _ = set_dumpable(false);
    }
    if cli.command.executes() && init::is_first() {
        return match init::stand() {
            Ok(code) => ExitCode::from(code),
            Err(error) => {
                let error = anyhow::Error::from(error).context("cannot start");
                exit::conclude(Err(error), is_json)
            }
        };
    }
    let terminal = match divide(&cli, &environment) {
        Ok(Role::Done(code)) => return ExitCode::from(code),
        Ok(Role::Holder(terminal)) => Some(terminal),
        Ok(Role::Alone) => None,
        Err(error) => return exit::conclude(Err(error), is_json),
    };
    let result = Config::load(cli.global.flags(), &environment)
        .map_err(|error| CommandError::usage(format!("{error:#}")).into())
        .and_then(|config| {
            let out = Output::new(style);
            perform(Context::new(config, out, environment, terminal), cli)
        });
    exit::conclude(result, is_json)
}

/// Makes sure of what nothing works without, where the library or the kernel would say so darkly.
fn surroundings(cli: &Cli) -> anyhow::Result<()> {
    /// What a command has open while it waits for a board.
    const FILES: u64 = 16;
    if let Some(files) = getrlimit(Resource::Nofile).current.filter(|it| *it < FILES) {
        bail!("no more than {files} files may be open here: allow more with `ulimit -n 1024`");
    }
    if cli.command.executes() && !Path::new("/proc/self/exe").exists() {
        bail!("/proc is missing, where commands are watched: `mount -t proc proc /proc` brings it");
    }
    Ok(())
}

/// Leaves the terminal to a process of its own, if a command is to run on it.
fn divide(cli: &Cli, environment: &Environment) -> anyhow::Result<Role> {
    if !cli.command.hands_the_terminal_over() {
        return Ok(Role::Alone);
    }
    let mark = environment.variable(front::MARK);
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    front::enter(mark.as_deref(), &args).context("cannot prepare the terminal")
}

fn perform(mut ctx: Context, cli: Cli) -> anyhow::Result<()> {
    // One thread: all that is done at once here is waiting.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = runtime.block_on(async {
        let start = Instant::now();
        let result = dispatch(&mut ctx, cli.command).await;
        ctx.close().await;
        ctx.out.detail(format!("took {:.1?}", start.elapsed()));
        result
    });
    // A read of standard input that still waits must not keep us.
    runtime.shutdown_background();
    result
}

/// Answers a command line that is none, or that asks for help.
fn complain(error: &clap::Error) -> ExitCode {
    let arguments = std::env::args_os().skip(1);
    let glimpse = Glimpse::of(arguments.filter_map(|argument| argument.into_string().ok()));
    let environment = Environment::of_process();
    let format = config::format(glimpse.format, &environment);
    let mut out = Output::new(Style {
        format: format.map_or(None, |format| format.value),
        color: glimpse.color,
        is_plain: environment.wants_plain_text(),
        ..Style::default()
    });
    if !error.use_stderr() {
        return exit::conclude(out.help(&error.render()), out.is_json());
    }
    if !out.is_json() {
        out.usage(&error.render());
        return ExitCode::from(exit::USAGE);
    }
    let text = error.render().to_string();
    let text = text.trim_start_matches("error: ").trim_end();
    exit::conclude(Err(CommandError::usage(text).into()), out.is_json())
}
