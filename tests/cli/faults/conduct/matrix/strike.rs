//! The effect of each fault.

use std::{
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal};

use super::{
    super::lost_replies::{CHECKS_FIRST, FENCE, REMOVES_FIRST},
    cell::{Fault, Part, Request},
    chance::Dice,
    worker::{Worker, signal},
};
use crate::{
    conduct::Kind,
    support::{Env, Proxy, ProxyMode, comes_true},
};

/// The targets of a fault.
pub(super) struct Scene<'a> {
    pub(super) env: &'a Env,
    pub(super) server: Option<&'a mut Kind>,
    pub(super) workers: &'a [Worker],
    pub(super) others: &'a [Other],
    pub(super) lease: Duration,
}

/// Another client of the board, with one process at a time.
#[derive(Default)]
pub(super) struct Other {
    pub(super) proxy: Option<Proxy>,
    pub(super) process: Mutex<Option<Pid>>,
}

impl Other {
    fn process(&self) -> Option<Pid> {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scene<'_> {
    /// Strikes once, and returns at the end of the fault.
    pub(super) fn strike(&mut self, fault: Fault, dice: &mut Dice) {
        let span = dice.tenths(self.lease, 3, 15);
        match fault {
            Fault::Nothing => thread::sleep(span),
            Fault::Kill(part) => {
                signal(&self.processes(part, dice), Signal::KILL);
            }
            Fault::Stop(part) => {
                let processes = self.processes(part, dice);
                signal(&processes, Signal::STOP);
                thread::sleep(span);
                signal(&processes, Signal::CONT);
            }
            Fault::Cut => self.proxies(dice).into_iter().for_each(Proxy::cut),
            Fault::Stall(mode) => self.stall(mode, span, dice),
            Fault::Slow => self.stall(ProxyMode::Slow, span, dice),
            Fault::Away => {
                let span = dice.tenths(self.lease, 12, 25);
                self.stall(ProxyMode::Halt, span, dice);
            }
            Fault::Swallow(request) => self.swallow(request, span, dice),
            Fault::Restart => {
                let span = dice.tenths(self.lease, 0, 10);
                let server = self.server.as_mut().expect("a server");
                server.stop();
                thread::sleep(span);
                server.start_again();
            }
            Fault::HungUp => {
                if let Some(Kind::Redis(server)) = &self.server {
                    server.run(&["CLIENT", "KILL", "TYPE", "normal"]);
                    server.run(&["CLIENT", "KILL", "TYPE", "pubsub"]);
                }
            }
            Fault::Locked => {
                let database = self.env.database();
                database.execute_batch("BEGIN IMMEDIATE").unwrap();
                thread::sleep(span);
                database.execute_batch("ROLLBACK").unwrap();
            }
        }
    }

    fn processes(&self, part: Part, dice: &mut Dice) -> Vec<Pid> {
        let workers = dice.some(self.workers).into_iter();
        let mut processes: Vec<_> = workers.flat_map(|worker| worker.processes(part)).collect();
        if part != Part::Guard && !self.others.is_empty() {
            let others = dice.some(self.others).into_iter();
            processes.extend(others.filter_map(Other::process));
        }
        processes
    }

    fn proxies(&self, dice: &mut Dice) -> Vec<&Proxy> {
        let of_workers = self.workers.iter().map(|worker| &worker.proxy);
        let all = of_workers.chain(self.others.iter().map(|other| &other.proxy));
        let all: Vec<_> = all.flatten().collect();
        dice.some(&all).into_iter().copied().collect()
    }

    fn stall(&self, mode: ProxyMode, span: Duration, dice: &mut Dice) {
        let proxies = self.proxies(dice);
        proxies.iter().for_each(|proxy| proxy.set(mode));
        thread::sleep(span);
        proxies
            .iter()
            .for_each(|proxy| proxy.set(ProxyMode::PassOn));
    }

    /// Swallows replies: each with its connection, immediately or after a silence.
    fn swallow(&self, request: Request, span: Duration, dice: &mut Dice) {
        let is_redis = matches!(self.server, Some(Kind::Redis(_)));
        let word = match (request, is_redis) {
            (Request::Any, _) => "",
            (Request::Claim, true) => FENCE,
            (Request::Claim, false) => CHECKS_FIRST,
            (Request::Consume, true) => "\r\nconsume\r\n",
            (Request::Consume, false) => REMOVES_FIRST,
        };
        let is_silent = dice.coin();
        let proxies = self.proxies(dice);
        for proxy in &proxies {
            match (is_silent, request) {
                (true, _) => proxy.set_at(word, ProxyMode::Silent),
                (false, Request::Any) => proxy.cut_after(dice.below(12) as u32, ProxyMode::PassOn),
                (false, _) => proxy.cut_at(word, ProxyMode::PassOn),
            }
        }
        let has_come = |proxy: &&Proxy| proxy.has_sprung();
        comes_true(span, || !is_silent && proxies.iter().all(has_come));
        for proxy in proxies {
            if is_silent {
                // Swallowed replies never arrive.
                proxy.cut();
            }
            proxy.set(ProxyMode::PassOn);
        }
    }
}
