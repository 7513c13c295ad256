//! Fuzzes the decoders of untrusted bytes, in tests.
//!
//! Valid inputs are mutated many times. A decoder must read or reject each one without a panic, in bounded memory and
//! with a bounded message; results must keep the laws of the test. The inputs are the same in each run, unless
//! `JOBBOARD_FAULTS=full` asks for random ones, for `JOBBOARD_FAULTS_SECONDS` (10) per decoder.

mod corrupt;
mod tests;

use std::{
    any::Any,
    env,
    fmt::{self, Debug, Display},
    panic::{AssertUnwindSafe, Location, catch_unwind},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use allocation_counter::measure;

use self::corrupt::{Dice, corrupted};
use crate::board::testing::needs::is_full;

/// How many attempts it makes to shorten an input.
const ENOUGH: u64 = 10_000;

pub(crate) type Tried = Result<Answer, String>;

pub(crate) enum Answer {
    Read,
    /// The decoder rejected the input with this message.
    Refused(String),
}

pub(crate) fn refused(words: &(impl Display + ?Sized)) -> Tried {
    Ok(Answer::Refused(words.to_string()))
}

pub(crate) fn same<T: PartialEq + Debug>(what: &str, one: &T, other: &T) -> Result<(), String> {
    match one == other {
        true => Ok(()),
        false => Err(format!("{what}: {one:?}, and then {other:?}")),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) inputs: u32,
    pub(crate) longest: usize,
    pub(crate) memory: (usize, usize),
    pub(crate) words: usize,
}

impl Bounds {
    pub(crate) const STORED: Self = Self {
        inputs: 2000,
        longest: 32 * 1024,
        memory: (64 * 1024, 4096),
        words: 2048,
    };

    pub(crate) const TYPED: Self = Self {
        inputs: 4000,
        longest: 512,
        memory: (64 * 1024, 4096),
        words: 8192,
    };
}

pub(crate) struct Corpus {
    inputs: Vec<Vec<u8>>,
    bounds: Bounds,
}

#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) input: Vec<u8>,
    pub(crate) invariant: String,
}

impl Corpus {
    pub(crate) fn of<T: AsRef<[u8]>>(bounds: Bounds, inputs: impl IntoIterator<Item = T>) -> Self {
        let inputs = inputs.into_iter().map(|it| it.as_ref().to_vec());
        Self {
            inputs: inputs.collect(),
            bounds,
        }
    }

    /// Requires that no input breaks a law, and that the decoder accepts some and rejects some.
    #[track_caller]
    pub(crate) fn hold(&self, invariant: impl Fn(&[u8]) -> Tried) {
        let (fault, figures) = self.tried(&invariant);
        if let Some(Fault { input, invariant }) = fault {
            panic!("b\"{}\": {invariant}", input.escape_ascii());
        }
        assert!(figures.read > 0 && figures.refused > 0, "{figures}");
        if is_full() {
            eprintln!("{}: {figures}", Location::caller());
        }
    }

    #[track_caller]
    pub(crate) fn hold_for_text(&self, invariant: impl Fn(&str) -> Tried) {
        self.hold(|bytes| invariant(&String::from_utf8_lossy(bytes)));
    }

    pub(crate) fn fault(&self, invariant: impl Fn(&[u8]) -> Tried) -> Option<Fault> {
        self.tried(&invariant).0
    }

    fn tried(&self, invariant: &dyn Fn(&[u8]) -> Tried) -> (Option<Fault>, Figures) {
        let mut figures = Figures::begin();
        let mut dice = Dice::new(if is_full() { now() } else { 7 });
        let mut intact = self.inputs.iter();
        while figures.go_on(self.bounds.inputs) {
            let input = match intact.next() {
                Some(input) => input.clone(),
                None => corrupted(&self.inputs, self.bounds.longest, &mut dice),
            };
            if let Err(law_broken) = self.judge(&input, invariant, &mut figures) {
                return (Some(self.shortened(input, law_broken, invariant)), figures);
            }
        }
        (None, figures)
    }

    fn judge(
        &self,
        input: &[u8],
        invariant: &dyn Fn(&[u8]) -> Tried,
        figures: &mut Figures,
    ) -> Result<(), String> {
        let Bounds { memory, words, .. } = self.bounds;
        let (mut tried, begin) = (None, figures.clock());
        let taken = measure(|| tried = Some(catch_unwind(AssertUnwindSafe(|| invariant(input)))));
        figures.note(input, taken.bytes_max, begin);
        let answer = tried.unwrap_or(Ok(Ok(Answer::Read)));
        match answer.map_err(|panic| format!("it panics: {}", panic_message(&*panic)))?? {
            Answer::Read => figures.read += 1,
            Answer::Refused(message) if message.len() > words => {
                return Err(format!("it is refused in {} bytes of words", message.len()));
            }
            Answer::Refused(_) => figures.refused += 1,
        }
        let most = memory.0 + memory.1 * input.len();
        match taken.bytes_max > most as u64 {
            true => Err(format!("it takes {} bytes of memory", taken.bytes_max)),
            false => Ok(()),
        }
    }

    fn shortened(
        &self,
        mut input: Vec<u8>,
        mut invariant: String,
        of: &dyn Fn(&[u8]) -> Tried,
    ) -> Fault {
        let (mut piece, mut ignored) = (input.len() / 2, Figures::begin());
        while piece > 0 {
            let mut at = 0;
            while at + piece <= input.len() && ignored.tried() < ENOUGH {
                let shorter = [&input[..at], &input[at + piece..]].concat();
                match self.judge(&shorter, of, &mut ignored) {
                    Err(broken) => (input, invariant) = (shorter, broken),
                    Ok(()) => at += piece,
                }
            }
            piece /= 2;
        }
        Fault { input, invariant }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or_default()
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(7, |since| since.as_nanos() as u64)
}

struct Figures {
    read: u64,
    refused: u64,
    begin: Instant,
    end: Option<Instant>,
    most_memory: (u64, usize),
    slowest: Duration,
}

impl Figures {
    fn begin() -> Self {
        let begin = Instant::now();
        let seconds = env::var("JOBBOARD_FAULTS_SECONDS").ok();
        let seconds = seconds.and_then(|it| it.parse().ok()).unwrap_or(10);
        Self {
            read: 0,
            refused: 0,
            begin,
            end: is_full().then(|| begin + Duration::from_secs(seconds)),
            most_memory: (0, 0),
            slowest: Duration::ZERO,
        }
    }

    fn tried(&self) -> u64 {
        self.read + self.refused
    }

    fn go_on(&self, inputs: u32) -> bool {
        match self.end {
            // Reading the clock takes longer than some decoders.
            Some(end) => !self.tried().is_multiple_of(64) || Instant::now() < end,
            None => self.tried() < inputs.into(),
        }
    }

    fn clock(&self) -> Option<Instant> {
        self.end.map(|_| Instant::now())
    }

    fn note(&mut self, input: &[u8], memory: u64, begin: Option<Instant>) {
        self.most_memory = self.most_memory.max((memory, input.len()));
        self.slowest = (self.slowest).max(begin.map_or(Duration::ZERO, |it| it.elapsed()));
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.tried() as f64 / self.begin.elapsed().as_secs_f64();
        let (memory, length) = self.most_memory;
        write!(
            f,
            "{} inputs, {rate:.0}/s, {} read, {} refused, at most {memory} bytes (for {length}) and {:?}",
            self.tried(),
            self.read,
            self.refused,
            self.slowest
        )
    }
}
