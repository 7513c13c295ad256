//! Random uuids for many jobs.

use rustix::rand::{GetRandomFlags, getrandom};
use uuid::{Builder, Uuid};

/// For how many uuids randomness is fetched at a time: each time is a call of the system.
const SUPPLY: usize = 256;

/// Makes uuids, and has the randomness for some more at hand.
#[derive(Default)]
pub(in crate::commands) struct Uuids {
    supply: Vec<[u8; 16]>,
}

impl Uuids {
    pub(in crate::commands) fn next(&mut self) -> Uuid {
        if self.supply.is_empty() {
            self.restock();
        }
        match self.supply.pop() {
            Some(random) => Builder::from_random_bytes(random).into_uuid(),
            None => Uuid::new_v4(),
        }
    }

    fn restock(&mut self) {
        let mut bytes = [0; SUPPLY * 16];
        let count = getrandom(&mut bytes, GetRandomFlags::empty()).unwrap_or_default();
        let (whole, _) = bytes[..count].as_chunks();
        self.supply.extend_from_slice(whole);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_is_random_and_comes_once() {
        let mut uuids = Uuids::default();
        let made: HashSet<_> = (0..3 * SUPPLY).map(|_| uuids.next()).collect();
        assert_eq!(made.len(), 3 * SUPPLY);
        assert!(made.iter().all(|uuid| uuid.get_version_num() == 4));
    }
}
