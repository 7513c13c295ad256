//! Conductors that are reloaded and upgraded at work.

use std::{fs, path::PathBuf};

use super::{alone, each_ran_once};
use crate::{
    conduct::{Stage, on_every_board},
    faults::size,
    support::{Manager, Running, copy_program, wait_until},
};
use rustix::process::Signal;

on_every_board!(jobs_run_once_across_reloads_and_upgrades);

/// Replaces the running program with a copy, as package managers do.
fn install(stage: &Stage) -> PathBuf {
    let (program, new) = (stage.env.file("jobboard"), stage.env.file("jobboard.new"));
    copy_program(&new);
    fs::rename(&new, &program).unwrap();
    program
}

fn start(stage: &Stage, manager: &Manager) -> Running {
    let allow: &[&str] = match stage.is_network() {
        true => &["--allow-any"],
        false => &[],
    };
    let words = [&["conduct", "-j4", "--output", "discard"], allow].concat();
    let conduct = stage.env.program(&install(stage), &words).in_session();
    let ready = manager.count("READY=1");
    let conductor = manager.over(conduct).spawn();
    wait_until("it is ready", || manager.count("READY=1") > ready);
    conductor
}

fn jobs_run_once_across_reloads_and_upgrades(stage: &Stage) {
    let (count, reloads, upgrades) = (size(1_000, 90), 10, 2);
    let jobs = stage.post_many(count, &alone("sleep 0.01"));
    let manager = Manager::start(&stage.env);
    let mut conductor = start(stage, &manager);
    for reload in 1..=reloads {
        stage.logged(count * 2 * reload / (reloads + 2));
        if reload % (reloads / upgrades) == 0 {
            // It keeps the old program until its restart.
            install(stage);
            stage.logged(count * 2 * reload / (reloads + 2) + 4);
            conductor.stops();
            conductor = start(stage, &manager);
        }
        let ready = manager.count("READY=1");
        conductor.signal(Signal::HUP);
        wait_until("it is ready again", || manager.count("READY=1") > ready);
    }
    wait_until("all have run", || stage.log().len() >= count * 2);
    conductor.stops();
    assert_eq!(manager.count("RELOADING=1"), reloads);
    each_ran_once(stage, jobs);
    eprintln!(
        "faults: {count} jobs ran once each across {reloads} reloads and {upgrades} upgrades"
    );
}
