//! Commands with more output than is read.

use super::*;

fn memory(pid: u32) -> u64 {
    let path = format!("/proc/{pid}/status");
    let status = fs::read_to_string(path).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let words = line.unwrap().split_whitespace().next();
    words.unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn endless_output_uses_bounded_memory() {
    need!(stage = Stage::embedded());
    let megabytes = size(1024, 64);
    stage.post(
        "a",
        &format!("head -c {megabytes}M /dev/zero | tr '\\0' x; echo done >> log; sleep 600"),
    );
    let script = "exec \"$@\" > /dev/null";
    let conductor = stage.conduct(&["--grace", "0s"]).in_shell(script).spawn();
    let is_written = comes_true(SOON * 4, || !stage.log().is_empty());
    assert!(is_written, "{}", conductor.stderr());
    let most = memory(conductor.pid());
    assert!(most < 100 << 20, "{most} bytes");
    eprintln!(
        "faults: {megabytes} MiB on one line took {} MiB",
        most >> 20
    );
    conductor.stops();
}

#[test]
fn no_line_of_many_is_torn_or_lost() {
    need!(stage = Stage::embedded());
    let count = size(1_000_000, 20_000);
    let jobs = ["a", "b"].map(|name| stage.post(name, &format!("seq 1 {count}")));
    let mut conductor = stage.conduct(&["--drain", "-j2"]).spawn();
    finishes(&mut conductor, SOON * 10);
    let run = conductor.ended();
    let mut next = [1; 2];
    for line in run.succeeded().lines() {
        let (origin, number) = line.split_once(" | ").unwrap();
        let of = usize::from(origin.starts_with('b'));
        assert!(origin.ends_with(&jobs[of][..8]), "{line}");
        assert_eq!(number, next[of].to_string());
        next[of] += 1;
    }
    assert_eq!(next, [count + 1; 2]);
}
