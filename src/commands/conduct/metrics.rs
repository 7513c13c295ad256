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
    atomic_file::AtomicFile,
    board::Board,
    commands::parts::scrape::scrape,
    conductor::{
        ConductorStatus, Settings,
        log::{Note, Reporter},
        meter::{BUCKETS, CountedEnd, DurationHistogram, Measurements},
    },
    exit::CommandError,
    output::{Exposition, timestamp},
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
                written: identity_of(AtomicFile::put(path, metrics.own(false).as_bytes())?),
                path: path.clone(),
            };
            return Ok(JoinSet::from_iter([file.keep(metrics, reporter)]));
        }
        MetricsPlace::Address(address) if !(address.ip().is_loopback() || is_public) => {
            let message =
                format!("anyone who can reach {address} could read the metrics of this conductor");
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
            let written = spawn_blocking(move || AtomicFile::put(&path, text.as_bytes())).await;
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

    async fn text(&self) -> String {
        // Concurrent requests share one read.
        let mut seen = self.seen.lock().await;
        let is_fresh = |it: &CachedScrape| it.at.elapsed() < it.lasts;
        if !seen.as_ref().is_some_and(is_fresh) {
            let start = Instant::now();
            let mut exposition = Exposition::new(&[("board", self.board.url())]);
            let lasts = match scrape(&*self.board, None, &mut exposition).await {
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
        let labels = [("board", self.board.url()), ("conductor", &self.name)];
        let mut own = Exposition::new(&labels);
        let (measured, running) = self.status.measured();
        add_work(&measured, &mut own);
        own.value("jobboard_conductor_running", running as f64);
        own.value("jobboard_conductor_slots", self.slots as f64);
        own.value(
            "jobboard_conductor_start_time_seconds",
            timestamp(self.since),
        );
        if let Some(reached) = self.status.reached() {
            let name = "jobboard_conductor_last_board_contact_timestamp_seconds";
            own.value(name, timestamp(reached));
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
    exposition.value("jobboard_conductor_claims_total", measured.claims as f64);
    let runs = exposition.family("jobboard_conductor_runs_total");
    for (name, ends) in &measured.ends {
        let name = name.as_deref().unwrap_or("__other__");
        for (end, count) in CountedEnd::ALL.iter().zip(ends) {
            runs.add(&[("outcome", end.name()), ("name", name)], *count as f64);
        }
    }
    for (name, histogram) in [
        ("jobboard_conductor_run_duration_seconds", &measured.runs),
        ("jobboard_conductor_wait_seconds", &measured.waits),
    ] {
        let DurationHistogram { within, count, sum } = *histogram;
        let within: Vec<_> = BUCKETS.into_iter().zip(within).collect();
        exposition.family(name).histogram(&within, count, sum);
    }
    let renewals = exposition.family("jobboard_conductor_renewals_total");
    renewals.add(&[("result", "answered")], measured.renewed as f64);
    renewals.add(&[("result", "failed")], measured.not_renewed as f64);
    let late = measured.lateness.as_secs_f64();
    exposition.value("jobboard_conductor_renewal_lateness_seconds", late);
    let reconnects = measured.reconnects as f64;
    exposition.value("jobboard_conductor_board_reconnects_total", reconnects);
}

fn add_process(exposition: &mut Exposition) {
    let usage = Usage::now();
    exposition.value("process_cpu_seconds_total", usage.processor.as_secs_f64());
    if let Some(bytes) = usage.memory {
        exposition.value("process_resident_memory_bytes", bytes as f64);
    }
    if let Some(files) = usage.files {
        exposition.value("process_open_fds", files as f64);
    }
}
