//! `jobboard man`.

use crate::support::env::Env;

#[test]
fn the_page_is_printed() {
    let run = Env::new().jobboard(&["man"]).run();
    assert!(run.succeeded().contains(".TH jobboard 1"), "{run}");
}

#[test]
fn a_page_for_each_command_is_written_to_a_folder() {
    let env = Env::new();
    let run = env.jobboard(&["man", "share/man1"]).run();
    assert_eq!(run.succeeded(), "share/man1\n");
    for page in ["jobboard.1", "jobboard-post.1", "jobboard-conductors.1"] {
        let path = env.file("share/man1").join(page);
        assert!(std::fs::metadata(path).unwrap().len() > 200, "{page}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let env = Env::new();
    std::fs::write(env.file("file"), "").unwrap();
    let run = env.jobboard(&["man", "file/man1"]).run();
    assert!(run.failed(1).contains("file/man1"), "{run}");
}

#[test]
fn it_needs_no_configuration() {
    let env = Env::new();
    let man = env.jobboard(&["man"]).env("JOBBOARD_URL", "nonsense:");
    man.run().succeeded();
}
