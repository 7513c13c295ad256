//! The progress bar of long work on a terminal.

use std::{io::Write, time::Duration};

use crate::support::{Env, comes_true, wait_until};

#[test]
fn progress_appears_on_a_terminal_and_stays_out_of_the_data() {
    let env = Env::new();
    let mut run = env
        .jobboard("post --from -")
        .at_terminal(80)
        .piped_stdin()
        .spawn();
    let mut input = run.stdin();
    wait_until("the bar appears", || {
        input.write_all(b"{\"name\":\"resize\"}\n").unwrap();
        comes_true(Duration::from_millis(50), || {
            run.stdout().contains("posting")
        })
    });
    drop(input);
    let run = run.ended();
    assert!(!run.succeeded().contains("\u{1b}]9;"), "{run}");
}
