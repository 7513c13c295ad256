//! `jobboard purge`.

use crate::support::play;

#[test]
fn purges_and_refusals() {
    play(
        r#"
        # a purge deletes from the trash only, and needs a selection and a confirmation
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 trash @1 @2 --force --yes
        8 purge @1 =>   00000001 job-0\n => cannot purge 1 job permanently on sqlite:ROOT/state/jobboard/board.db: confirmation is required, but standard input is not a terminal\nhint: add `--yes` to confirm in advance
        3 purge @3 --yes
        2 purge --yes
        0 purge --older-than 1h --max 1 --yes == (nothing)
        8 purge --older-than 1ms --max 1 --yes => 2 jobs selected, but --max is 1
        0 purge --older-than 1h --limit 1 --yes !> --limit
        0 list --trash --columns name == job-0\njob-1
        0 purge @1 --yes == 00000001-0000-0000-0000-000000000000\tjob-0\tpurged =>   00000001 job-0
        0 list --trash --columns name == job-1
        0 trash @3 --force --yes
        0 purge --all --limit 1 --yes => skipped (--limit): 1 job
        0 list --trash --count == 1
        0 post stays
        0 purge --all --yes
        0 list --trash --count == 0
        names stays

        # --older-than deletes only older jobs
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 trash @1 @2 --force --yes
        0 purge --older-than 1h --yes == (nothing)
        0 list --trash --count == 2
        sql UPDATE job SET trashed_on = trashed_on - 7200000000 WHERE sequence = 1
        0 purge --older-than 1h --yes
        0 list --trash --columns name == job-1

        # a dry run lists the jobs, even if read-only
        0 post --from - << {"name":"job-0"}\n{"name":"job-1"}\n{"name":"job-2"}
        0 trash @1 @2 --force --yes
        0 purge --filter state=TRASHED --dry-run --read-only --json -> "name":"job-0" -> "name":"job-1" !> job-2
        0 restore --filter state=TRASHED --dry-run --read-only --json -> "name":"job-0" -> "name":"job-1" !> job-2
        0 purge --older-than 1h --dry-run --read-only --json == []
        0 abandon @3 --dry-run --read-only --json -> "name":"job-2" => (nothing)
        0 consume @3 --dry-run --read-only --json -> "name":"job-2" => (nothing)
        0 trash @3 --dry-run --read-only --json -> "name":"job-2" => (nothing)
        0 abandon --filter name=* --dry-run --read-only --json -> [ => skipped without --force: 1 of 1 job
        0 consume --filter name=* --dry-run --read-only --json -> [ => skipped without --force: 1 of 1 job
        0 trash --filter name=* --dry-run --read-only --json -> [ => skipped without --force: 1 of 1 job
        8 purge --all --dry-run --max 1
        3 trash @9 --dry-run
        names job-2
        0 list --trash --count == 2
        "#,
    );
}
