//! `jobboard conductors`.

use crate::{
    conduct::Stage,
    support::{Env, play},
};

#[test]
fn empty_registry_lists_nothing() {
    let env = Env::new();
    assert_eq!(env.run("conductors --json").succeeded(), "[]\n");
    assert!(!env.board().exists());
}

#[test]
fn killed_conductor_is_listed_while_it_holds_a_claim() {
    let stage = Stage::embedded().unwrap();
    let idle = stage.start(&["--name", "dead2", "--lease", "1h", "--filter", "name=other"]);
    let job = stage.post("long", "echo began >> log; sleep 600");
    let killed = stage.start(&["--name", "dead1", "--lease", "1h"]);
    stage.logged(1);
    let pid = killed.pid();
    idle.kill();
    killed.kill();
    // The registrations end, as after half a minute.
    let age = "UPDATE conductor SET alive_boot = alive_boot - 60000";
    assert_eq!(stage.env.database().execute(age, []).unwrap(), 2);
    let listed = stage.env.json("conductors --json");
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    let dead = &listed[0];
    assert_eq!(
        (&dead["name"], &dead["silent"]),
        (&"dead1".into(), &true.into()),
        "{dead}"
    );
    assert_eq!(dead["pid"], pid);
    let line = stage.env.run("conductors");
    assert!(line.succeeded().ends_with("\tgone\n"), "{line}");
    let waiting = stage.env.post("waits");
    let explained = stage.env.run(format!("explain {waiting}"));
    assert!(!explained.stdout.contains("dead2"), "{explained}");
    let shown = stage.env.run("dash --once --view conductors");
    shown.shows("dead1");
    assert!(!shown.stdout.contains("dead2"), "{shown}");
    stage
        .env
        .run("conductors dead1 -o table")
        .prints(" ago (gone)");

    stage.env.ok(format!("abandon {job} --force --yes"));
    assert_eq!(stage.env.run("conductors --json").succeeded(), "[]\n");
    stage.start(&["--name", "dead1"]).kill();
}

#[test]
fn empty_listings_have_the_same_note() {
    play(
        r#"
        # empty listings have the same note
        0 conductors -o table == (nothing) => no job was ever posted on
        0 list -o table == (nothing) => no job was ever posted on
        0 list --trash -o table == (nothing) => no job was ever posted on
        0 post resize
        0 conductors -o table == (nothing) => no conductor is running
        0 list --trash -o table == (nothing) => the trash is empty
        0 list --filter name=x -o table == (nothing) => no job matches

        # live conductors are listed
        0 post resize
        sql INSERT INTO conductor (name, host, pid, since, owner, token, alive_boot) VALUES ('c1', 'h1', 42, 1700000000000000, CAST('c1:owner' AS BLOB), 't', 9000000000000), ('c2', 'h1', 43, 1700000000000000, CAST('c2:owner' AS BLOB), 't', 0)
        0 conductors == c1\th1\t42\tTIME\t\t\t0\t0
        "#,
    );
}
