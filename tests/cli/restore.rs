//! `jobboard restore`.

use crate::support::play;

#[test]
fn restored_jobs_and_refusals() {
    play(
        r#"
        # a restored job is unclaimed on the board
        0 post resize
        3 restore @1
        0 claim @1 --who ada
        0 trash @1 --force --yes
        0 restore @1 == 00000001-0000-0000-0000-000000000000\tresize\trestored
        0 show @1 --json -> "state":"UNCLAIMED" -> "trashed_on":null

        # the same uuid on the board blocks a restore
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        0 trash @1 --force --yes
        0 post again --uuid 5f3a0000-0000-4000-8000-000000000001
        4 restore @1 => cannot restore @1 on sqlite:ROOT/state/jobboard/board.db: a job with the uuid 00000001-0000-0000-0000-000000000000 already exists on the board\nhint: nothing changed; `jobboard show 00000001-0000-0000-0000-000000000000` shows the existing job
        names again

        # a filter restores many jobs
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}\n{"name":"job-3"}\n{"name":"job-4"}\n{"name":"job-5"}\n{"name":"job-6"}
        0 trash --filter name=job-* --force --yes
        0 restore --filter name=job-* --yes -o table -> restored 00000001 job-0\n -> restored 00000007 job-6\n =>   00000005 job-4\n  … and 2 more
        names job-0 job-1 job-2 job-3 job-4 job-5 job-6

        # a restored job has no attempts
        0 post resize
        0 trash @1 --force --yes
        sql UPDATE job SET attempts = 5, postponed = 2, not_before = 4102444800000000
        0 restore @1
        0 show @1 --json -> "attempts":0 -> "not_before":null
        "#,
    );
}
