//! The faults of a scenario.

use std::{sync::Arc, time::Duration};

use chrono::TimeDelta;
use tokio::time::{self, Instant};

use super::{RunningProgram, World};
use crate::{
    board::testing::simulated::{ClaimLifetime, Refusal, Store},
    process::simulation::{Standing, guard_of},
};

const REFUSALS: [(&str, Refusal); 4] = [
    ("out of memory", Refusal::OutOfMemory),
    ("read-only", Refusal::ReadOnly),
    ("changes denied", Refusal::ChangesDenied),
    ("all denied", Refusal::Denied),
];

impl World {
    pub(super) async fn fault(&mut self) {
        for place in &mut self.running {
            place.take_if(|running| running.task.is_finished());
        }
        let at = self.draw(|dice| dice.below(self.running.len() as u64) as usize);
        let program = self.running[at].as_ref().map(|it| it.program);
        let fault = match (self.draw(|dice| dice.below(22)), program) {
            (which @ 0..9, Some(program)) => self.harm(which, at, program),
            (0..9, None) => {
                self.start_conductor(at);
                "started"
            }
            (which, _) => self.disturb(which).await,
        };
        *self.figures.faults.entry(fault).or_default() += 1;
        self.machine.note(format_args!("{fault}: c{at}"));
    }

    fn until(&self, most: u64) -> Instant {
        let long = (Duration::from_millis(200), Duration::from_secs(most));
        Instant::now() + self.draw(|dice| dice.between(long))
    }

    fn harm(&mut self, which: u64, at: usize, program: u32) -> &'static str {
        match which {
            0..=2 if self.scenario.spares_conductors => {
                self.machine.kill_guard(program);
                "guard killed"
            }
            0 | 1 => {
                let running = self.running[at].take();
                self.kill(running);
                "killed"
            }
            2 => {
                self.machine.unguard(program);
                self.machine.kill_guard(program);
                let running = self.running[at].take();
                self.kill(running);
                "killed with its guard"
            }
            3 | 4 => {
                self.stop(program, 120);
                "stopped"
            }
            5 => {
                self.machine.unguard(program);
                self.stop(guard_of(program), 20);
                self.stop(program, 90);
                "stopped with its guard"
            }
            6 => {
                self.machine.kill_guard(program);
                "guard killed"
            }
            _ => {
                let end = self.until(90);
                self.server
                    .change_faults(|it| _ = it.cut.insert(program, end));
                "cut off"
            }
        }
    }

    /// Faults of the server, the network and the clock, and acts of people and peers.
    async fn disturb(&mut self, which: u64) -> &'static str {
        match which {
            9 => {
                let end = self.until(40);
                self.server.change_faults(|it| it.down_until = Some(end));
                "server down"
            }
            10 => {
                let (fault, refusal) = self.draw(|dice| REFUSALS[dice.below(4) as usize]);
                let end = self.until(40);
                self.server
                    .change_faults(|it| it.refuses_until = Some((refusal, end)));
                fault
            }
            11 | 12 => {
                let end = self.until(120);
                self.server.change_faults(|it| it.rough_until = Some(end));
                "rough network"
            }
            // Sessions do not depend on the time of day.
            13 if self.scenario.lifetime == ClaimLifetime::Expiry
                && self.draw(|dice| dice.below(2)) == 0 =>
            {
                let offset = self.draw(|dice| Duration::from_secs(dice.below(3600)));
                self.server.change(|store| store.set_clock(offset));
                "server clock set"
            }
            13 => {
                let seconds = self.draw(|dice| dice.below(7200) as i64 - 3600);
                self.set_wall_clock(TimeDelta::seconds(seconds));
                "clock set"
            }
            14 => {
                self.release_by_force().await;
                "released by force"
            }
            15 => {
                self.retry_all().await;
                "retried"
            }
            16 => {
                self.pause().await;
                "paused"
            }
            17 => {
                self.peer().await;
                "claimed by a peer"
            }
            18 => {
                let end = self.until(60);
                self.server.change_faults(|it| it.slow_until = Some(end));
                "slow network"
            }
            19 => {
                self.start_shell();
                "run by a shell"
            }
            20 => self.disturb_shell(),
            _ if self.scenario.loses_writes => {
                self.lose_writes();
                "last writes lost"
            }
            _ => {
                self.start_shell();
                "run by a shell"
            }
        }
    }

    fn kill(&self, running: Option<RunningProgram>) {
        let Some(RunningProgram { program, task }) = running else {
            return;
        };
        self.machine.set(program, Standing::Dead);
        task.abort();
    }

    fn stop(&self, program: u32, most: u64) {
        let end = self.until(most);
        self.machine.set(program, Standing::Stopped);
        let machine = Arc::clone(&self.machine);
        tokio::spawn(async move {
            time::sleep_until(end).await;
            machine.set(program, Standing::Runs);
        });
    }

    fn disturb_shell(&mut self) -> &'static str {
        self.shells.retain(|it| !it.task.is_finished());
        let at = self.draw(|dice| dice.below(self.shells.len() as u64) as usize);
        let Some(shell) = self.shells.get(at) else {
            self.start_shell();
            return "run by a shell";
        };
        if self.draw(|dice| dice.below(2)) == 0 {
            self.stop(shell.program, 120);
            return "shell stopped";
        }
        let shell = self.shells.swap_remove(at);
        self.kill(Some(shell));
        "shell killed"
    }

    /// Restarts the server without the writes of the last seconds.
    fn lose_writes(&self) {
        self.server.change(Store::save);
        let long = (Duration::from_millis(500), Duration::from_secs(10));
        let long = self.draw(|dice| dice.between(long));
        let (server, machine) = (Arc::clone(&self.server), Arc::clone(&self.machine));
        tokio::spawn(async move {
            time::sleep(long).await;
            machine.note("the server restarts");
            server.change(Store::lose_writes);
            let end = Instant::now() + Duration::from_secs(1);
            server.change_faults(|it| it.down_until = Some(end));
        });
    }
}
