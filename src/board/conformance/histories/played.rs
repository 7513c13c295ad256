//! One job of a history, in the model and on the board.

use super::*;

pub(super) struct Played {
    pub(super) uuid: Uuid,
    pub(super) model: Model,
    pub(super) keys: [JobKey; 2],
    pub(super) fences: Vec<Fence>,
}

impl Played {
    pub(super) fn on(board: &Subject) -> Self {
        let able = board.capabilities();
        // On Redis one key holds the sidecar of a uuid, on the board and in the trash.
        let shares_record = able.has_expiring_claims && able.has_peers();
        let uuid = Uuid::new_v4();
        let key = JobKey::new(uuid.to_string());
        Self {
            uuid,
            model: Model {
                shares_record,
                ..Model::default()
            },
            keys: [key.clone(), key],
            fences: Vec::new(),
        }
    }

    pub(super) fn fence(&self, back: usize) -> Fence {
        let claim = self.model.claim_before(back).wrapping_sub(1);
        self.fences
            .get(claim)
            .cloned()
            .unwrap_or_else(|| Fence("999999999".to_owned()))
    }

    pub(super) fn authority(&self, authority: ModelAuthority) -> Authority {
        match authority {
            ModelAuthority::Owner(who) => by_name(WHO[who]),
            ModelAuthority::Claim { who, back } => {
                Authority::Claim(owner(WHO[who]), self.fence(back))
            }
            ModelAuthority::ForceUnclaimed => Authority::Force(ExpectedState::Unclaimed),
            ModelAuthority::ForceClaimed { who, back } => {
                Authority::Force(ExpectedState::Claimed {
                    owner: Some(owner(WHO[who])),
                    fence: back.map(|back| self.fence(back)),
                })
            }
        }
    }

    fn known(&self, job: &Job) -> Known {
        let claim = |it: &Holding| {
            let owner = it.owner.as_ref();
            let who = WHO
                .iter()
                .position(|who| owner.is_some_and(|it| it.text() == *who));
            let claim = self
                .fences
                .iter()
                .position(|fence| Some(fence) == it.fence.as_ref());
            (
                who.unwrap_or(usize::MAX),
                claim.map_or(usize::MAX, |claim| claim + 1),
            )
        };
        Known {
            number: job.name.parse().unwrap_or_default(),
            priority: job.priority,
            claim: job.holding.as_ref().map(claim),
            attempts: job.attempts.count,
            postponed: job.attempts.postponed,
            failures: job.attempts.failures.len(),
            is_delayed: job.attempts.is_delayed(Utc::now()),
        }
    }

    pub(super) fn compare(&self, location: Location, found: Option<&Entry>) -> Result<(), String> {
        let known = match location {
            Location::Trash => &self.model.trash,
            _ => &self.model.board,
        };
        let found = found.and_then(Entry::job).map(|job| self.known(job));
        // In the trash no delay counts, and only the namesake's sidecar may exist.
        let found = found.map(|it| match known {
            Some(known) if location == Location::Trash => Known {
                is_delayed: known.is_delayed,
                ..match self.model.shares_record && self.model.board.is_some() {
                    true => Known {
                        number: it.number,
                        priority: it.priority,
                        ..known.clone()
                    },
                    false => it,
                }
            },
            _ => it,
        });
        match found == *known {
            true => Ok(()),
            false => Err(format!(
                "the location {location:?} has {found:?} instead of {known:?}"
            )),
        }
    }
}
