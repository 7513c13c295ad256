//! `jobboard trash`.

use crate::support::{Env, play};

#[test]
fn trashed_jobs_and_refusals() {
    play(
        r#"
        # the owner trashes a job, other users need force
        0 post resize
        4 trash @1 --json => {"error":{"code":4,"kind":"not-claimed"
        0 claim @1 --who ada
        0 trash @1 --who ada == 00000001-0000-0000-0000-000000000000\tresize\ttrashed
        names
        0 list --trash --columns name == resize
        0 post other
        0 trash @2 --force --yes
        0 list --trash --count == 2

        # an unreadable record is trashed by force only
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        sql PRAGMA ignore_check_constraints = on; UPDATE job SET details = 'nonsense'
        4 trash key:5f3a0000-0000-4000-8000-000000000001 --json => "kind":"malformed"
        0 trash key:5f3a0000-0000-4000-8000-000000000001 --force --yes
        names

        # the same uuid in the trash is replaced
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        0 trash @1 --force --yes
        0 post again --uuid 5f3a0000-0000-4000-8000-000000000001
        0 trash 5f3a0000 --force --yes -o table == trashed 5f3a0000 again =>   5f3a0000 again\nreplaced a job with the same uuid in the trash
        0 list --trash --columns name == again

        # a job named twice is trashed once
        0 post resize --uuid 5f3a0000-0000-4000-8000-000000000001
        0 trash 5f3a0000-0000-4000-8000-000000000001 @1 5f3a0000 --force --yes == 5f3a0000-0000-4000-8000-000000000001\tresize\ttrashed
        0 restore @1 5f3a0000
        4 trash @1 5f3a0000

        # jobs are selected by name, state and limit
        0 post --from - << {"name":"backup-a"}\n{"name":"grow"}\n{"name":"backup-b"}\n{"name":"backup-c"}\n{"name":"none"}
        0 claim @3 --who ada
        0 trash --force --yes --name backup-* --limit 2 == 00000001-0000-0000-0000-000000000000\tbackup-a\ttrashed\n00000002-0000-0000-0000-000000000000\tbackup-b\ttrashed => skipped (--limit): 1 job\n  00000001 backup-a\n  00000002 backup-b (claimed by ada)
        names grow backup-c none
        0 claim @2 --who ada
        0 trash --force --yes --state claimed
        names backup-c none
        0 trash --force --yes --name none
        names backup-c
        0 restore --name backup-* --limit 1 --yes
        names backup-a backup-c
        2 trash --limit 1
        2 trash @1 --limit 1

        # a job that its worker gives up counts as failed
        0 post a
        0 claim @1 --who ada
        0 trash --failed --who ada @1 --reason 'no disk'
        0 list --failed --count == 1
        7 doctor -> no disk
        0 retry --yes --problem 'failed=no disk'
        0 list --columns name,state == a\tUNCLAIMED
        0 claim @1 --who ada
        0 trash --failed --who ada @1
        0 list --failed --count == 1
        7 doctor -> marked as failed by hand
        0 retry --yes --problem 'failed=marked as failed by hand'
        0 list --columns name,state == a\tUNCLAIMED
        0 post carol
        0 claim @2 --who ada
        0 trash @2 --who ada --reason unwanted
        0 list --failed !> carol
        "#,
    );
}

#[test]
fn hint_names_the_board_and_the_job() {
    let env = Env::new();
    let board = ["--board", "sqlite:it's.db"];
    let on = |words: &[&str]| env.run([words, &board].concat());
    on(&["post", "resize"]).succeeded();
    let run = on(&["trash", "@1"]);
    insta::assert_snapshot!(run, @r#"
    exit code 4
    --- stdout
    --- stderr
    error: cannot trash @1 on sqlite:it's.db: the job is not claimed
    hint: `jobboard --board 'sqlite:it'"'"'s.db' trash --force --yes @1` also works on an unclaimed job
    "#);
}
