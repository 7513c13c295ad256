//! Unreadable histories.

use super::*;

#[test]
fn corrupt_history_entries_have_their_own_columns() {
    need!(stage = Stage::redis());
    stage.env.post("resize");
    let server = stage.redis_server().unwrap();
    server.run(&["EVAL", SPOIL_THE_PAST, "0"]);
    let listed = run(&stage, &["list", "--history"]);
    let columns: Vec<_> = listed.succeeded().trim_end().split('\t').collect();
    assert_eq!(columns.len(), 8, "{columns:?}");
    assert_eq!((columns[1], columns[2]), ("", "MALFORMED"));
    assert!(columns[7].contains("is unreadable"), "{columns:?}");
}

#[test]
fn unreadable_history_hides_no_job() {
    need!(stage = Stage::redis());
    let job = stage.env.post("resize");
    let server = stage.redis_server().unwrap();
    assert_eq!(server.run(&["EVAL", TAKE_THE_PAST, "0"]).trim(), "1");
    let gone = "00000000-0000-4000-8000-000000000001";
    let shown = run(&stage, &["show", &job, gone]);
    assert_eq!(shown.code, 7, "{shown:?}");
    shown.shows("resize");
    run(&stage, &["show", gone]).failed(3);
    run(&stage, &["wait", gone, "--gone-ok"]).succeeded();
    assert_ne!(run(&stage, &["list", "--history"]).code, 0);
    let ping = run(&stage, &["ping", "--json"]);
    let problem = "stores a value of the wrong type under taskflow:past";
    ping.warns(problem);
    let report = ping.json()["history_problem"].clone();
    assert!(report.as_str().unwrap().contains(problem), "{report}");
    // The job is consumed anyway, with a note about the missing entry.
    let consumed = run(&stage, &["consume", "--force", "--yes", &job]);
    consumed.succeeded();
    let warning = "warning: the history is not recorded: WRONGTYPE";
    consumed.warns(warning);
    assert_eq!(stage.env.everything(), [json!([]), json!([])]);
    let warned_once = |report: Outcome| {
        report.succeeded();
        assert_eq!(report.stderr.matches(warning).count(), 1, "{report:?}");
    };
    warned_once(run(&stage, &["run", "one", "--", "true"]));
    for name in ["two", "three", "four"] {
        stage.env.post(name);
    }
    warned_once(run(&stage, &["claim", "--next", "--", "true"]));
    run(&stage, &["trash", "--force", "--yes", "--name", "*"]).succeeded();
    warned_once(run(&stage, &["purge", "--yes", "--all"]));
}

/// Adds an unreadable entry to the history.
const SPOIL_THE_PAST: &str = "local listings = redis.call('KEYS', '*listings'); \
    redis.call('XADD', (listings[1]:gsub('listings$', 'past')), '5-1', 'job', 'x')";

/// Replaces the history with a value of another type.
const TAKE_THE_PAST: &str = "local listings = redis.call('KEYS', '*listings'); \
    redis.call('SET', (listings[1]:gsub('listings$', 'past')), 'x'); return #listings";
