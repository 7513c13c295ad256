//! `jobboard consume`.

use crate::support::play;

#[test]
fn ends_and_refusals() {
    play(
        r#"
        # the owner consumes a job
        0 post resize
        4 consume @1 => cannot consume @1 on sqlite:ROOT/state/jobboard/board.db: the job is not claimed\nhint: `jobboard consume --force --yes @1` also works on an unclaimed job
        0 claim @1 --who ada
        2 consume => error: no job given: name one or use --state, --name, --filter or --problem
        4 consume @1 --who bob --json => {"error":{"code":4,"kind":"not-owner"
        0 consume @1 --who ada --json == {"uuid":"00000001-0000-0000-0000-000000000000","name":"resize","done":"consumed"}
        names

        # the table output names the result
        0 post resize
        0 claim @1 --who ada
        0 consume @1 --who ada -o table == consumed 00000001 resize

        # force consumes any job
        0 post resize
        0 claim @1 --who ada
        0 post other
        0 consume @1 @2 --force --yes == 00000001-0000-0000-0000-000000000000\tresize\tconsumed\n00000002-0000-0000-0000-000000000000\tother\tconsumed =>   00000001 resize (claimed by ada)\n  00000002 other
        names
        "#,
    );
}
