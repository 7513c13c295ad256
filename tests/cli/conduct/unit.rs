//! The systemd unit: its restrictions, and a conductor that works under them.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
};

use rustix::process::{Signal, geteuid};
use serde_json::json;

use super::set_mode;
use crate::support::{Env, Invocation, Manager, needs::has, wait_until};

const UNIT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/contrib/jobboard-conduct@.service"
);

/// Returns the last value of a setting in the unit.
fn setting(name: &str) -> String {
    let unit = fs::read_to_string(UNIT).unwrap();
    let mut values = unit.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key == name).then(|| value.to_owned())
    });
    values.next_back().unwrap_or_else(|| panic!("no {name}="))
}

#[test]
fn systemd_unit_exposes_little() {
    if !has("systemd-analyze") {
        return;
    }
    let words = ["security", "--offline=true", "--threshold=15", UNIT];
    let run = Env::new()
        .program(Path::new("systemd-analyze"), &words)
        .run();
    run.succeeded();
}

#[test]
fn systemd_unit_can_run_jobs() {
    let env = Env::new();
    let state = env.root().join("state/night");
    fs::create_dir(&state).unwrap();
    set_mode(&state, 0o700);
    set_mode(env.root(), 0o755);
    if geteuid().is_root() {
        chown(&state, Some(65534), Some(65534)).unwrap();
    }
    let config = env.configure(&format!(
        "[board.night]\nurl = \"sqlite:{}\"\nconduct = {{ allow = [\"/bin/sh\", \"/usr/bin/sh\"] }}\n",
        state.join("board.db").display()
    ));
    let manager = Manager::start(&env);
    let script = "echo $JOBBOARD_JOB >> log; id -u >> who; touch /etc/jobboard-was-here; \
                  grep -E 'NoNewPrivs|CapBnd' /proc/self/status >> who";
    let job = json!({"name": "a", "details": {"command": ["sh", "-c", script]}}).to_string();
    let post = ["--board", "night", "post", "--from", "-"];
    let post = env.jobboard(&post).stdin(format!("{job}\n").repeat(20));
    let posted = post.env("JOBBOARD_CONFIG", &config).unprivileged().run();
    let mut jobs: Vec<_> = posted.succeeded().lines().collect();
    let conductor = manager
        .over(started(&env, &state))
        .env("JOBBOARD_CONFIG", &config);
    let conductor = conductor.spawn();
    manager.hears("READY=1");
    let read = |name: &str| fs::read_to_string(state.join(name)).unwrap_or_default();
    wait_until("all have run", || read("log").lines().count() == 20);
    manager.shows("0 of 4 running, no runnable jobs");
    manager.hears("WATCHDOG=1");
    assert!(setting("ExecReload").contains("-HUP $MAINPID"));
    conductor.signal(Signal::HUP);
    wait_until("it is ready again", || manager.count("READY=1") == 2);
    assert_eq!(setting("KillSignal"), "SIGTERM");
    conductor.stops();
    manager.hears("STOPPING=1");
    let log = read("log");
    let mut ran: Vec<_> = log.lines().collect();
    ran.sort_unstable();
    jobs.sort_unstable();
    assert_eq!(ran, jobs);
    if geteuid().is_root() {
        let who = read("who");
        // As under systemd.
        let bare = BTreeSet::from(["65534", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1"]);
        assert_eq!(who.lines().collect::<BTreeSet<_>>(), bare);
        assert!(!PathBuf::from("/etc/jobboard-was-here").exists());
    }
}

/// Prepares the command of the unit, with as many of its restrictions as the test's user can apply.
fn started(env: &Env, state: &Path) -> Invocation {
    let start = setting("ExecStart").replace("%i", "night");
    let start = start.replace("$OPTIONS", "-j4 --log text");
    let words = start.strip_prefix("/usr/bin/jobboard ").unwrap();
    let words: Vec<_> = words.split(' ').collect();
    let start = env.jobboard(&words).cwd(state);
    let patience = setting("WatchdogSec").replace('s', "000000");
    let start = start.env("WATCHDOG_USEC", patience).in_session();
    if !geteuid().is_root() {
        return start;
    }
    // As DynamicUser=, NoNewPrivileges=, CapabilityBoundingSet=, UMask= and ProtectSystem=strict.
    let script = "umask 0077; mount --bind . . && mount -o remount,bind,ro / && cd \"$PWD\" && \
                  exec setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
                  --bounding-set=-all --inh-caps=-all \"$@\"";
    start.in_shell(script).in_namespace()
}
