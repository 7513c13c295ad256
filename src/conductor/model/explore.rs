//! A breadth-first search through all possible worlds.

use std::{collections::HashMap, fmt};

use super::{
    step::Step,
    world::{Broken, ModelConfig, World},
};

/// The shortest way to a broken guarantee.
#[derive(Debug)]
pub(super) struct Counterexample {
    pub(super) broken: Broken,
    pub(super) steps: Vec<Step>,
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:?} after", self.broken)?;
        self.steps
            .iter()
            .try_for_each(|step| writeln!(f, "  {step:?}"))
    }
}

#[derive(Default)]
struct Found {
    numbers: HashMap<World, u32>,
    worlds: Vec<World>,
    /// The predecessor of each world on the shortest way.
    origins: Vec<u32>,
    /// Transitions without a fault.
    ordinary: Vec<(u32, u32)>,
}

impl Found {
    /// Returns the number of a world, known or new.
    fn add(&mut self, world: World, origin: u32) -> u32 {
        let world = world.unnamed();
        let next = self.worlds.len() as u32;
        let number = *self.numbers.entry(world).or_insert(next);
        if number == next {
            self.worlds.push(world);
            self.origins.push(origin);
        }
        number
    }

    fn counterexample(&self, broken: Broken, mut at: u32, config: &ModelConfig) -> Counterexample {
        let mut path = Vec::new();
        while at != 0 {
            path.push(self.worlds[at as usize]);
            at = self.origins[at as usize];
        }
        let mut world = World::first(config);
        let mut steps = Vec::new();
        for next in path.into_iter().rev() {
            let found = world
                .steps(config)
                .into_iter()
                .find(|(_, it)| it.unnamed() == next);
            let (step, after) = found.expect("a world on the found path");
            steps.push(step);
            world = after;
        }
        Counterexample { broken, steps }
    }

    /// Returns a world where the job can never finish, although a conductor works.
    fn stuck(&self) -> Option<u32> {
        let mut before = vec![Vec::new(); self.worlds.len()];
        for &(from, to) in &self.ordinary {
            before[to as usize].push(from);
        }
        let mut ends: Vec<bool> = self.worlds.iter().map(World::is_settled).collect();
        let mut open: Vec<u32> = (0..ends.len() as u32)
            .filter(|&at| ends[at as usize])
            .collect();
        while let Some(at) = open.pop() {
            for &from in &before[at as usize] {
                if !std::mem::replace(&mut ends[from as usize], true) {
                    open.push(from);
                }
            }
        }
        ends.iter().position(|ends| !ends).map(|at| at as u32)
    }
}

/// Explores all worlds: returns their number, or the way to a broken guarantee.
pub(super) fn explore(config: &ModelConfig) -> Result<usize, Counterexample> {
    let mut found = Found::default();
    found.add(World::first(config), 0);
    let mut at = 0;
    while let Some(world) = found.worlds.get(at).copied() {
        if let Some(broken) = world.broken {
            return Err(found.counterexample(broken, at as u32, config));
        }
        for (step, next) in world.steps(config) {
            let number = found.add(next, at as u32);
            if world.is_ordinary(step) {
                found.ordinary.push((at as u32, number));
            }
        }
        at += 1;
    }
    match found.stuck() {
        Some(at) => Err(found.counterexample(Broken::Stuck, at, config)),
        None => Ok(found.worlds.len()),
    }
}
