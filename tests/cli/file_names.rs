//! Board files with several names: one name is used at a time, and no acknowledged change is lost.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use rustix::process::{Signal, geteuid};

use crate::support::{Env, Outcome, wait_until, words};

/// A board whose file gets a second name.
struct Named {
    env: Env,
}

impl Named {
    fn new() -> Self {
        let env = Env::new();
        let named = Self { env };
        named.run("one.db", &["post", "first"]).succeeded();
        named
    }

    fn file(&self, name: &str) -> PathBuf {
        self.env.file(name)
    }

    fn words(name: &str, words: &[&str]) -> Vec<String> {
        let board = ["--board".to_owned(), format!("sqlite:{name}")];
        let words = words.iter().map(|word| (*word).to_owned());
        words.chain(board).collect()
    }

    fn run(&self, name: &str, words: &[&str]) -> Outcome {
        let words = Self::words(name, words);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        self.env.run(words)
    }

    fn count(&self, name: &str) -> String {
        let run = self.run(name, &["list", "--count"]);
        run.succeeded().trim().to_owned()
    }

    /// Requires that a name is refused for every command, and that no file is created next to it.
    fn is_refused(&self, name: &str, why: &str, way_out: &str) {
        let before = self.files_of(name);
        for words in [&["list"][..], &["post", "more"], &["claim", "--next"]] {
            let run = self.run(name, words);
            let message = run.failed(8);
            assert!(message.contains(why) && message.contains(way_out), "{run}");
        }
        let run = self.run(name, &["list", "--json"]);
        assert_eq!(run.error()["kind"], "refused", "{run}");
        assert_eq!(self.files_of(name), before);
    }

    /// Returns the files of this name. A process with another name creates files too.
    fn files_of(&self, name: &str) -> BTreeSet<String> {
        let files = fs::read_dir(self.file("")).unwrap();
        let files = files.map(|it| it.unwrap().file_name().into_string().unwrap());
        files.filter(|file| file.starts_with(name)).collect()
    }

    /// Checkpoints the log of this name into the file.
    fn empty_log(&self, name: &str) {
        let file = rusqlite::Connection::open(self.file(name)).unwrap();
        let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
        file.query_row(empty, [], |_| Ok(())).unwrap();
    }

    fn link(&self) {
        fs::hard_link(self.file("one.db"), self.file("two.db")).unwrap();
    }

    /// Posts by both names concurrently, and requires every acknowledged job.
    fn posts_by_both(&self, names: [&str; 2]) {
        let spawn = |number: usize| {
            let words = Self::words(names[number % 2], &["post", "more"]);
            let words: Vec<_> = words.iter().map(String::as_str).collect();
            self.env.jobboard(&words).spawn()
        };
        let posts: Vec<_> = (0..16).map(spawn).collect();
        let ended: Vec<_> = posts.into_iter().map(|post| post.ended()).collect();
        let is_posted = |run: &&Outcome| run.code == 0;
        let (posted, refused): (Vec<_>, Vec<_>) = ended.iter().partition(is_posted);
        assert!(refused.iter().all(|run| run.code == 8), "{refused:?}");
        assert!(!posted.is_empty());
        let used = names
            .iter()
            .find(|name| self.run(name, &["list"]).code == 0);
        let listed = self.run(used.unwrap(), &["list", "-o", "uuid"]);
        let listed: BTreeSet<_> = listed.succeeded().lines().collect();
        for post in posted {
            assert!(listed.contains(&*post.posted()), "{post:?}");
        }
        let file = rusqlite::Connection::open(self.file(used.unwrap())).unwrap();
        let whole: String = file
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .unwrap();
        assert_eq!(whole, "ok");
    }
}

const LOG: &str = "whose log may contain more jobs";

#[test]
fn posts_by_two_hard_links_succeed_or_are_refused() {
    let named = Named::new();
    named.link();
    named.posts_by_both(["one.db", "two.db"]);
    named.run("one.db", &["post", "last"]).succeeded();
    named.is_refused("two.db", LOG, "`--board sqlite:");
}

#[test]
fn first_posts_by_two_names_succeed_or_are_refused() {
    for _ in 0..5 {
        let named = Named { env: Env::new() };
        fs::write(named.file("one.db"), "").unwrap();
        named.link();
        named.posts_by_both(["one.db", "two.db"]);
    }
}

#[test]
fn hard_link_is_refused_while_the_first_name_is_in_use() {
    let named = Named::new();
    named.empty_log("one.db");
    named.link();
    let watch = named.env.jobboard("watch --board sqlite:one.db").spawn();
    wait_until("the board is open", || {
        let open = fs::read_dir(format!("/proc/{}/fd", watch.pid())).unwrap();
        let mut files = open.filter_map(|it| fs::read_link(it.unwrap().path()).ok());
        files.any(|file| file.ends_with("one.db-wal"))
    });
    named.is_refused(
        "two.db",
        "another process uses the file under the name",
        "one.db`",
    );
    watch.signal(Signal::TERM);
    let _ = watch.ended();
    assert_eq!(named.count("two.db"), "1");
    named.run("two.db", &["post", "second"]).succeeded();
    named.is_refused("one.db", LOG, "two.db`");
}

#[test]
fn hard_link_backup_is_usable_once_the_log_is_empty() {
    let named = Named::new();
    named.link();
    named.run("one.db", &["post", "second"]).succeeded();
    named.is_refused("two.db", LOG, "one.db`");
    assert_eq!(named.count("one.db"), "2");
    named.empty_log("one.db");
    assert_eq!(named.count("two.db"), "2");
    assert_eq!(named.count("one.db"), "2");
    // A linked log is the same log under both names.
    let mut copy = Command::new("cp");
    copy.arg("-al")
        .arg(named.file(""))
        .arg(named.env.root().join("backup"));
    assert!(copy.status().unwrap().success());
    named.run("one.db", &["post", "third"]).succeeded();
    assert_eq!(named.count("one.db"), "3");
    assert_eq!(named.count("../backup/one.db"), "3");
    assert_eq!(named.count("one.db"), "3");
}

#[test]
fn name_keeps_its_log_after_a_crash() {
    let named = Named::new();
    named.empty_log("one.db");
    let words = words("claim @1 --board sqlite:one.db -- sleep 600");
    let claim = named.env.jobboard(&words).spawn();
    wait_until("the job is claimed", || {
        let run = named.run("one.db", &["show", "@1", "--json"]);
        run.json()["state"] == "CLAIMED"
    });
    claim.kill();
    named.link();
    named.is_refused("two.db", LOG, "one.db`");
    assert_eq!(named.count("one.db"), "1");
}

#[test]
fn signal_that_is_a_hard_link_is_not_written() {
    let env = Env::new();
    env.post("first");
    let (victim, signal) = (env.file("victim"), env.board().with_extension("db-signal"));
    std::fs::write(&victim, "victim").unwrap();
    let _ = std::fs::remove_file(&signal);
    std::fs::hard_link(&victim, signal).unwrap();
    env.post("second");
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "victim");
}

#[test]
fn symbolic_link_is_the_same_name() {
    let named = Named::new();
    std::os::unix::fs::symlink("one.db", named.file("link.db")).unwrap();
    named.posts_by_both(["one.db", "link.db"]);
    assert_eq!(named.count("one.db"), "17");
    assert_eq!(named.count("link.db"), "17");
    let names = fs::read_dir(named.file("")).unwrap();
    let beside = names.filter(|it| {
        let name = it.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("link.db-")
    });
    assert_eq!(beside.count(), 0);
}

#[test]
fn moved_file_needs_its_log() {
    let named = Named::new();
    fs::create_dir(named.file("there")).unwrap();
    fs::rename(named.file("one.db"), named.file("there/two.db")).unwrap();
    named.is_refused("there/two.db", LOG, "keeps the jobs in the log");
    // A board made here would overwrite the log.
    for words in [&["post", "other"][..], &["wait", "--empty"], &["doctor"]] {
        let run = named.run("one.db", words);
        run.fails(8, "may contain jobs of a moved board");
    }
    let log = |name: &str| named.file(&format!("{name}-wal"));
    fs::rename(log("one.db"), log("there/two.db")).unwrap();
    assert_eq!(named.count("there/two.db"), "1");
    named.run("there/two.db", &["post", "second"]).succeeded();
    // A directory is moved with its contents.
    fs::rename(named.file("there"), named.file("elsewhere")).unwrap();
    assert_eq!(named.count("elsewhere/two.db"), "2");
    named.empty_log("elsewhere/two.db");
    fs::rename(named.file("elsewhere/two.db"), named.file("three.db")).unwrap();
    assert_eq!(named.count("three.db"), "2");
}

#[test]
fn copied_file_is_a_separate_board() {
    let named = Named::new();
    named.empty_log("one.db");
    let copy = |from: &str, to: &str| {
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(named.file(from)).arg(named.file(to));
        assert!(copy.status().unwrap().success());
    };
    copy("one.db", "two.db");
    for name in ["two.db", "one.db"] {
        named.run(name, &["post", "second"]).succeeded();
        assert_eq!(named.count(name), "2");
    }
}

#[test]
fn board_of_an_earlier_release_has_no_name_yet() {
    let named = Named::new();
    let forget = || {
        rustix::fs::removexattr(named.file("one.db"), "user.jobboard.name").unwrap();
    };
    forget();
    assert_eq!(named.count("one.db"), "1");
    named.link();
    named.is_refused("two.db", LOG, "one.db`");
}

#[test]
fn mount_of_the_file_is_another_name_and_mount_of_its_directory_is_not() {
    let named = Named::new();
    if !geteuid().is_root() {
        eprintln!("names: skipped mounts, as this user cannot make any");
        return;
    }
    fs::create_dir(named.file("there")).unwrap();
    fs::write(named.file("two.db"), "").unwrap();
    let mounted = |mount: &str, board: &str, words: &[&str]| {
        let script = format!("mount --bind {mount} && exec \"$@\"");
        let words = Named::words(board, words);
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let run = named.env.jobboard(&words).in_shell(&script);
        run.in_namespace().run()
    };
    let alone = |words: &[&str]| mounted("one.db two.db", "two.db", words);
    let directory = |words: &[&str]| mounted(". there", "there/one.db", words);
    alone(&["post", "second"]).fails(8, LOG);
    directory(&["post", "second"]).succeeded();
    assert_eq!(named.count("one.db"), "2");
    named.empty_log("one.db");
    alone(&["post", "third"]).succeeded();
    named.run("one.db", &["list"]).fails(8, LOG);
    assert_eq!(alone(&["list", "--count"]).succeeded(), "3\n");
}

/// SQLite applies any log or journal beside a board.
#[test]
fn planted_log_is_refused_before_it_is_applied() {
    let named = Named::new();
    named.empty_log("one.db");
    let before = fs::read(named.file("one.db")).unwrap();
    let sticky = std::os::unix::fs::PermissionsExt::from_mode(0o1777);
    fs::set_permissions(named.file(""), sticky).unwrap();
    let suffixes = ["-journal", "-wal", "-shm"].into_iter();
    for suffix in suffixes.filter(|_| rustix::process::geteuid().is_root()) {
        let planted = named.file(&format!("one.db{suffix}"));
        fs::write(&planted, [7; 512]).unwrap();
        std::os::unix::fs::chown(&planted, Some(65534), None).unwrap();
        named.is_refused("one.db", "belongs to another user", "`ls -l ");
        fs::remove_file(planted).unwrap();
    }
    let pipe = named.file("one.db-journal");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    named.is_refused("one.db", "is not a regular file", "`ls -l ");
    assert_eq!(fs::read(named.file("one.db")).unwrap(), before);
}
