//! Sibling boards with TaskFlow's shared trash.

use serde_json::json;

use crate::{
    interop::shared::{Shared, Side},
    support::{Host, ZooKeeper},
};

/// Two boards that share a trash; each has one job there.
struct Neighbours {
    shared: Shared<ZooKeeper>,
    beside: String,
    ours: String,
    theirs: String,
}

impl Neighbours {
    fn new() -> Option<Self> {
        let shared = Shared::<ZooKeeper>::new()?;
        let (here, beside) = (shared.server.board(), shared.server.beside());
        let post = |board: &str, name: &str| {
            let post = ["--board", board, "post", name];
            shared.env.run(post).posted()
        };
        let trash = |board: &str, job: &str| {
            let trash = ["--board", board, "trash", job, "--force", "--yes"];
            shared.env.ok(trash);
        };
        let ours = post(&here, "ours");
        // So that their numbers differ.
        post(&beside, "first");
        let theirs = post(&beside, "theirs");
        trash(&here, &ours);
        trash(&beside, &theirs);
        Some(Self {
            shared,
            beside,
            ours,
            theirs,
        })
    }

    fn run(&self, words: &[&str]) -> crate::support::Outcome {
        self.shared.env.run(words)
    }

    /// Returns the names of a trash listing.
    fn names(&self, words: &[&str]) -> Vec<String> {
        let mut names = self
            .run(&[&["list", "--trash", "--json"], words].concat())
            .each("name");
        names.sort();
        names
    }
}

#[test]
fn trash_lists_its_own_board_unless_shared() {
    need!(site = Neighbours::new());
    assert_eq!(site.names(&[]), ["ours"]);
    assert_eq!(site.names(&["--shared"]), ["ours", "theirs"]);
    assert_eq!(site.names(&["--board", &site.beside]), ["theirs"]);
    let listed = site.run(&["list", "--trash"]);
    listed.warns("1 more of other boards");
    for (words, count) in [
        (&["ping", "--json"][..], 1),
        (&["ping", "--json", "--shared"], 2),
    ] {
        assert_eq!(site.run(words).json()["trashed"], count);
    }
    let shown = site.run(&["show", &site.theirs, "--json"]).json();
    let problem = shown["problem"].as_str().unwrap();
    assert!(problem.contains("/others"), "{problem}");

    let purged = site.run(&["purge", "--all", "--yes"]);
    assert_eq!(purged.succeeded().lines().count(), 1, "{purged}");
    purged.warns("1 of 2");
    assert_eq!(site.names(&["--shared"]), ["theirs"]);
    site.run(&["purge", "--all", "--yes", "--shared"])
        .succeeded();
    assert_eq!(site.names(&["--shared"]), [""; 0]);
}

#[test]
fn job_is_changed_in_the_trash_by_its_own_board_only() {
    need!(site = Neighbours::new());
    let refused = site.run(&["change", &site.theirs, "--priority", "LOW"]);
    refused.fails(8, format!("use --board {}", site.beside));
    site.run(&["change", &site.ours, "--priority", "LOW"])
        .succeeded();
    assert_eq!(site.names(&[]), ["ours"]);
    assert_eq!(site.names(&["--board", &site.beside]), ["theirs"]);
    site.run(&["restore", &site.ours]).succeeded();
    assert_eq!(site.shared.env.show(&site.ours)["priority"], "LOW");
}

#[test]
fn job_of_another_board_is_restored_only_on_request() {
    need!(site = Neighbours::new());
    for verb in ["restore", "purge"] {
        let refused = site.run(&[verb, &site.theirs, "--yes"]);
        let message = refused.failed(8);
        assert!(
            message.contains(&format!("use --board {},", site.beside))
                && message.contains("--shared"),
            "{message}"
        );
    }
    assert_eq!(site.shared.env.names(), [""; 0]);
    let there = ["--board", &site.beside, "restore", &site.theirs];
    site.run(&there).succeeded();
    let trash = format!("trash {} --force --yes", site.theirs);
    site.shared
        .env
        .ok(format!("--board {} {trash}", site.beside));
    site.run(&["restore", &site.theirs, "--shared"]).succeeded();
    assert_eq!(site.shared.env.names(), ["theirs"]);
    site.run(&["restore", &site.ours]).succeeded();
}

#[test]
fn peer_trashed_job_is_listed_and_confirmed() {
    need!(mut site = Neighbours::new());
    let shared = &mut site.shared;
    let job = shared.post(Side::TaskFlow, "peers", "NORMAL", &json!({}));
    shared.does(Side::TaskFlow, "claim", &job, "ada").unwrap();
    shared.does(Side::TaskFlow, "trash", &job, "ada").unwrap();
    assert_eq!(site.names(&[]), ["ours", "peers"]);
    let shown = site.run(&["show", &job, "--json"]).json();
    let problem = shown["problem"].as_str().unwrap();
    assert!(problem.contains("another client trashed"), "{problem}");
    let purged = site.run(&["purge", "--older-than", "1ms", "--yes"]);
    purged.warns("2 of 3");
    assert_eq!(site.names(&[]), ["peers"]);
    let refused = site.run(&["restore", &job]);
    refused.fails(8, "--yes");
    refused.warns("may belong to another board that shares this trash");
    site.run(&["restore", &job, "--yes"]).succeeded();
    assert_eq!(site.shared.env.names(), ["peers"]);
}

#[test]
fn reused_number_is_reported() {
    need!(mut site = Neighbours::new());
    let other = json!({"uuid": "other", "name": "other", "priority": "NORMAL", "details": {}});
    let shared = &mut site.shared;
    let server = &shared.server;
    server.create(&mut shared.peer, "job0000000000", &other.to_string());
    let refused = site.run(&["restore", &site.ours]);
    let message = refused.failed(4);
    assert!(message.contains("another job at"), "{message}");
    assert!(message.contains("/jobs/job0000000000"), "{message}");
    assert!(!message.contains("with the uuid"), "{message}");
    let consume = ["consume", "key:job0000000000", "--force", "--yes"];
    site.run(&consume).succeeded();
    // The restored job took the data of its number along.
    site.run(&["restore", &site.ours, "--yes"]).succeeded();
}
