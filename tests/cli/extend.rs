//! `jobboard extend`.

use crate::{
    dump::boards::Boards,
    support::{Env, play},
};

#[test]
fn operator_can_extend_the_claim_of_a_live_owner() {
    let boards = Boards::new();
    for kind in boards.kinds() {
        let board = boards.another(kind);
        let job = boards.run(&board, &["post", "resize"]).posted();
        if kind == "zookeeper" {
            boards
                .run(&board, &["claim", &job, "--who", "ada"])
                .succeeded();
            let extend = [
                "extend", &job, "--force", "--owner", "ada", "--expiry", "2h", "-y",
            ];
            boards
                .run(&board, &extend)
                .fails(4, "this board cannot expire claims");
            continue;
        }
        let claim = ["claim", &job, "--expiry", "1m", "--who", "ada"];
        boards.run(&board, &claim).succeeded();
        let extend = |owner: &str, more: &[&str]| {
            let words = [
                "extend", &job, "--expiry", "2h", "--force", "--owner", owner,
            ];
            boards.run(&board, &[&words[..], more].concat())
        };
        extend("ada", &[]).fails(8, "confirmation is required");
        extend("bob", &["--yes"]).fails(4, "not claimed by bob");
        let left = |words: &[&str]| {
            let job = boards.run(&board, words).json();
            assert_eq!(job["owner"], "ada");
            job["expires_in"].as_f64().unwrap()
        };
        let show = ["show", &job, "--json"];
        assert!(left(&show) <= 60.0);
        extend("ada", &["--yes"]).succeeded();
        assert!(left(&show) > 7000.0);
        boards
            .run(&board, &["abandon", &job, "--who", "ada"])
            .succeeded();
        extend("ada", &["--yes"]).fails(4, "is not claimed");
    }
    let alone = Env::new();
    for words in [
        &["extend", "@1", "--expiry", "2h", "--force"][..],
        &["extend", "@1", "--expiry", "2h", "--owner", "ada"],
    ] {
        alone.fails(2, words);
    }
}

#[test]
fn refusals_and_separate_reports() {
    play(
        r#"
        # extensions are refused without an expiry or a claim
        0 post resize
        2 extend @1
        4 extend @1 --expiry 2h --json => {"error":{"code":4,"kind":"not-claimed"
        0 claim @1 --expiry 1m --who ada
        4 extend @1 --expiry 2h --who bob => cannot extend @1 on sqlite:ROOT/state/jobboard/board.db: the job is claimed by ada, not by bob\nhint: if the claim is yours under another name, add `--who NAME`; if the owner is gone, `jobboard abandon --force @1` releases the claim
        0 list --columns name --filter expires<2m == resize
        2 extend @1 --expiry 2h --force
        2 extend @1 --expiry 2h --owner ada

        # several extensions are reported separately
        0 post resize
        0 claim @1 --expiry 1m --who ada
        0 post other
        7 extend @1 @2 --expiry 2h --who ada --json -> "done":"extended" -> "expires_in":7200.0 => not-claimed
        0 list --filter expires>1h --columns name == resize

        # the new expiry counts from now
        0 post resize
        0 claim @1 --expiry 1m --who ada
        0 extend @1 --expiry 2h --who ada --json -> "done":"extended" -> "expires_in":7200.0
        0 list --columns name --filter 'expires>1h58m and expires<=2h' == resize
        "#,
    );
}
