//! Two conductors, their guards and commands, an operator, and a board with one job, as they are at a moment.

use super::step::Step;

/// How long a claim lasts, in ticks.
pub(super) const TERM: u8 = 4;
/// How long before its deadline a command is ended.
const MARGIN: u8 = 1;
/// How long a client is silent at most towards the server that has its session.
pub(super) const SILENCE: u8 = 2;
/// The owner of a claim whose conductor is dead: the next one in its place has a name of its own.
pub(super) const GONE: usize = 2;

/// What claims live by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Each lapses at its time.
    Expiry,
    /// All of a conductor live as long as its session, which ends at some time when it was not confirmed.
    Session,
}

/// Something that is made wrong, for what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Planted {
    SettlesWithoutFence,
    RenewsAnyClaim,
    ForcesUnseen,
    GuardForgets,
    CountsFromTheLastConfirmation,
    CountsFromTheClaimItself,
    StartsBesideLeftovers,
    NoticesNoLateClaim,
}

/// In what circumstances all this happens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene {
    pub(super) kind: Kind,
    /// Whether both conductors are on one machine, and find what the other one left there.
    ///
    /// Only then may guards be stopped or killed together with their conductors: of two machines nobody can end what
    /// runs on the other.
    pub(super) is_one_machine: bool,
    /// How much may happen that nobody wants.
    pub(super) faults: u8,
    pub(super) planted: Option<Planted>,
}

impl Scene {
    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    /// Which of the last two confirmations the time of a claim counts from.
    pub(super) fn confirmation(&self) -> usize {
        let is_late =
            self.kind == Kind::Session && !self.has(Planted::CountsFromTheLastConfirmation);
        usize::from(is_late)
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Broken {
    /// Two commands of the job ran for a while, and nobody had forced that.
    RanTwice,
    /// A settlement was accepted after its claim was over.
    SettledLate,
    /// An operator ended another claim than the one that was looked at.
    ForcedAnother,
    /// Somebody works, and the job cannot come to its end any more.
    Stuck,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Life {
    Up,
    Stopped,
    Dead,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Hold {
    pub(super) owner: usize,
    pub(super) fence: u8,
    pub(super) left: u8,
    /// What will be left once the server that ends sessions has heard what another one knows.
    pub(super) heard: u8,
}

/// What is asked of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Request {
    Claim,
    Renew(u8),
    Settle { fence: u8, is_consumed: bool },
}

/// What the board answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Answer {
    Won(u8),
    Done,
    Refused,
}

/// A request that is under way, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) request: Request,
    pub(super) answer: Option<Answer>,
    /// What is left of a claim that it renews, counted from when this was asked.
    pub(super) left: u8,
}

/// What a conductor does about the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Doing {
    Nothing,
    Asks,
    Won,
    /// The guard is told, and the claim was ours a moment ago.
    Starts,
    Runs,
    Ended {
        is_success: bool,
    },
    Settles {
        is_consumed: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Conductor {
    pub(super) life: Life,
    pub(super) guard: Life,
    pub(super) doing: Doing,
    pub(super) fence: u8,
    /// What is left of the claim, counted from its last two confirmations, the last one first.
    pub(super) confirmed: [u8; 2],
    /// Whether the guard knows of the command and of how long it may run.
    pub(super) is_watched: bool,
    /// The fence of the claim under which its command runs.
    pub(super) command: Option<u8>,
    /// Whether the board may have the job as ours without our having it in hand.
    pub(super) is_adrift: bool,
    pub(super) call: Option<Call>,
    pub(super) renewal: Option<Call>,
    /// What was asked, and is still on its way, though nobody waits for it; and by whom.
    pub(super) late: Option<(usize, Request)>,
}

pub(super) const IDLE: Conductor = Conductor {
    life: Life::Up,
    guard: Life::Up,
    doing: Doing::Nothing,
    fence: 0,
    confirmed: [0; 2],
    is_watched: false,
    command: None,
    is_adrift: false,
    call: None,
    renewal: None,
    late: None,
};

/// All there is at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) is_ended: bool,
    pub(super) is_paused: bool,
    pub(super) hold: Option<Hold>,
    pub(super) conductors: [Conductor; 2],
    /// The claim that an operator has looked at.
    pub(super) seen: Option<(usize, u8)>,
    /// Claims up to this one were taken away, or came before.
    pub(super) forced: u8,
    pub(super) faults: u8,
    pub(super) broken: Option<Broken>,
}

impl Conductor {
    pub(super) fn has_claim(&self) -> bool {
        !matches!(self.doing, Doing::Nothing | Doing::Asks)
    }

    /// Whether the time is up after which nobody may work under its claim.
    pub(super) fn is_over(&self, scene: &Scene) -> bool {
        self.has_claim() && self.confirmed[scene.confirmation()] <= MARGIN
    }

    /// Whether its guard would end the command now, and whether before time goes by.
    pub(super) fn is_command_due(&self, scene: &Scene) -> Option<bool> {
        let is_guarded = self.command.is_some() && self.guard == Life::Up;
        let is_over = self.is_watched && self.confirmed[scene.confirmation()] <= MARGIN;
        (is_guarded && (is_over || self.life == Life::Dead)).then_some(is_over)
    }

    /// Leaves the job to others.
    pub(super) fn let_go(&mut self) {
        (self.doing, self.fence, self.confirmed) = (Doing::Nothing, 0, [0; 2]);
        (self.is_watched, self.renewal) = (false, None);
    }

    /// Ends the command, and leaves the job to others, whatever is under way.
    pub(super) fn abandon(&mut self, owner: usize) {
        self.command = None;
        if let Some(call) = self.call.take() {
            self.forget_call(owner, call);
        }
        self.let_go();
    }

    /// Gives up waiting for an answer, while the request may still be on its way.
    pub(super) fn forget_call(&mut self, owner: usize, call: Call) {
        if call.answer.is_none() {
            self.late = Some((owner, call.request));
        }
    }
}

impl World {
    pub(super) fn first(scene: &Scene) -> Self {
        Self {
            is_ended: false,
            is_paused: false,
            hold: None,
            conductors: [IDLE; 2],
            seen: None,
            forced: 0,
            faults: scene.faults,
            broken: None,
        }
    }

    /// Whether there is nothing left to be done, or nobody who could do it.
    pub(super) fn is_settled(&self) -> bool {
        self.is_ended || self.conductors.iter().all(|it| it.life != Life::Up)
    }

    /// Whether a step happens by itself: it neither is a fault nor mends one.
    pub(super) fn is_ordinary(&self, step: Step) -> bool {
        match step {
            Step::Continues(_) | Step::GuardContinues(_) | Step::IsRestarted(_) => false,
            // Who is able to keeps it, also for a claim of which nothing is known.
            Step::SessionEnds => self.hold.is_none_or(|it| !self.is_up(it.owner)),
            _ => !step.is_fault(),
        }
    }

    pub(super) fn is_up(&self, owner: usize) -> bool {
        self.conductors
            .get(owner)
            .is_some_and(|it| it.life == Life::Up)
    }

    /// Returns a conductor that can do something.
    pub(super) fn able(&mut self, i: usize) -> Option<&mut Conductor> {
        Some(&mut self.conductors[i]).filter(|it| it.life == Life::Up)
    }

    /// Returns the one of two worlds that are alike but for which conductor is called the first.
    pub(super) fn unnamed(self) -> Self {
        let mut other = self;
        let swap = |owner: &mut usize| *owner = [1, 0, GONE][*owner];
        other.conductors.swap(0, 1);
        other.hold.iter_mut().for_each(|it| swap(&mut it.owner));
        other.seen.iter_mut().for_each(|it| swap(&mut it.0));
        let late = other
            .conductors
            .iter_mut()
            .filter_map(|it| it.late.as_mut());
        late.for_each(|it| swap(&mut it.0));
        self.min(other)
    }

    pub(super) fn fences(&self) -> Vec<u8> {
        let mut fences: Vec<u8> = Vec::with_capacity(12);
        let mut copy = *self;
        copy.each_fence(|fence| fences.push(*fence));
        fences
    }

    /// Only which fence is greater matters: numbered anew, what is the same is found to be.
    pub(super) fn number_fences_anew(&mut self) {
        let mut all = self.fences();
        all.sort_unstable();
        all.dedup();
        all.retain(|&fence| fence != 0);
        self.each_fence(|fence| {
            *fence = all.binary_search(fence).map_or(0, |at| at as u8 + 1);
        });
    }

    pub(super) fn each_fence(&mut self, mut see: impl FnMut(&mut u8)) {
        see(&mut self.forced);
        self.hold.iter_mut().for_each(|it| see(&mut it.fence));
        self.seen.iter_mut().for_each(|it| see(&mut it.1));
        for conductor in &mut self.conductors {
            see(&mut conductor.fence);
            conductor.command.iter_mut().for_each(&mut see);
            let calls = conductor.call.iter_mut().chain(&mut conductor.renewal);
            for call in calls {
                if let Some(Answer::Won(fence)) = &mut call.answer {
                    see(fence);
                }
                each_fence_asked(&mut call.request, &mut see);
            }
            if let Some((_, request)) = &mut conductor.late {
                each_fence_asked(request, &mut see);
            }
        }
    }

    /// Answers what is asked in vain, whenever it arrives, and has nobody wait for what changes nothing.
    ///
    /// No promise hangs on it, and there are far fewer worlds.
    pub(super) fn spare_the_vain(&mut self, scene: &Scene) {
        let would_serve = [
            Planted::SettlesWithoutFence,
            Planted::RenewsAnyClaim,
            Planted::ForcesUnseen,
        ];
        if would_serve.into_iter().any(|it| scene.has(it)) {
            return;
        }
        let hold = self.hold.map(|it| (it.owner, it.fence));
        let is_vain = |owner, request| match request {
            Request::Renew(fence) | Request::Settle { fence, .. } => hold != Some((owner, fence)),
            Request::Claim => false,
        };
        for (i, conductor) in self.conductors.iter_mut().enumerate() {
            let calls = conductor.call.iter_mut().chain(&mut conductor.renewal);
            for call in calls.filter(|it| it.answer.is_none() && is_vain(i, it.request)) {
                call.answer = Some(Answer::Refused);
            }
            conductor
                .late
                .take_if(|(owner, request)| is_vain(*owner, *request));
        }
        self.seen.take_if(|seen| hold != Some(*seen));
    }
}

fn each_fence_asked(request: &mut Request, mut see: impl FnMut(&mut u8)) {
    match request {
        Request::Renew(fence) | Request::Settle { fence, .. } => see(fence),
        Request::Claim => {}
    }
}
