//! The effect of each step.

use super::{
    step::Step,
    world::{
        Answer, Broken, Call, Conductor, Doing, GONE, Hold, IDLE, Kind, Life, ModelConfig, Planted,
        Request, SILENCE, TERM, World,
    },
};

impl World {
    /// Takes a step; `None` if it is impossible now.
    pub(super) fn take(&mut self, step: Step, config: &ModelConfig) -> Option<()> {
        match step {
            Step::Tick => self.tick(config),
            Step::SessionEnds => self.end_session(config),
            Step::Asks(i) => self.ask(i, config),
            Step::Serves(i) => self.serve_call(i, |it| &mut it.call, config),
            Step::ServesRenewal(i) => self.serve_call(i, |it| &mut it.renewal, config),
            Step::ServesLate(i) => {
                let (owner, request) = self.conductors[i].late.take()?;
                self.serve(owner, request, config);
                Some(())
            }
            Step::Hears(i) => self.hear(i),
            Step::HearsOfRenewal(i) => self.hear_of_renewal(i, config),
            Step::TellsGuard(i) => self.prepare(i, config),
            Step::OperatorForces => self.force(config),
            Step::Starts(i) => self.start(i),
            Step::CommandEnds(i) => self.end_command(i),
            Step::Renews(i) => self.renew(i),
            Step::Settles(i) => self.settle(i, config),
            Step::GivesUp(i) => self.give_up(i, config),
            Step::GuardKills(i) => self.guard_kills(i, config),
            Step::ReplacesGuard(i) => self.replace_guard(i),
            Step::GivesBack(i) => self.give_back(i),
            Step::NoticesClaim(i) => self.notice(i, config),
            Step::OperatorResumes => std::mem::take(&mut self.is_paused).then_some(()),
            Step::Continues(i) => change(&mut self.conductors[i].life, Life::Stopped, Life::Up),
            Step::GuardContinues(i) => {
                change(&mut self.conductors[i].guard, Life::Stopped, Life::Up)
            }
            Step::IsRestarted(i) => self.restart(i),
            Step::OperatorLooks => self.look(),
            Step::OperatorPauses => (!std::mem::replace(&mut self.is_paused, true)).then_some(()),
            Step::CallIsLost(i) => self.lose_call(i),
            Step::RenewalIsLost(i) => self.lose_renewal(i),
            Step::IsStopped(i) => change(&mut self.conductors[i].life, Life::Up, Life::Stopped),
            Step::GuardIsStopped(i) => {
                change(&mut self.conductors[i].guard, Life::Up, Life::Stopped)
            }
            Step::BothAreStopped(i) => {
                change(&mut self.conductors[i].life, Life::Up, Life::Stopped)?;
                change(&mut self.conductors[i].guard, Life::Up, Life::Stopped)
            }
            Step::IsKilled(i) => self.kill(i),
            Step::GuardIsKilled(i) => {
                let guard = &mut self.conductors[i].guard;
                (std::mem::replace(guard, Life::Dead) != Life::Dead).then_some(())
            }
            Step::BothAreKilled(i) => {
                self.conductors[i].guard = Life::Dead;
                self.kill(i)
            }
        }
    }

    fn serve_call(
        &mut self,
        i: usize,
        of: fn(&mut Conductor) -> &mut Option<Call>,
        config: &ModelConfig,
    ) -> Option<()> {
        let mut call = of(&mut self.conductors[i]).filter(|it| it.answer.is_none())?;
        call.answer = Some(self.serve(i, call.request, config));
        *of(&mut self.conductors[i]) = Some(call);
        Some(())
    }

    /// Starts the command, even if the claim has changed since the last check.
    fn start(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        (conductor.doing == Doing::Starts).then_some(())?;
        conductor.doing = Doing::Runs;
        conductor.command = Some(conductor.fence);
        Some(())
    }

    fn end_command(&mut self, i: usize) -> Option<()> {
        self.conductors[i].command.take()?;
        self.leader_ended(i, true);
        Some(())
    }

    fn renew(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        let is_due = conductor.has_claim() && conductor.confirmed[0] < TERM;
        (is_due && conductor.renewal.is_none()).then_some(())?;
        conductor.renewal = Some(ask(Request::Renew(conductor.fence), TERM));
        Some(())
    }

    /// Requests the settlement, again if no answer came.
    fn settle(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        let conductor = self.able(i)?;
        let is_consumed = match conductor.doing {
            Doing::Ended { is_success } => is_success,
            Doing::Settles { is_consumed } => is_consumed,
            _ => return None,
        };
        (conductor.call.is_none() && !conductor.is_over(config)).then_some(())?;
        conductor.doing = Doing::Settles { is_consumed };
        conductor.is_watched = false;
        conductor.call = Some(ask(
            Request::Settle {
                fence: conductor.fence,
                is_consumed,
            },
            0,
        ));
        Some(())
    }

    /// Ends the command of an expired claim.
    fn give_up(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        let conductor = self.able(i)?;
        conductor.is_over(config).then_some(())?;
        conductor.abandon(i);
        Some(())
    }

    fn guard_kills(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        self.conductors[i].is_command_due(config)?;
        self.conductors[i].command = None;
        self.leader_ended(i, false);
        Some(())
    }

    fn replace_guard(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        (conductor.guard == Life::Dead).then_some(())?;
        conductor.guard = Life::Up;
        Some(())
    }

    /// Releases a claim that the board still lists as ours, or clears the mark.
    fn give_back(&mut self, i: usize) -> Option<()> {
        let ours = self.hold.filter(|it| it.owner == i);
        let conductor = self.able(i)?;
        (conductor.is_unreleased && conductor.call.is_none()).then_some(())?;
        match ours {
            Some(Hold { fence, .. }) => {
                let request = Request::Settle {
                    fence,
                    is_consumed: false,
                };
                conductor.call = Some(ask(request, 0));
            }
            None => conductor.is_unreleased = false,
        }
        Some(())
    }

    /// Notices a claim of ours that was made late.
    fn notice(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        let is_ours = self.hold.is_some_and(|it| it.owner == i);
        let conductor = self.able(i)?;
        let is_left = is_ours && conductor.doing == Doing::Nothing && !conductor.is_unreleased;
        (is_left && !config.has(Planted::NoticesNoLateClaim)).then_some(())?;
        conductor.is_unreleased = true;
        Some(())
    }

    fn restart(&mut self, i: usize) -> Option<()> {
        let Conductor {
            life,
            guard,
            command,
            late,
            ..
        } = self.conductors[i];
        // The guard of a dead conductor still handles its command.
        (life == Life::Dead && (command.is_none() || guard == Life::Dead)).then_some(())?;
        self.conductors[i] = Conductor {
            command,
            late,
            ..IDLE
        };
        Some(())
    }

    /// An operator looks at the claim.
    fn look(&mut self) -> Option<()> {
        let hold = self.hold.filter(|_| self.seen.is_none())?;
        self.seen = Some((hold.owner, hold.fence));
        Some(())
    }

    /// A request or its answer gets lost.
    fn lose_call(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        let call = conductor.call.take()?;
        conductor.forget_call(i, call);
        if call.request == Request::Claim {
            conductor.let_go();
            conductor.is_unreleased = true;
        }
        Some(())
    }

    fn lose_renewal(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        let call = conductor.renewal.take()?;
        conductor.forget_call(i, call);
        Some(())
    }

    pub(super) fn ask(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        (!self.is_ended && !self.is_paused).then_some(())?;
        let conductor = self.able(i)?;
        let is_free = conductor.doing == Doing::Nothing && !conductor.is_unreleased;
        (is_free && conductor.call.is_none()).then_some(())?;
        conductor.doing = Doing::Asks;
        let before = match config.kind {
            Kind::Expiry => 0,
            Kind::Session if config.has(Planted::CountsFromTheClaimItself) => TERM,
            Kind::Session => TERM - SILENCE,
        };
        conductor.confirmed = [TERM, before];
        conductor.call = Some(ask(Request::Claim, 0));
        Some(())
    }

    pub(super) fn hear(&mut self, i: usize) -> Option<()> {
        let conductor = self.able(i)?;
        let Call {
            request, answer, ..
        } = conductor.call?;
        let answer = answer?;
        conductor.call = None;
        match (request, answer) {
            (Request::Claim, Answer::Won(fence)) => {
                (conductor.doing, conductor.fence) = (Doing::Won, fence);
            }
            (Request::Claim, _) => conductor.let_go(),
            // Released.
            _ if conductor.is_unreleased => conductor.is_unreleased = false,
            _ => conductor.let_go(),
        }
        Some(())
    }

    pub(super) fn hear_of_renewal(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        let conductor = self.able(i)?;
        let call = conductor.renewal?;
        let answer = call.answer?;
        conductor.renewal = None;
        match answer {
            Answer::Refused => {
                conductor.abandon(i);
            }
            Answer::Done | Answer::Won(_) => {
                let before = conductor.confirmed[0];
                conductor.confirmed = [
                    call.left,
                    if config.kind == Kind::Session {
                        before
                    } else {
                        0
                    },
                ];
            }
        }
        Some(())
    }

    /// Ends the leftovers of earlier attempts on this machine, and registers the command with the guard.
    pub(super) fn prepare(&mut self, i: usize, config: &ModelConfig) -> Option<()> {
        let conductor = self.able(i)?;
        let may_start = conductor.doing == Doing::Won && !conductor.is_over(config);
        (may_start && conductor.guard != Life::Dead).then_some(())?;
        let near = |j: &usize| *j == i || config.is_one_machine;
        if !config.has(Planted::StartsBesideLeftovers) {
            for j in (0..2).filter(near) {
                let other = &mut self.conductors[j];
                let is_guarded = j != i && other.guard == Life::Up;
                match other.command {
                    Some(fence) if is_guarded && fence > self.forced => return None,
                    Some(_) if is_guarded => {}
                    _ => other.command = None,
                }
                if j != i && !is_guarded {
                    self.leader_ended(j, false);
                }
            }
        }
        let conductor = &mut self.conductors[i];
        conductor.doing = Doing::Starts;
        conductor.is_watched = !config.has(Planted::GuardForgets);
        Some(())
    }

    /// The conductor learns, once it can, that its command has ended.
    pub(super) fn leader_ended(&mut self, i: usize, is_success: bool) {
        let conductor = &mut self.conductors[i];
        if conductor.doing == Doing::Runs
            && conductor.life != Life::Dead
            && conductor.command.is_none()
        {
            conductor.doing = Doing::Ended { is_success };
        }
    }

    /// An operator ends the claim on screen.
    pub(super) fn force(&mut self, config: &ModelConfig) -> Option<()> {
        let (owner, fence) = self.seen.take()?;
        let Some(hold) = self.hold else {
            return Some(());
        };
        let is_the_same = (hold.owner, hold.fence) == (owner, fence);
        if !is_the_same && !config.has(Planted::ForcesUnseen) {
            return Some(());
        }
        if !is_the_same {
            self.broken = Some(Broken::ForcedAnother);
        }
        self.hold = None;
        self.forced = hold.fence;
        Some(())
    }

    pub(super) fn kill(&mut self, i: usize) -> Option<()> {
        let mut conductor = self.conductors[i];
        (conductor.life != Life::Dead).then_some(())?;
        for call in conductor.renewal.into_iter().chain(conductor.call) {
            conductor.forget_call(GONE, call);
        }
        conductor.late = conductor.late.map(|(_, request)| (GONE, request));
        let Conductor {
            guard,
            command,
            late,
            ..
        } = conductor;
        let (is_watched, confirmed) = match command {
            Some(_) => (conductor.is_watched, conductor.confirmed),
            None => (false, [0; 2]),
        };
        self.conductors[i] = Conductor {
            life: Life::Dead,
            guard,
            is_watched,
            confirmed,
            command,
            late,
            ..IDLE
        };
        if let Some(hold) = self.hold.as_mut().filter(|it| it.owner == i) {
            hold.owner = GONE;
        }
        Some(())
    }
}

fn ask(request: Request, left: u8) -> Call {
    Call {
        request,
        answer: None,
        left,
    }
}

fn change(life: &mut Life, from: Life, to: Life) -> Option<()> {
    (*life == from).then_some(())?;
    *life = to;
    Some(())
}
