//! References to one or several jobs.

use crate::support::{Env, play};

#[test]
fn one_command_can_feed_another() {
    let env = Env::new();
    env.post_many(3);
    env.claim("@2", "ada");
    let listed = env.run("list --unclaimed -o uuid");
    let trash = ["trash", "-", "--force", "--yes"];
    let run = env.jobboard(&trash).stdin(listed.succeeded()).run();
    run.succeeded();
    assert_eq!(env.names(), ["job-1"]);
}

#[test]
fn references_name_jobs_once() {
    play(
        r#"
        # an ambiguous prefix lists the candidates and changes no job
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        0 post grow --uuid 5f3a0000-0000-4000-8000-000000000002
        3 show 5f3a => 5f3a matches several jobs: 5f3a0000-0000-4000-8000-000000000001 (resize), 5f3a0000-0000-4000-8000-000000000002 (grow)\nhint: give more digits of the uuid => cannot show 5f3a on sqlite:ROOT/state/jobboard/board.db:
        0 claim @1 --who ada
        3 claim 5f3a --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 extend 5f3a --expiry 1h --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 abandon 5f3a --force --yes --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 consume 5f3a --force --yes --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 trash 5f3a --force --yes --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 wait 5f3a --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        3 owner 5f3a --json --who ada => {"error":{"code":3,"kind":"ambiguous"
        0 trash @1 @2 --force --yes
        3 restore 5f3a --json
        3 purge 5f3a --json
        3 purge 5f3a --yes --json => {"error":{"code":3,"kind":"ambiguous"

        # references are read from standard input
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 consume - --force --yes << @1\n\n  @3  \n == 00000001-0000-0000-0000-000000000000\tjob-0\tconsumed\n00000002-0000-0000-0000-000000000000\tjob-2\tconsumed
        0 consume - --force --yes << \n == (nothing)
        names job-1

        # each of several jobs is reported, and the possible changes happen
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 claim @1 --who ada
        0 claim @2 --who bob
        7 consume @1 @2 @3 @99 --who ada == 00000001-0000-0000-0000-000000000000\tjob-0\tconsumed => error: cannot consume @2 on sqlite:ROOT/state/jobboard/board.db: the job is claimed by bob, not by ada\nhint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, use `jobboard consume --force --yes @2`\nerror: cannot consume @3 => `jobboard consume --force --yes @3` also works on an unclaimed job\nerror: cannot consume @99 => the job does not exist\nhint: `jobboard list` shows the jobs on the board; add `--trash` or `--history` for jobs that have left it\nerror: failed for 3 of 4 jobs
        names job-1 job-2

        # failures are separate JSON errors
        0 post job-0
        0 post job-1
        0 claim @1 --who ada
        7 consume @1 @2 @99 --who ada --json == {"uuid":"00000001-0000-0000-0000-000000000000","name":"job-0","done":"consumed"} => {"error":{"code":4,"kind":"not-claimed" => \n{"error":{"code":3,"kind":"not-found" => \n{"error":{"code":7,"kind":"failed"
        "#,
    );
}

#[test]
fn partial_failures_and_other_references() {
    play(
        r#"
        # a partial failure exits with 7 for every verb, and a job named twice is changed once
        0 post resize
        0 claim @1 --who ada
        7 abandon @1 @99 --who ada --yes == 00000001-0000-0000-0000-000000000000\tresize\tabandoned => @99
        0 claim @1 --who ada
        7 trash @1 @99 --who ada --yes == 00000001-0000-0000-0000-000000000000\tresize\ttrashed => @99
        7 restore @1 @99 --who ada == 00000001-0000-0000-0000-000000000000\tresize\trestored => @99
        0 trash @1 --force --yes
        7 retry @1 @99 --who ada == 00000001-0000-0000-0000-000000000000\tresize\tretried => @99
        0 trash @1 --force --yes
        7 purge @1 @99 --who ada --yes == 00000001-0000-0000-0000-000000000000\tresize\tpurged => @99
        0 post resize
        0 claim @2 --who ada
        7 consume @2 @99 --who ada --yes == 00000001-0000-0000-0000-000000000000\tresize\tconsumed => @99
        0 post resize
        0 consume @3 @3 --force --yes == 00000001-0000-0000-0000-000000000000\tresize\tconsumed
        names

        # a unique key is a reference to its last run
        0 post resize
        0 post backup --unique 'nightly run'
        0 show 'unique:nightly run' -> backup  UNCLAIMED
        0 claim 'unique:nightly run' -o uuid
        0 consume - << unique:nightly run\n
        0 show 'unique:nightly run' -> backup  COMPLETE
        0 post backup --unique night
        0 trash --force --yes backup
        0 post backup --unique night
        0 consume --force --yes unique:night
        0 show unique:night -> COMPLETE
        0 explain unique:night -> omplete

        # every form of reference finds the job
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        0 post grow --uuid 5f3a0000-0000-4000-8000-000000000002
        0 show 5f3a0000-0000-4000-8000-000000000001 --json -> "name":"resize"
        0 show 5F3A0000-0000-4000-8000-000000000001 --json -> "name":"resize"
        0 show @1 --json -> "name":"resize"
        0 show key:5f3a0000-0000-4000-8000-000000000001 --json -> "name":"resize"
        0 post other --uuid 1f0c9a58-8f0e-4d0a-8a43-6b0c3f6d2e7b
        0 show 1f0c --json -> "name":"other"
        0 show 1f0c9a58 --json -> "name":"other"
        0 show 1f0c9a58- --json -> "name":"other"
        0 show 1f0c9a58-8f0e --json -> "name":"other"
        0 show 1f0c9a58-8f0e-4d0a-8a43-6b0c3f --json -> "name":"other"
        "#,
    );
}
