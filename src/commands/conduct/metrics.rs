//! A conductor's metrics for Prometheus: its board and its own work.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chrono::{DateTime, Utc};
use tokio::{
    sync::Mutex,
    task::{JoinSet, spawn_blocking},
    time,
};

use super::listener::{
    HttpAnswer, MetricsListener, OwnedFileIdentity, Site, identity, identity_of,
};
use crate::{
    board::Board,
    commands::parts::{
        scrape::{OTHERS, scrape},
        target::Target,
    },
    conductor::{
        ConductorStatus, Settings,
        meter::{AttemptResult, DurationHistogram, Measurements, SPANS},
        progress::{Note, Reporter},
    },
    exit::CommandError,
    output::{Exposition, Kind, timestamp},
    process::group::Usage,
};

const EVERY: Duration = Duration::from_secs(30);

/// The shortest time that the board's metrics are reused.
const FRESH: Duration = Duration::from_secs(10);

/// Reading the board takes at most this share of the time: one part in 20.
const SHARE: u32 = 20;

#[derive(Debug, Clone)]
pub(super) enum MetricsPlace {
    File(PathBuf),
    Address(SocketAddr),
    Socket(PathBuf),
}

pub(super) fn place(text: &str) -> Result<MetricsPlace, String> {
    if let Some(path) = text.strip_prefix("unix:").filter(|it| !it.is_empty()) {
        return Ok(MetricsPlace::Socket(PathBuf::from(path)));
    }
    if let Ok(address) = text.parse() {
        return Ok(MetricsPlace::Address(address));
    }
    match Path::new(text).extension().is_some_and(|it| it == "prom") {
        true => Ok(MetricsPlace::File(PathBuf::from(text))),
        false => Err("use ADDRESS:PORT, unix:PATH or a file name that ends in .prom".to_owned()),
    }
}

/// Starts publishing; dropping the result stops it.
pub(super) async fn start(
    place: &MetricsPlace,
    is_public: bool,
    metrics: Metrics,
    reporter: Reporter,
) -> anyhow::Result<JoinSet<()>> {
    let metrics = Arc::new(metrics);
    let listener = match place {
        MetricsPlace::File(path) => {
            let file = Textfile {
                written: identity_of(Target::put(path, metrics.own(false).as_bytes())?),
                path: path.clone(),
            };
            return Ok(JoinSet::from_iter([file.keep(metrics, reporter)]));
        }
        MetricsPlace::Address(address) if !(address.ip().is_loopback() || is_public) => {
            let message = format!(
                "everyone who can reach {address} could read the metrics of this conductor"
            );
            let hint = "listen on 127.0.0.1, or add --metrics-public";
            return Err(CommandError::refused(message).hint(hint).into());
        }
        MetricsPlace::Address(address) => MetricsListener::at_address(*address)
            .await
            .with_context(|| format!("cannot listen on {address} for --metrics"))?,
        MetricsPlace::Socket(path) => MetricsListener::at_path(path)
            .with_context(|| format!("cannot listen on {} for --metrics", path.display()))?,
    };
    let note = Note::new("metrics").with("address", listener.address());
    reporter.report(note);
    Ok(JoinSet::from_iter([async move {
        listener.serve(metrics).await
    }]))
}

/// A metrics file that exists while the conductor runs.
struct Textfile {
    path: PathBuf,
    written: OwnedFileIdentity,
}

impl Textfile {
    /// Rewrites the file in a loop; logs the first failure.
    async fn keep(mut self, metrics: Arc<Metrics>, reporter: Reporter) {
        let mut has_failed = false;
        loop {
            time::sleep(EVERY).await;
            let (path, text) = (self.path.clone(), metrics.own(false));
            // A slow disk must not delay the tasks that renew claims.
            let written = spawn_blocking(move || Target::put(&path, text.as_bytes())).await;
            match written {
                Ok(Err(error)) if !std::mem::replace(&mut has_failed, true) => {
                    let note = Note::new("metrics_not_written");
                    reporter.report(note.with("reason", format!("{error:#}")));
                }
                Ok(Ok(facts)) => self.written = identity_of(facts),
                _ => {}
            }
        }
    }
}

impl Drop for Textfile {
    fn drop(&mut self) {
        if identity(&self.path) == Some(self.written) {
            // A stopped conductor publishes no metrics.
            let _ = fs::remove_file(&self.path);
        }
    }
}

pub(super) struct Metrics {
    board: Arc<dyn Board>,
    status: Arc<ConductorStatus>,
    name: String,
    since: DateTime<Utc>,
    slots: usize,
    seen: Mutex<Option<CachedScrape>>,
}

struct CachedScrape {
    at: Instant,
    lasts: Duration,
    text: String,
}

impl Metrics {
    pub(super) fn new(board: Arc<dyn Board>, settings: &Settings) -> Self {
        Self {
            board,
            status: Arc::clone(&settings.status),
            name: settings.conductor.name.clone(),
            since: settings.conductor.since,
            slots: settings.jobs,
            seen: Mutex::new(None),
        }
    }

    /// Returns all metrics; those of the board may be some seconds old.
    async fn text(&self) -> String {
        // Concurrent requests share one read.
        let mut seen = self.seen.lock().await;
        let is_fresh = |it: &CachedScrape| it.at.elapsed() < it.lasts;
        if !seen.as_ref().is_some_and(is_fresh) {
            let start = Instant::now();
            let mut exposition = Exposition::new(&[("board", self.board.name())]);
            let lasts = match scrape(&*self.board, None, false, &mut exposition).await {
                Ok(()) => FRESH.max(start.elapsed() * SHARE),
                // The metrics show the board as unreachable, so they expire soon.
                Err(_) => FRESH,
            };
            *seen = Some(CachedScrape {
                at: Instant::now(),
                lasts,
                text: exposition.into_text(),
            });
        }
        let board = seen.as_ref().map_or("", |seen| seen.text.as_str());
        board.to_owned() + &self.own(true)
    }

    /// Returns the conductor's metrics; a shared textfile excludes the process metrics.
    fn own(&self, has_process: bool) -> String {
        let labels = [("board", self.board.name()), ("conductor", &self.name)];
        let mut own = Exposition::new(&labels);
        let (measured, running) = self.status.measured();
        add_work(&measured, &mut own);
        let help = "Jobs that run now.";
        own.gauge("jobboard_conductor_running", help, running as f64);
        let help = "Maximum number of jobs that run concurrently.";
        own.gauge("jobboard_conductor_slots", help, self.slots as f64);
        let (help, since) = ("Start time of the conductor.", timestamp(self.since));
        own.gauge("jobboard_conductor_start_time_seconds", help, since);
        if let Some(reached) = self.status.reached() {
            let help = "Time of the last successful request to the board.";
            let name = "jobboard_conductor_last_board_contact_timestamp_seconds";
            own.gauge(name, help, timestamp(reached));
        }
        if has_process {
            add_process(&mut own);
        }
        own.into_text()
    }
}

impl Site for Metrics {
    async fn answer(&self, path: &str) -> Option<HttpAnswer> {
        let answer = |status, text| HttpAnswer { status, text };
        match path {
            "/metrics" => Some(answer("200 OK", self.text().await)),
            "/healthz" => Some(match self.status.ailment() {
                None => answer("200 OK", "ok\n".to_owned()),
                Some(ailment) => answer("503 Service Unavailable", ailment + "\n"),
            }),
            _ => None,
        }
    }
}

fn add_work(measured: &Measurements, exposition: &mut Exposition) {
    let help = "Claimed jobs.";
    let claims = exposition.family(Kind::Counter, "jobboard_conductor_claims_total", help);
    claims.add(&[], measured.claims as f64);
    let help = "Finished attempts by outcome and job name.";
    let runs = exposition.family(Kind::Counter, "jobboard_conductor_runs_total", help);
    for (name, ends) in &measured.ends {
        let name = name.as_deref().unwrap_or(OTHERS);
        for (end, count) in AttemptResult::ALL.iter().zip(ends) {
            runs.add(&[("outcome", end.name()), ("name", name)], *count as f64);
        }
    }
    let mut add = |name, help, histogram: &DurationHistogram| {
        let within: Vec<_> = SPANS.into_iter().zip(histogram.within).collect();
        let family = exposition.family(Kind::Histogram, name, help);
        family.histogram(&within, histogram.count, histogram.sum);
    };
    let help = "Run time of commands.";
    add(
        "jobboard_conductor_run_duration_seconds",
        help,
        &measured.runs,
    );
    let help = "Time from posting to the first claim.";
    add("jobboard_conductor_wait_seconds", help, &measured.waits);
    let help = "Requests to renew claims, by result.";
    let name = "jobboard_conductor_renewals_total";
    let renewals = exposition.family(Kind::Counter, name, help);
    renewals.add(&[("result", "answered")], measured.renewed as f64);
    renewals.add(&[("result", "failed")], measured.not_renewed as f64);
    let help = "Delay of the last renewal after its due time.";
    let late = measured.lateness.as_secs_f64();
    exposition.gauge("jobboard_conductor_renewal_lateness_seconds", help, late);
    let help = "Reconnections to the board.";
    let name = "jobboard_conductor_board_reconnects_total";
    let reconnects = exposition.family(Kind::Counter, name, help);
    reconnects.add(&[], measured.reconnects as f64);
}

fn add_process(exposition: &mut Exposition) {
    let usage = Usage::now();
    let help = "CPU time of the conductor, without its commands.";
    let processor = exposition.family(Kind::Counter, "process_cpu_seconds_total", help);
    processor.add(&[], usage.processor.as_secs_f64());
    if let Some(bytes) = usage.memory {
        let help = "Resident memory of the conductor, without its commands.";
        exposition.gauge("process_resident_memory_bytes", help, bytes as f64);
    }
    if let Some(files) = usage.files {
        let help = "Open files of the conductor.";
        exposition.gauge("process_open_fds", help, files as f64);
    }
}
