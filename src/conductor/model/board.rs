//! The steps of the board and the clock.

use super::world::{
    Answer, Broken, Conductor, Hold, Kind, Life, Planted, Request, SILENCE, Scene, TERM, World,
};

impl World {
    /// Advances the time, unless an immediate step is pending.
    pub(super) fn tick(&mut self, scene: &Scene) -> Option<()> {
        let is_urgent = |it: &Conductor| {
            let is_up = it.life == Life::Up;
            it.is_command_due(scene) == Some(true)
                || is_up && (it.is_over(scene) || it.guard == Life::Dead)
        };
        (!self.conductors.iter().any(is_urgent)).then_some(())?;
        let works = |it: &&Conductor| it.command.is_some_and(|fence| fence > self.forced);
        if self.conductors.iter().filter(works).count() > 1 {
            self.broken = Some(Broken::RanTwice);
        }
        for conductor in &mut self.conductors {
            let renewal = conductor.renewal.iter_mut().map(|call| &mut call.left);
            let left = conductor.confirmed.iter_mut().chain(renewal);
            left.for_each(|left| *left = left.saturating_sub(1));
        }
        if let Some(hold) = &mut self.hold {
            (hold.left, hold.heard) = (hold.left.saturating_sub(1), hold.heard.saturating_sub(1));
            if hold.left == 0 && scene.kind == Kind::Expiry {
                self.hold = None;
            }
        }
        Some(())
    }

    pub(super) fn end_session(&mut self, scene: &Scene) -> Option<()> {
        self.hold.take_if(|it| it.left == 0)?;
        (scene.kind == Kind::Session).then_some(())
    }

    /// Serves a request on the board.
    pub(super) fn serve(&mut self, owner: usize, request: Request, scene: &Scene) -> Answer {
        // Any request keeps the client's session alive, once the other servers know of it.
        if let Some(hold) = self
            .hold
            .as_mut()
            .filter(|it| scene.kind == Kind::Session && it.owner == owner)
        {
            (hold.left, hold.heard) = (hold.heard, TERM);
        }
        let hold = self.hold;
        let is_held_by = |fence| hold.is_some_and(|it| (it.owner, it.fence) == (owner, fence));
        match request {
            Request::Claim if !self.is_ended && self.hold.is_none() => {
                let fence = 1 + self.fences().into_iter().max().unwrap_or_default();
                self.hold = Some(match scene.kind {
                    Kind::Expiry => Hold {
                        owner,
                        fence,
                        left: TERM,
                        heard: 0,
                    },
                    Kind::Session => Hold {
                        owner,
                        fence,
                        left: TERM - SILENCE,
                        heard: TERM,
                    },
                });
                Answer::Won(fence)
            }
            Request::Renew(fence) if is_held_by(fence) || scene.has(Planted::RenewsAnyClaim) => {
                let Some(hold) = &mut self.hold else {
                    return Answer::Refused;
                };
                if scene.kind == Kind::Expiry {
                    hold.left = TERM;
                }
                Answer::Done
            }
            Request::Settle { fence, is_consumed } => {
                let is_named = scene.has(Planted::SettlesWithoutFence)
                    && self.hold.is_some_and(|it| it.owner == owner);
                if !is_named && !is_held_by(fence) {
                    return Answer::Refused;
                }
                if !is_held_by(fence) {
                    self.broken = Some(Broken::SettledLate);
                }
                (self.hold, self.is_ended) = (None, is_consumed);
                Answer::Done
            }
            Request::Claim | Request::Renew(_) => Answer::Refused,
        }
    }
}
