//! The steps of the board and the clock.

use super::world::{
    Answer, Broken, Conductor, Hold, Kind, Life, ModelConfig, Planted, Request, SILENCE, TERM,
    World,
};

impl World {
    /// Advances the time, unless an immediate step is pending.
    pub(super) fn tick(&mut self, config: &ModelConfig) -> Option<()> {
        let is_urgent = |it: &Conductor| {
            let is_up = it.life == Life::Up;
            it.is_command_due(config) == Some(true)
                || is_up && (it.is_over(config) || it.guard == Life::Dead)
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
            if hold.left == 0 && config.kind == Kind::Expiry {
                self.hold = None;
            }
        }
        Some(())
    }

    pub(super) fn end_session(&mut self, config: &ModelConfig) -> Option<()> {
        self.hold.take_if(|it| it.left == 0)?;
        (config.kind == Kind::Session).then_some(())
    }

    /// Serves a request on the board.
    pub(super) fn serve(&mut self, owner: usize, request: Request, config: &ModelConfig) -> Answer {
        // Any request keeps the client's session alive, once the other servers know of it.
        if let Some(hold) = self
            .hold
            .as_mut()
            .filter(|it| config.kind == Kind::Session && it.owner == owner)
        {
            (hold.left, hold.heard) = (hold.heard, TERM);
        }
        let hold = self.hold;
        let is_held_by = |fence| hold.is_some_and(|it| (it.owner, it.fence) == (owner, fence));
        match request {
            Request::Claim if !self.is_ended && self.hold.is_none() => {
                let fence = 1 + self.fences().into_iter().max().unwrap_or_default();
                self.hold = Some(match config.kind {
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
            Request::Renew(fence) if is_held_by(fence) || config.has(Planted::RenewsAnyClaim) => {
                let Some(hold) = &mut self.hold else {
                    return Answer::Refused;
                };
                if config.kind == Kind::Expiry {
                    hold.left = TERM;
                }
                Answer::Done
            }
            Request::Settle { fence, is_consumed } => {
                let is_named = config.has(Planted::SettlesWithoutFence)
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
