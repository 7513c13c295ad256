//! `jobboard man`.

use crate::support::{Env, assert_contains, play};

#[test]
fn man_prints_the_page() {
    let run = Env::new().run("man");
    run.prints(".TH jobboard 1");
}

#[test]
fn man_writes_pages_to_a_directory() {
    let env = Env::new();
    assert_eq!(env.run("man share/man").succeeded(), "share/man\n");
    let read = |page: &str| {
        let path = env.file("share/man").join(page);
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{page}: {error}"))
    };
    for page in ["jobboard.1", "jobboard-post.1", "jobboard-conductors.1"] {
        let text = read(page);
        let parts = [
            "NAME",
            "SYNOPSIS",
            "DESCRIPTION",
            "OPTIONS",
            "EXAMPLES",
            "\"EXIT STATUS\"",
            "\"SEE ALSO\"",
        ];
        let at = parts.map(|part| {
            text.find(&format!("\n.SH {part}\n"))
                .unwrap_or_else(|| panic!("{page} {part}"))
        });
        assert!(at.is_sorted(), "{page}");
        assert_eq!(
            text.contains("op\\-timeout"),
            page == "jobboard.1",
            "{page}"
        );
    }
    for (topic, words) in [
        ("boards", "redis+unix"),
        ("filters", "details.disks.0.size>10"),
        ("output", "RFC 3339"),
        ("exit-codes", "\\fB124\\fR"),
        ("troubleshooting", "\n.SS claim-never-expires\n"),
        ("conducting", "JOBBOARD_FENCE"),
    ] {
        let text = read(&format!("jobboard-{topic}.7"));
        let title = format!(".TH jobboard-{topic} 7");
        assert!(text.contains(&title) && text.contains(words), "{text}");
        assert_contains(&text, ".SH \"SEE ALSO\"\n\\fBjobboard\\fR(1)");
    }
}

/// `man` checks the pages, if it exists.
#[test]
fn pages_are_well_formed() {
    let env = Env::new();
    env.ok("man pages");
    for page in std::fs::read_dir(env.file("pages")).unwrap() {
        let mut man = std::process::Command::new("man");
        man.args(["--warnings", "--local-file", "--encoding=utf8"])
            .arg(page.unwrap().path());
        man.env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .env("MANROFFSEQ", "");
        let Ok(read) = man.output() else { return };
        let complaints = String::from_utf8_lossy(&read.stderr);
        assert!(
            read.status.success() && complaints.is_empty(),
            "{man:?}: {complaints}"
        );
    }
}

#[test]
fn man_needs_no_configuration() {
    let env = Env::new();
    let man = env.jobboard(&["man"]).env("JOBBOARD_URL", "nonsense:");
    man.run().succeeded();
}

#[test]
fn uncreatable_directory_is_named() {
    play(
        r#"
        # an uncreatable directory
        file file
        1 man file/man1 => file/man1
        "#,
    );
}
