//! Metrics and health of a conductor.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixStream,
    time::Instant,
};

use super::{Stage, on_one_board};
use crate::{
    metrics::{figure_of, judged},
    support::{Running, SOON, assert_contains, wait_until},
};

on_one_board!(work_of_a_conductor_is_counted);

/// Starts a conductor with a metrics listener, and returns its address.
fn listening(stage: &Stage, words: &[&str]) -> (Running, SocketAddr) {
    let words = [&["--metrics", "127.0.0.1:0", "--name", "c1"], words].concat();
    let running = stage.start(&words);
    let log = running.stderr();
    let (_, rest) = log.split_once("address=").unwrap();
    let address = rest.split_whitespace().next().unwrap();
    (running, address.trim_matches('"').parse().unwrap())
}

/// Sends a request, and returns the complete reply.
fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    // A rejected connection may be closed before the write.
    let _ = stream.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn get(address: SocketAddr, path: &str) -> String {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    exchange(stream, &format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"))
}

fn figures(address: SocketAddr) -> String {
    let answer = get(address, "/metrics");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    body.to_owned()
}

fn own(text: &str, name: &str) -> Option<f64> {
    figure_of(text, name, &["conductor"])
}

fn work_of_a_conductor_is_counted(stage: &Stage) {
    let (running, address) = listening(stage, &["-j2", "--retry-delay", "1h"]);
    for _ in 0..2 {
        stage.post("good", "true");
    }
    stage.post("bad", "exit 3");
    stage.post("later", "exit 75");
    let runs = |text: &str, outcome: &str, name: &str| {
        let name =
            format!("jobboard_conductor_runs_total{{outcome=\"{outcome}\",name=\"{name}\"}}");
        own(text, &name).unwrap_or_default()
    };
    let mut text = String::new();
    wait_until("all are counted", || {
        text = figures(address);
        runs(&text, "postponed", "later") + runs(&text, "failed", "bad") == 2.0
            && runs(&text, "consumed", "good") == 2.0
    });
    judged(&text);
    for (name, value) in [
        ("jobboard_conductor_claims_total", 4.0),
        ("jobboard_conductor_run_duration_seconds_count", 4.0),
        ("jobboard_conductor_wait_seconds_count", 4.0),
        (
            "jobboard_conductor_run_duration_seconds_bucket{le=\"+Inf\"}",
            4.0,
        ),
        ("jobboard_conductor_running", 0.0),
        ("jobboard_conductor_slots", 2.0),
        ("jobboard_conductor_board_reconnects_total", 0.0),
    ] {
        assert_eq!(own(&text, name), Some(value), "{name}: {text}");
    }
    for name in [
        "jobboard_conductor_last_board_contact_timestamp_seconds",
        "jobboard_conductor_start_time_seconds",
        "process_resident_memory_bytes",
        "process_cpu_seconds_total",
    ] {
        assert!(own(&text, name).unwrap() > 0.0, "{name}: {text}");
    }
    assert_eq!(figure_of(&text, "jobboard_up", &[]), Some(1.0), "{text}");
    assert!(get(address, "/healthz").ends_with("\r\n\r\nok\n"));
    running.stops();
}

#[test]
fn misbehaving_clients_block_no_one() {
    let stage = Stage::embedded().unwrap();
    let (running, address) = listening(&stage, &[]);
    for (request, status) in [
        ("POST /metrics HTTP/1.1\r\n\r\n".to_owned(), "405"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("\0\u{1b}[2J\r\n\r\n".to_owned(), "400"),
        (
            format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(1 << 20)),
            "431",
        ),
    ] {
        let answer = exchange(TcpStream::connect(address).unwrap(), &request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    // Some clients send nothing, and one sends an endless request.
    let silent: Vec<_> = (0..17)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut endless = TcpStream::connect(address).unwrap();
    let since = Instant::now();
    while endless.write_all(&[b'x'; 4096]).is_ok() {
        assert!(since.elapsed() < SOON, "the endless request is rejected");
    }
    stage.post("a", "echo ran >> log");
    stage.logged(1);
    wait_until("requests are answered again", || {
        get(address, "/healthz").starts_with("HTTP/1.1 200 ")
    });
    drop(silent);
    let slow = TcpStream::connect(address).unwrap();
    (&slow).write_all(b"GET /met").unwrap();
    slow.set_read_timeout(Some(SOON)).unwrap();
    let mut answer = String::new();
    (&slow).read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    drop(running);
}

#[test]
fn metrics_are_local_unless_made_public() {
    let stage = Stage::embedded().unwrap();
    let refused = stage.conduct(&["--metrics", "0.0.0.0:0", "--drain"]).run();
    refused.fails(8, "--metrics-public");
    let public = ["--metrics", "0.0.0.0:0", "--metrics-public", "--drain"];
    stage.conduct(&public).run().succeeded();
    for wrong in ["somewhere", "localhost", "file.txt", "127.0.0.1"] {
        stage
            .conduct(&["--metrics", wrong, "--drain"])
            .run()
            .failed(2);
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = stage.conduct(&["--metrics", &address, "--drain"]).run();
    refused.fails(1, &address);
}

#[test]
fn socket_and_file_exist_while_the_conductor_runs() {
    let stage = Stage::embedded().unwrap();
    let socket = stage.env.file("metrics.sock");
    let file = stage.env.file("conductor.prom");
    let place = format!("unix:{}", socket.display());
    let running = stage.start(&["--metrics", &place]);
    let answer = exchange(
        UnixStream::connect(&socket).unwrap(),
        "GET /metrics HTTP/1.0\r\n\r\n",
    );
    assert!(answer.contains("jobboard_conductor_slots"), "{answer}");
    // A killed conductor leaves its socket to the next one.
    running.kill();
    assert!(socket.exists());
    let running = stage.start(&["--metrics", &place]);
    assert!(UnixStream::connect(&socket).is_ok());
    running.stops();
    assert!(!socket.exists());

    let running = stage.start(&["--metrics", file.to_str().unwrap()]);
    wait_until("the file is there", || file.exists());
    let text = fs::read_to_string(&file).unwrap();
    judged(&text);
    // Other exporters may report process metrics, and those of the board.
    for others in ["process_", "jobboard_up", "jobboard_jobs"] {
        assert!(!text.contains(others), "{text}");
    }
    running.stops();
    assert!(!file.exists());
    let nowhere = stage.env.file("none/conductor.prom");
    let refused = stage.conduct(&["--metrics", nowhere.to_str().unwrap()]);
    refused.run().failed(1);
    // A conductor keeps files that another program put there.
    for (place, file) in [(place.as_str(), &socket), (file.to_str().unwrap(), &file)] {
        let running = stage.start(&["--metrics", place]);
        wait_until("it is there", || file.exists());
        fs::remove_file(file).unwrap();
        fs::write(file, "precious").unwrap();
        running.stops();
        assert_eq!(fs::read_to_string(file).unwrap(), "precious");
        fs::remove_file(file).unwrap();
    }
    let pipe = stage.env.file("pipe.prom");
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, 0o600.into(), 0).unwrap();
    for option in ["--metrics", "--otlp-file"] {
        let refused = stage.conduct(&[option, pipe.to_str().unwrap()]).run();
        refused.failed(1);
    }
}

#[test]
fn conductor_without_its_board_is_unhealthy() {
    need!(mut stage = Stage::redis_keeping_data());
    let (running, address) = listening(&stage, &[]);
    wait_until("it is well", || get(address, "/healthz").contains("200 OK"));
    stage.stop_server();
    wait_until("it reports the outage", || {
        get(address, "/healthz").contains("503 Service Unavailable")
    });
    let answer = get(address, "/healthz");
    assert_contains(&answer, "the board has been unreachable for ");
    wait_until("the board is reported as down", || {
        figure_of(&figures(address), "jobboard_up", &[]) == Some(0.0)
    });
    stage.start_server();
    wait_until("it is well again", || {
        get(address, "/healthz").contains("200 OK")
    });
    wait_until("and has counted that", || {
        own(
            &figures(address),
            "jobboard_conductor_board_reconnects_total",
        ) >= Some(1.0)
    });
    drop(running);
}

#[test]
fn frequent_scrapes_read_the_board_rarely() {
    need!(stage = Stage::redis());
    let (_running, address) = listening(&stage, &["--filter", "name=none"]);
    let server = stage.redis_server().unwrap();
    figures(address);
    let scans = || {
        let outcome = server.run(&["INFO", "commandstats"]);
        let mut lines = outcome
            .lines()
            .filter_map(|it| it.strip_prefix("cmdstat_hlen:calls="));
        let count = lines.next().and_then(|it| it.split(',').next());
        count.map_or(0, |it| it.parse::<u64>().unwrap())
    };
    let before = scans();
    let since = Instant::now();
    for _ in 0..50 {
        figures(address);
    }
    // Repeated replies come from a cache.
    let looks = 1 + since.elapsed().as_secs() / 10;
    assert!(scans() - before <= 2 * looks, "{} looks", scans() - before);
}
