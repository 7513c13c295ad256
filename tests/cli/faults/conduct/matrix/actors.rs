//! Clients next to the workers: shells, an operator and Python services.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde_json::{Value, json};

use super::{chance::Dice, strike::Other};
use crate::support::{Answer, By, Env, History, How, Outcome, Peer, Sight, What, wait_until};

/// The number of jobs that they use at a time: few, so that they collide.
const FEW: usize = 5;

/// The session timeout of a Python service.
const SESSION: Duration = Duration::from_secs(10);

/// The shared state of the clients.
pub(super) struct Crew<'a> {
    pub(super) env: &'a Env,
    pub(super) history: &'a History,
    pub(super) script: &'a str,
    /// Whether manual claims may expire on this board.
    pub(super) can_lapse: bool,
    /// Whether an error of a service proves that nothing happened. Its client repeats requests after a disconnect, and
    /// reports the second reply.
    pub(super) is_sure: bool,
    jobs: Mutex<Vec<String>>,
    is_over: AtomicBool,
}

/// A user at a shell, or an operator: each command is a process.
pub(super) struct Hand<'a> {
    pub(super) crew: &'a Crew<'a>,
    pub(super) name: String,
    pub(super) by: &'a Other,
    /// The URL of the board through their own proxy.
    pub(super) board: Option<String>,
    pub(super) dice: Dice,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Crew<'a> {
    pub(super) fn new(env: &'a Env, history: &'a History, script: &'a str) -> Self {
        Self {
            env,
            history,
            script,
            can_lapse: true,
            is_sure: true,
            jobs: Mutex::default(),
            is_over: AtomicBool::new(false),
        }
    }

    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Returns all jobs posted by these clients.
    pub(super) fn jobs(&self) -> Vec<String> {
        lock(&self.jobs).clone()
    }

    fn knows(&self, job: &str) {
        let mut jobs = lock(&self.jobs);
        if !jobs.iter().any(|known| known == job) {
            jobs.push(job.to_owned());
        }
    }

    /// Returns one of the last few jobs, or the unique one more often.
    fn job(&self, dice: &mut Dice) -> Option<String> {
        let jobs = lock(&self.jobs);
        let count = jobs.len();
        let at = match dice.below(4) {
            0 => 0,
            _ => count.checked_sub(1 + dice.below(FEW.min(count).max(1) as u64) as usize)?,
        };
        jobs.get(at).cloned()
    }

    /// Returns the duration of a manual claim.
    fn term(&self, dice: &mut Dice) -> Option<Duration> {
        let seconds = 1 + dice.below(2);
        (self.can_lapse && dice.coin()).then_some(Duration::from_secs(seconds))
    }

    /// Whether the history records every act under this owner name.
    fn is_known(name: &str) -> bool {
        name.starts_with("shell-") || name.starts_with("python-")
    }

    /// Lets a Python service use the board, and restarts it when it dies.
    pub(super) fn serve(&self, name: &str, conf: &Value, by: &Other, mut dice: Dice) {
        while !self.is_over() {
            need!(mut peer = Peer::with(conf));
            *lock(&by.process) = Some(peer.pid());
            let mut mine = None;
            while !self.is_over() && self.serve_once(name, &mut peer, &mut mine, &mut dice) {
                thread::sleep(Duration::from_millis(dice.below(20)));
            }
            *lock(&by.process) = None;
        }
    }

    /// Performs one request of a service; `false` if it died.
    fn serve_once(
        &self,
        name: &str,
        peer: &mut Peer,
        mine: &mut Option<String>,
        dice: &mut Dice,
    ) -> bool {
        let begun = self.history.now();
        let choice = dice.below(10);
        let job = mine.clone().filter(|_| choice > 3);
        let job = job.or_else(|| self.job(dice));
        let Some(job) = job.filter(|_| choice > 0) else {
            return self.has_posted(name, peer);
        };
        let (verb, what, expiry) = self.wish(name, &job, choice, dice);
        let mut request = json!({"do": verb, "uuid": job, "who": name});
        if let Some(expiry) = expiry {
            request["expiry"] = expiry.as_secs().into();
        }
        let answer = peer.answers(&request);
        let is_own = |error: &str| error.ends_with(&format!("already claimed by {name}"));
        let (what, result) = match (&answer, what) {
            (Some(Ok(_)), what) => (what, Some(Answer::Done)),
            // Even a refused claim of the same owner may extend it.
            (Some(Err(error)), What::Claim { owner, .. }) if is_own(error) && expiry.is_some() => {
                let term = expiry.unwrap_or_default();
                (What::Extend { owner, term }, Some(Answer::Done))
            }
            (Some(Err(error)), what) if self.is_sure => (what, Self::refusal(error)),
            (_, what) => (what, Some(Answer::Unknown)),
        };
        *mine = match (&result, verb) {
            (Some(Answer::Done), "claim") => Some(job.clone()),
            _ => mine.take().filter(|mine| *mine != job),
        };
        self.history.note((name, &job), what, begun, result);
        answer.is_some()
    }

    fn has_posted(&self, name: &str, peer: &mut Peer) -> bool {
        let begun = self.history.now();
        let details = json!({"command": ["sh", self.script]});
        let answer = peer.answers(&json!({"do": "post", "name": "theirs", "details": details}));
        if let Some(Ok(Value::String(job))) = &answer {
            self.knows(job);
            let who = (name, job.as_str());
            self.history
                .note(who, What::Post, begun, Some(Answer::Done));
        }
        answer.is_some()
    }

    /// Returns the request of a service: the verb, its act, and the duration of a claim.
    fn wish(
        &self,
        name: &str,
        job: &str,
        choice: u64,
        dice: &mut Dice,
    ) -> (&'static str, What, Option<Duration>) {
        // A trashed unique job would block its next post.
        let is_unique = lock(&self.jobs).first().is_some_and(|first| first == job);
        let (verb, how) = match choice {
            1..=4 => {
                let expiry = self.term(dice);
                let term = if self.can_lapse {
                    expiry
                } else {
                    Some(SESSION)
                };
                let (owner, fence) = (name.into(), None);
                return ("claim", What::Claim { owner, fence, term }, expiry);
            }
            5 | 6 => ("consume", How::Consume),
            7 if !is_unique => ("trash", How::Trash),
            _ => ("abandon", How::Abandon),
        };
        (verb, What::End(By::Name(name.into()), how), None)
    }

    /// Interprets the error of a service; `None` if it proves nothing about the job.
    fn refusal(error: &str) -> Option<Answer> {
        let owner = error.rsplit(' ').next().unwrap_or_default();
        match error {
            _ if error.contains("not owned by") => Some(Answer::NotTheirs),
            _ if error.contains("already claimed by") && Self::is_known(owner) => {
                Some(Answer::Claimed(Some(owner.into())))
            }
            // Some errors come from its cache.
            _ if ["UnclaimableJob", "NotFound", "KeyError"]
                .iter()
                .any(|it| error.starts_with(it)) =>
            {
                None
            }
            _ => Some(Answer::Unknown),
        }
    }
}

impl<'a> Hand<'a> {
    pub(super) fn new(crew: &'a Crew<'a>, name: &str, by: &'a Other) -> Self {
        Self {
            crew,
            name: name.to_owned(),
            by,
            board: None,
            dice: Dice::of(0),
        }
    }

    pub(super) fn claim(&self, job: &str, term: Option<Duration>) -> Outcome {
        let text = term.map(|term| format!("{}s", term.as_secs()));
        let expiry = text.as_deref().map(|text| ["--expiry", text]);
        let expiry = expiry.as_ref().map_or(&[][..], |words| &words[..]);
        let words = ["claim", job, "--who", self.name.as_str()];
        let (owner, fence) = (self.name.as_str().into(), None);
        let claim = What::Claim { owner, fence, term };
        self.act(job, &[&words[..], expiry].concat(), claim)
    }

    /// Runs a command to any end.
    fn run(&self, words: &[&str], command: &[&str]) -> Outcome {
        let board = self.board.as_deref().map(|board| ["--board", board]);
        let board = board.as_ref().map_or(&[][..], |words| &words[..]);
        let words = [words, board, &["--json"], command].concat();
        let running = self.crew.env.jobboard(&words).spawn();
        let pid = Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap();
        *lock(&self.by.process) = Some(pid);
        // Its pid is not reused before it is reaped.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        wait_until("the end of a command", || {
            waitid(WaitId::Pid(pid), options).unwrap().is_some()
        });
        *lock(&self.by.process) = None;
        running.ended()
    }

    /// Performs an act on a job, and records it.
    pub(super) fn act(&self, job: &str, words: &[&str], what: What) -> Outcome {
        let begun = self.crew.history.now();
        let outcome = self.run(words, &[]);
        let mut what = what;
        let answer = Answer::of(&outcome, Crew::is_known);
        if answer == Some(Answer::Done) {
            let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
            if let What::Claim { fence, .. } = &mut what {
                *fence = report["fence"]
                    .as_str()
                    .and_then(|fence| fence.parse().ok());
            }
        }
        let who = (self.name.as_str(), job);
        self.crew.history.note(who, what, begun, answer);
        outcome
    }

    /// Uses the board like users at a shell, until the end.
    pub(super) fn type_on(mut self) {
        let mut mine: Option<String> = None;
        while !self.crew.is_over() {
            let choice = self.dice.below(14);
            let job = mine.clone().filter(|_| choice > 5);
            let job = job.or_else(|| self.crew.job(&mut self.dice));
            match job {
                Some(job) if choice > 1 => {
                    let is_won = self.type_once(&job, choice);
                    mine = match is_won {
                        true => Some(job),
                        false => mine.filter(|mine| *mine != job),
                    };
                }
                _ => self.post(choice == 1),
            }
        }
    }

    /// Performs an act on a job; returns whether to continue with it.
    fn type_once(&mut self, job: &str, choice: u64) -> bool {
        let term = self.crew.term(&mut self.dice);
        let owner = || self.name.as_str().into();
        if let (7, Some(term)) = (choice, term) {
            let text = format!("{}s", term.as_secs());
            let words = ["extend", job, "--who", &self.name, "--expiry", &text];
            let owner = owner();
            return self.act(job, &words, What::Extend { owner, term }).code == 0;
        }
        let (verb, how) = match choice {
            2..=6 => return self.claim(job, term).code == 0,
            7..=9 => ("consume", How::Consume),
            10 => ("trash", How::Trash),
            _ => ("abandon", How::Abandon),
        };
        let end = What::End(By::Name(owner()), how);
        self.act(job, &[verb, job, "--who", &self.name], end);
        false
    }

    /// Posts a new job, or the unique one.
    pub(super) fn post(&self, is_unique: bool) {
        let begun = self.crew.history.now();
        let unique: &[_] = if is_unique { &["--unique", "it"] } else { &[] };
        let command = ["--", "sh", self.crew.script];
        let outcome = self.run(&[&["post", "ours"], unique].concat(), &command);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let known = self.crew.jobs().into_iter().next();
        let job = report["uuid"].as_str().map(str::to_owned);
        let Some(job) = job.or(known.filter(|_| is_unique)) else {
            // The uuid is unknown; commands may reveal it.
            return;
        };
        let answer = match &report["done"] {
            Value::String(done) if done == "exists" => Some(Answer::Exists),
            _ => Answer::of(&outcome, Crew::is_known),
        };
        self.crew.knows(&job);
        let who = (self.name.as_str(), job.as_str());
        self.crew.history.note(who, What::Post, begun, answer);
    }

    /// Inspects jobs and forces them like an operator, until the end.
    pub(super) fn operate(mut self) {
        while !self.crew.is_over() {
            thread::sleep(Duration::from_millis(self.dice.below(100)));
            let Some(job) = self.crew.job(&mut self.dice) else {
                continue;
            };
            let force = |verb| [verb, job.as_str(), "--force", "--yes"];
            let end = |how| What::End(By::Force, how);
            match self.dice.below(12) {
                0..=2 => self.act(&job, &force("abandon"), end(How::Abandon)),
                3 => self.act(&job, &force("consume"), end(How::Consume)),
                4 => self.act(&job, &force("trash"), end(How::Trash)),
                5 | 6 => self.act(&job, &["restore", &job, "--yes"], What::Restore),
                7 => self.act(&job, &["retry", &job, "--yes"], What::Retry),
                8 => self.act(&job, &["purge", &job, "--yes"], What::Purge),
                _ => self.look(&job),
            };
        }
    }

    /// Records the observed state of a job.
    pub(super) fn look(&self, job: &str) -> Outcome {
        let begun = self.crew.history.now();
        let outcome = self.run(&["show", job], &[]);
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        let owner = report["owner"].as_str().filter(|name| Crew::is_known(name));
        let sights = match report["state"].as_str() {
            Some("CLAIMED") if owner.is_some() => {
                vec![Sight::Held(owner.unwrap_or_default().into())]
            }
            Some("CLAIMED" | "UNCLAIMED") => vec![Sight::OnBoard],
            Some("TRASHED") => vec![Sight::Gone, Sight::InTrash],
            Some("COMPLETE") => vec![Sight::Gone],
            _ if outcome.code == 3 => vec![Sight::Gone],
            _ => Vec::new(),
        };
        for sight in sights {
            let who = (self.name.as_str(), job);
            let history = self.crew.history;
            history.note(who, What::Seen(sight), begun, Some(Answer::Done));
        }
        outcome
    }
}
