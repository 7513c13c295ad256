//! `jobboard conduct`.

mod listener;
mod metrics;
mod policy;
mod sentence;
mod show;

use std::{io, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context as _, ensure};
use rustix::process::Signal;
use serde_json::json;

use self::{
    metrics::{Metrics, MetricsPlace},
    policy::PolicyArgs,
    show::LogFormat,
};
use super::parts::{
    octavia::refuse_to_perform,
    under_claim::{lease, unique_process_name},
    words::of_fields,
};
use crate::{
    atomic_file::{on_file, refuse_foreign_link},
    board::filter::{Filter, Filters},
    conductor::{
        ConductorStatus, Destination, Halted, Reloaded, Settings, SpanFile, Steering,
        StopCondition, TimeLimit, WorkSummary, conduct,
        log::{Note, Reporter},
        not_notified,
    },
    context::{Context, Creation},
    duration,
    exit::{CommandError, PARTLY},
    job::{Conductor, ConductorReport, Owner},
    lease::USUAL_LEASE,
    output::{count_jobs, short},
    process::{
        host_name,
        service_manager::ServiceManager,
        signal::{ENDING, ENDING_TOO, STEERING, Signals},
        terminal::is_controlled,
    },
    retry::RetryPolicy,
    suggest::Suggestion,
    trace,
};

/// Variables that lead to secrets, which no command needs.
const TO_SECRETS: [&str; 2] = ["JOBBOARD_PASSWORD_FILE", "CREDENTIALS_DIRECTORY"];

/// How long the reporter may take to write the last events.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Claim jobs and run their commands until stopped
///
/// A conductor runs each job whose details contain a `command` (an array of strings), and each job that has a
/// handler with the same name. It skips all other jobs. With COMMAND, it runs COMMAND for each job instead.
/// Exit code 0 consumes the job and 75 postpones it. Any other result is a failure: the conductor retries the
/// job with increasing back-off, and trashes it once it reaches its retry limit.
///
/// SIGTERM, SIGINT and SIGQUIT stop the conductor when its jobs are done, or after --grace; a second signal
/// stops it immediately. SIGUSR1 toggles claiming. SIGUSR2 logs the conductor's state and the skipped jobs,
/// with reasons. SIGHUP reloads handlers and policy. If the conductor was started from a terminal, SIGHUP
/// stops it instead, because closing the terminal sends SIGHUP.
///
/// Under systemd (Type=notify), the conductor reports readiness and status.
#[derive(Debug, clap::Args)]
pub(crate) struct ConductArgs {
    /// Number of jobs to run concurrently
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = jobs)]
    jobs: usize,

    #[command(flatten)]
    creation: Creation,

    /// Name to register and claim under [default: host:pid:random]
    #[arg(long)]
    name: Option<String>,

    /// Run only matching jobs
    #[arg(long, value_name = "EXPR", value_parser = of_fields)]
    filter: Vec<Filter>,

    /// Lease duration; the claim is renewed while a job runs [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = lease)]
    lease: Option<Duration>,

    /// Exit when no runnable job remains
    #[arg(long)]
    drain: bool,

    /// Exit after this many jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_jobs: Option<u64>,

    /// Exit after this long without a job; time without the board does not count
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    idle_exit: Option<Duration>,

    /// Timeout for jobs that do not set one
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    job_timeout: Option<Duration>,

    /// Cap on the timeout that a job sets
    #[arg(long, value_name = "DURATION", value_parser = time_limit)]
    job_timeout_max: Option<Duration>,

    #[command(flatten)]
    retry: RetryPolicy,

    /// Where command output goes: prefix, inherit, discard, or a directory
    ///
    /// `prefix` prints the job name before each line. A directory gets one file per attempt. The end of
    /// a failed command's output is also stored with the job, except with `inherit`; with `discard`, only standard
    /// error is stored.
    #[arg(long, value_name = "WHERE", default_value = "prefix", value_parser = output)]
    output: Destination,

    /// Time for running jobs to finish after a stop signal; a second signal ends the wait
    #[arg(long, value_name = "DURATION", value_parser = duration::parse, default_value = "25s")]
    grace: Duration,

    /// Format of the log on standard error
    #[arg(
        long,
        alias = "log-format",
        value_enum,
        value_name = "FORMAT",
        default_value_t
    )]
    log: LogFormat,

    /// Serve or write Prometheus metrics: ADDRESS:PORT, unix:PATH, or FILE.prom
    ///
    /// Serves the metrics of the board and the conductor at /metrics, and the health of the conductor at /healthz.
    /// Board metrics are a few seconds old, or older if reading the board is slow. A FILE that ends in .prom
    /// receives the conductor's own metrics every 30s, and is removed at exit.
    #[arg(long, value_name = "WHERE", value_parser = metrics::place)]
    metrics: Option<MetricsPlace>,

    /// Allow --metrics to listen on addresses that other machines can reach
    #[arg(long, requires = "metrics")]
    metrics_public: bool,

    /// Append each attempt to FILE as one line of OTLP JSON, linked to the job's stored trace
    #[arg(long, value_name = "FILE")]
    otlp_file: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArgs,
}

fn time_limit(text: &str) -> Result<Duration, String> {
    match duration::parse(text).map_err(|error| error.to_string())? {
        Duration::ZERO => Err("a timeout must be longer than 0s".to_owned()),
        limit => Ok(limit),
    }
}

fn jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=10_000) => Ok(jobs),
        _ => Err("use a number from 1 to 10000".to_owned()),
    }
}

fn output(text: &str) -> Result<Destination, String> {
    Ok(match text {
        "prefix" => Destination::Prefix,
        "inherit" => Destination::Inherit,
        "discard" => Destination::Discard,
        directory => {
            let directory = PathBuf::from(directory);
            if !directory.is_dir() {
                let message = "use prefix, inherit, discard or an existing directory";
                return Err(message.to_owned());
            }
            Destination::Directory(directory)
        }
    })
}

pub(crate) async fn run(ctx: &mut Context, args: ConductArgs) -> anyhow::Result<()> {
    refuse_to_perform(ctx, "run jobs")?;
    let (mut reporter, progress) = Reporter::new();
    if ctx.out.is_quiet() {
        reporter.silence();
    }
    let mut settings = settings(ctx, &args, &reporter)?;
    ctx.create_directory(&args.creation);
    let board = ctx.writable_board()?;
    let (mut ending, steering) = signals()?;
    show::start(progress, args.log, &ctx.out).context("cannot start the log")?;
    match ServiceManager::find(|name| ctx.environment.variable(name)) {
        Ok(found) => settings.service_manager = found,
        Err(error) => reporter.report(not_notified(&error)),
    }
    let _metrics = match &args.metrics {
        Some(place) => {
            let metrics = Metrics::new(Arc::clone(&board), &settings);
            Some(metrics::start(place, args.metrics_public, metrics, reporter.clone()).await?)
        }
        None => None,
    };
    let ends_by_itself = args.drain || args.max_jobs.is_some();
    let steering = Steering {
        signals: steering,
        reload: &|| reload(ctx, &args.policy).map_err(|error| format!("{error:#}")),
    };
    let status = Arc::clone(&settings.status);
    let conducted = conduct(board, settings, &mut ending, steering).await;
    let done = status.summary();
    if conducted.is_ok() || done.ran > 0 {
        reporter.report(summary(ctx, &done));
    }
    // The reader of the log may have gone.
    let _ = tokio::time::timeout(LAST_WORDS, reporter.finish()).await;
    conducted.map_err(|halted| trouble(ctx, halted))?;
    if ends_by_itself && done.has_failures {
        return Err(match ctx.out.is_quiet() {
            true => not_all_done(&done),
            false => CommandError::Command(PARTLY).into(),
        });
    }
    Ok(())
}

/// Names the jobs and the reasons, which -q keeps out of the log.
fn not_all_done(done: &WorkSummary) -> anyhow::Error {
    let names = failed_jobs(done);
    let most_skipped = done.skipped.iter().max_by_key(|(_, jobs)| **jobs);
    let reason = most_skipped.map_or("", |(reason, _)| reason.as_str());
    let failed = match done.failed.saturating_sub(names.len() as u64) {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    };
    let counts = [
        (done.failed, format!("failed: {failed}")),
        (done.unsettled, "not settled".to_owned()),
        (done.skipped.values().sum(), format!("skipped: {reason}")),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<_> = counts
        .map(|(count, what)| format!("{} {what}", count_jobs(*count)))
        .collect();
    let job = match &done.failed_jobs[..] {
        [job] => Some(job.uuid.clone()),
        _ => None,
    };
    CommandError::NotAllDone {
        message: counts.join("; "),
        job,
        has_failed: done.failed > 0,
    }
    .into()
}

/// Names the first failed jobs, with uuids because several jobs may have the same name.
fn failed_jobs(done: &WorkSummary) -> Vec<String> {
    let names = done.failed_jobs.iter();
    let names = names.map(|job| format!("{} {}", job.name, short(&job.uuid)));
    names.collect()
}

fn signals() -> io::Result<(Signals, Signals)> {
    let ends = |signal: &Signal| *signal != Signal::HUP || is_controlled();
    let (ending, reload): (Vec<_>, Vec<_>) = ENDING.into_iter().partition(ends);
    let steering = Signals::unless_ignored(STEERING.into_iter().chain(reload))?;
    let ending = Signals::unless_ignored(ending.into_iter().chain(ENDING_TOO))?;
    Ok((ending, steering))
}

fn reload(ctx: &Context, args: &PolicyArgs) -> anyhow::Result<Reloaded> {
    let (config, before) = (ctx.config_by_now()?, ctx.config.entries());
    let (url, ours) = (&config.board.value.url, &ctx.config.board.value.url);
    ensure!(
        url.to_string() == ours.to_string(),
        "the configured board is now {url}; restart the conductor to use it"
    );
    let changed = config.entries().into_iter();
    let changed = changed.filter(|it| it.key != "conduct" && !before.contains(it));
    Ok(Reloaded {
        policy: args.policy(&config, &ctx.environment)?,
        needs_restart: changed.map(|it| it.key).collect(),
    })
}

fn trouble(ctx: &Context, halted: Halted) -> anyhow::Error {
    // A board error is recognised by its type.
    let error = match halted {
        Halted::Board(error) => anyhow::Error::from(error),
        other => other.into(),
    };
    error.context(ctx.trying("conduct", "jobs"))
}

fn summary(ctx: &Context, done: &WorkSummary) -> Note {
    let mut summary = Note::new("summary")
        .with("ran", done.ran)
        .with("consumed", done.consumed)
        .with("abandoned", done.abandoned)
        .with("trashed", done.trashed)
        .with("lost", done.lost);
    if done.unsettled > 0 {
        summary = summary.with("unsettled", done.unsettled);
    }
    let skipped = done.skipped.values().sum::<u64>();
    if skipped > 0 {
        summary = summary.with("skipped", skipped);
        summary = summary.with("reasons", json!(done.skipped));
    }
    let next = match &done.failed_jobs[..] {
        [] => return summary,
        [job] => Suggestion::of("explain").operand(&job.uuid),
        _ => Suggestion::of("list --failed"),
    };
    summary
        .with("failed", done.failed)
        .with("failed_jobs", json!(failed_jobs(done)))
        .with("next", next.on(&ctx.program()).to_string())
}

fn settings(ctx: &Context, args: &ConductArgs, reporter: &Reporter) -> anyhow::Result<Settings> {
    let process = unique_process_name();
    let name = args.name.clone().unwrap_or_else(|| process.clone());
    let owner =
        Owner::new(&name).map_err(|error| CommandError::usage(format!("--name: {error}")))?;
    if args.filter.is_empty() && args.policy.needs_filter(&ctx.config) {
        let message = "without --filter, the command would run for every job on a shared board";
        let hint = "select the jobs, for example with --filter 'name=resize-*'";
        return Err(CommandError::refused(message).hint(hint).into());
    }
    let until = StopCondition {
        drained: args.drain,
        jobs: args.max_jobs,
        idle: args.idle_exit,
    };
    Ok(Settings {
        conductor: Conductor::of_this_process(name, host_name(), owner, ConductorReport::default()),
        mark: process,
        jobs: args.jobs,
        lease: args.lease.unwrap_or(USUAL_LEASE),
        filters: Filters::new(args.filter.clone()),
        until,
        policy: args.policy.policy(&ctx.config, &ctx.environment)?,
        retry: args.retry.clone(),
        output: args.output.clone(),
        time_limit: TimeLimit {
            usual: args.job_timeout,
            most: args.job_timeout_max,
        },
        grace: args.grace,
        status: Arc::new(ConductorStatus::new(reporter, until)),
        spans: match &args.otlp_file {
            Some(path) => {
                refuse_foreign_link(path)?;
                Some(on_file(path, "write", SpanFile::open(path))?)
            }
            None => None,
        },
        withheld: [
            &ctx.environment.withheld()[..],
            &trace::VARIABLES,
            &TO_SECRETS,
        ]
        .concat(),
        service_manager: None,
    })
}
