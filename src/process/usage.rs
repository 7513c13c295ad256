//! The resource usage of this process.

use std::{fs, time::Duration};

use rustix::{
    param::page_size,
    time::{ClockId, clock_gettime},
};

#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) processor: Duration,
    pub(crate) memory: Option<u64>,
    pub(crate) files: Option<usize>,
}

impl Usage {
    pub(crate) fn now() -> Self {
        let processor = clock_gettime(ClockId::ProcessCPUTime).try_into();
        let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = statm
            .split(' ')
            .nth(1)
            .and_then(|it| it.parse::<u64>().ok());
        Self {
            processor: processor.unwrap_or_default(),
            memory: pages.map(|pages| pages * page_size() as u64),
            // One of them is the descriptor of this listing.
            files: fs::read_dir("/proc/self/fd").ok().map(|it| it.count() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_a_process_is_positive() {
        let usage = Usage::now();
        assert!(usage.processor > Duration::ZERO);
        assert!(usage.memory.unwrap() > 100_000 && usage.files.unwrap() >= 3);
    }
}
