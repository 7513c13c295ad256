//! The state of the model: two conductors, their guards and commands, an operator, and a board with one job.

/// In ticks.
pub(super) const TERM: u8 = 4;
/// The guard ends a command this many ticks before its deadline.
const MARGIN: u8 = 1;
/// The longest silence of a client towards its ZooKeeper server, in ticks.
pub(super) const SILENCE: u8 = 2;
/// The owner of a claim after its conductor died: the successor has another name.
pub(super) const GONE: usize = 2;

/// How claims end on this board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Expiry,
    /// All claims of a conductor live until its session ends, which may happen once it is unconfirmed.
    Session,
}

/// A deliberate defect: the model must find its effect.
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

/// The fixed conditions of one exploration.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelConfig {
    pub(super) kind: Kind,
    /// Whether both conductors share a machine, and find each other's leftovers.
    ///
    /// Only then may guards stop or die together with their conductors: no machine can end processes on another.
    pub(super) is_one_machine: bool,
    /// The number of faults that may happen.
    pub(super) faults: u8,
    pub(super) planted: Option<Planted>,
}

impl ModelConfig {
    pub(super) fn has(&self, planted: Planted) -> bool {
        self.planted == Some(planted)
    }

    /// The expiry of a claim counts from the confirmation with this index.
    pub(super) fn confirmation(&self) -> usize {
        let is_late =
            self.kind == Kind::Session && !self.has(Planted::CountsFromTheLastConfirmation);
        usize::from(is_late)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Broken {
    /// Two commands of the job overlapped without a forced release.
    RanTwice,
    /// A settlement was accepted after its claim had ended.
    SettledLate,
    /// An operator ended another claim than the one on screen.
    ForcedAnother,
    /// A conductor works, and the job can no longer finish.
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
    /// Lease left once the server that ends sessions has received the other server's confirmations.
    pub(super) heard: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Request {
    Claim,
    Renew(u8),
    Settle { fence: u8, is_consumed: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Answer {
    Won(u8),
    Done,
    Refused,
}

/// A pending request, or its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Call {
    pub(super) request: Request,
    pub(super) answer: Option<Answer>,
    /// Lease left if this request renews it, counted from the request.
    pub(super) left: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Doing {
    Nothing,
    Asks,
    Won,
    /// The guard knows of the command, and the claim was ours a moment ago.
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
    /// Lease left, counted from the last two confirmations, newest first.
    pub(super) confirmed: [u8; 2],
    /// Whether the guard knows the command and its deadline.
    pub(super) is_watched: bool,
    pub(super) command: Option<u8>,
    /// Whether the board may list the job as ours although no attempt runs here.
    pub(super) is_unreleased: bool,
    pub(super) call: Option<Call>,
    pub(super) renewal: Option<Call>,
    /// A request in transit that no conductor waits for, and its sender.
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
    is_unreleased: false,
    call: None,
    renewal: None,
    late: None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct World {
    pub(super) is_ended: bool,
    pub(super) is_paused: bool,
    pub(super) hold: Option<Hold>,
    pub(super) conductors: [Conductor; 2],
    /// The claim that the operator looked at.
    pub(super) seen: Option<(usize, u8)>,
    /// The highest fence that was forcibly released.
    pub(super) forced: u8,
    pub(super) faults: u8,
    pub(super) broken: Option<Broken>,
}

impl Conductor {
    pub(super) fn has_claim(&self) -> bool {
        !matches!(self.doing, Doing::Nothing | Doing::Asks)
    }

    /// Whether the deadline for work under the claim has passed.
    pub(super) fn is_over(&self, config: &ModelConfig) -> bool {
        self.has_claim() && self.confirmed[config.confirmation()] <= MARGIN
    }

    /// Whether the guard would end the command now, and whether it does so before the next tick.
    pub(super) fn is_command_due(&self, config: &ModelConfig) -> Option<bool> {
        let is_guarded = self.command.is_some() && self.guard == Life::Up;
        let is_over = self.is_watched && self.confirmed[config.confirmation()] <= MARGIN;
        (is_guarded && (is_over || self.life == Life::Dead)).then_some(is_over)
    }

    pub(super) fn let_go(&mut self) {
        (self.doing, self.fence, self.confirmed) = (Doing::Nothing, 0, [0; 2]);
        (self.is_watched, self.renewal) = (false, None);
    }

    /// Ends the command and drops the job, even with a pending request.
    pub(super) fn abandon(&mut self, owner: usize) {
        self.command = None;
        if let Some(call) = self.call.take() {
            self.forget_call(owner, call);
        }
        self.let_go();
    }

    /// Stops waiting for an answer. The request may still be in transit.
    pub(super) fn forget_call(&mut self, owner: usize, call: Call) {
        if call.answer.is_none() {
            self.late = Some((owner, call.request));
        }
    }
}

impl World {
    pub(super) fn first(config: &ModelConfig) -> Self {
        Self {
            is_ended: false,
            is_paused: false,
            hold: None,
            conductors: [IDLE; 2],
            seen: None,
            forced: 0,
            faults: config.faults,
            broken: None,
        }
    }

    /// Whether no work is left, or no one to do it.
    pub(super) fn is_settled(&self) -> bool {
        self.is_ended || self.conductors.iter().all(|it| it.life != Life::Up)
    }

    pub(super) fn is_up(&self, owner: usize) -> bool {
        self.conductors
            .get(owner)
            .is_some_and(|it| it.life == Life::Up)
    }

    pub(super) fn able(&mut self, i: usize) -> Option<&mut Conductor> {
        Some(&mut self.conductors[i]).filter(|it| it.life == Life::Up)
    }

    /// Returns one representative of two worlds that differ only in the order of the conductors.
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

    /// Renumbers the fences: only their order matters, so that equal worlds compare equal.
    pub(super) fn renumber_fences(&mut self) {
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

    /// Answers requests that fail whenever they arrive, and drops those that change nothing.
    ///
    /// No guarantee depends on them, and far fewer worlds remain.
    pub(super) fn spare_the_vain(&mut self, config: &ModelConfig) {
        let would_serve = [
            Planted::SettlesWithoutFence,
            Planted::RenewsAnyClaim,
            Planted::ForcesUnseen,
        ];
        if would_serve.into_iter().any(|it| config.has(it)) {
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
