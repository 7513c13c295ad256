//! `jobboard claim`.

use crate::support::play;

#[test]
fn claims_and_refusals() {
    play(
        r#"
        # a job is claimed under a name, which counts no attempt
        0 post resize
        0 claim @1 --who ada == 00000001-0000-0000-0000-000000000000\tresize\tclaimed
        0 owner @1 == ada
        0 list --columns attempts == 0

        # the next job is the most urgent, then the oldest
        0 post c --priority low
        0 post a --priority high
        0 post b --priority high
        0 claim --next -> \ta\tclaimed
        0 claim --next -> \tb\tclaimed
        0 claim --next -> \tc\tclaimed
        6 claim --next => cannot claim the next job on sqlite:ROOT/state/jobboard/board.db: no job is claimable\nhint: add `--wait 1m` to wait for a job

        # the next job matches the filters
        0 post resize lb=1
        0 post resize lb=2
        0 claim --next --filter details.lb=2
        0 list --columns sequence,state == 1\tUNCLAIMED\n2\tCLAIMED
        6 claim --next --filter details.lb=2

        # the next job has a matching name
        0 post nap
        0 post backup-1
        6 claim --next --name nap --filter name=backup-1
        0 claim --next --name backup-*
        0 list --columns name,state == nap\tUNCLAIMED\nbackup-1\tCLAIMED
        6 claim --next --name backup-*
        2 claim @1 --name nap

        # the wait for a job ends at the timeout
        124 claim --next --wait 1s => cannot claim the next job on sqlite:ROOT/state/jobboard/board.db: no job was claimable within 1s\nhint: `jobboard list` shows the jobs on the board
        none

        # a claim names exactly one job, and a command after the dashes
        0 post resize
        2 claim
        2 claim @1 --next
        2 claim --next --

        # the reason that nothing is claimable counts the paused and the postponed jobs
        0 post deploy
        1 run backup -- false
        0 pause deploy
        6 claim --next => no job is claimable (1 paused, 1 backing off)

        # a postponed job is claimed only by name
        0 post resize
        sql UPDATE job SET not_before = 4102444800000000
        6 claim --next
        0 claim @1

        # no job to run for differs from an unreachable board
        6 claim --next --json -- true => {"error":{"code":6,"kind":"not-found"
        0 post resize
        6 claim --next --filter name=x -- true
        124 claim --next --wait 50ms --filter name=x -- true
        125 JOBBOARD_URL=redis://127.0.0.1:1 claim --next --json -- true => {"error":{"code":125,"kind":"unreachable"

        # the expiry of a claim is printed and applied, and its default owner is USER@HOST
        0 post resize
        0 claim @1 --expiry 1h30m --json -> "expires_in":5400.0 -> "owner":"user@host"
        0 show @1 --json -> "lease":"timed"
        0 list --columns name --filter 'expires>1h28m and expires<=1h30m' == resize

        # a claimed job cannot be claimed again
        0 post resize
        0 claim @1 --who ada
        4 claim @1 --who ada --json => "kind":"already-claimed" => you already hold the claim => `jobboard extend 00000001-0000-0000-0000-000000000000 --expiry 15m --who ada` extends the claim; `jobboard consume 00000001-0000-0000-0000-000000000000 --who ada` completes
        4 claim @1 --who bob => cannot claim resize on sqlite:ROOT/state/jobboard/board.db: the job is claimed by ada\nhint: `jobboard claim --next` claims another job; if the owner of this one is gone, `jobboard abandon --force 00000001-0000-0000-0000-000000000000` releases the claim
        0 owner @1 == ada
        0 extend @1 --expiry 15m --who ada
        0 consume @1 --who ada --dry-run
        "#,
    );
}
