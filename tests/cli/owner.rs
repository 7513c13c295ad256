//! `jobboard owner`.

use crate::support::play;

#[test]
fn owners_are_printed_and_missing_ones_are_errors() {
    play(
        r#"
        # the owners of jobs
        3 owner @1 --json => {"error":{"code":3,"kind":"not-found"
        0 post resize
        6 owner @1 => cannot show the owner of resize on sqlite:ROOT/state/jobboard/board.db: the job is not claimed\nhint: `jobboard claim @1` claims the job
        0 claim @1 --who ada
        0 owner @1 == ada
        0 owner @1 --json == {"uuid":"00000001-0000-0000-0000-000000000000","name":"resize","owner":"ada","host":null}
        0 post other
        0 claim @2 --who bob
        0 owner @1 @2 == 00000001-0000-0000-0000-000000000000\tada\n00000002-0000-0000-0000-000000000000\tbob
        0 post free
        7 owner - --json << @2\n@3\n == {"uuid":"00000001-0000-0000-0000-000000000000","name":"other","owner":"bob","host":null} => the job is not claimed
        "#,
    );
}
