//! The report of a board test: a grade per promise, and a verdict.

use serde::Serialize;

use super::promise::{Assessment, Grade, Promise};
use crate::{
    board::{Board, BoardError},
    exit::chain,
    names::named,
    output::{Page, Report, Tone, listed},
    suggest::Suggestion,
};

named! {
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
    pub(crate) enum BoardGrade ("verdict", str::eq) {
        Sound => "sound",
        Weak => "weak",
        Broken => "broken",
        #[default]
        Unknown => "unknown",
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct GradedPromise {
    promise: Promise,
    means: &'static str,
    #[serde(flatten)]
    seen: Assessment,
}

#[derive(Debug, Default, Serialize)]
pub(super) struct Findings {
    board: String,
    server: Option<String>,
    pub(super) verdict: BoardGrade,
    guarantee: String,
    pub(super) seconds: f64,
    promises: Vec<GradedPromise>,
    pub(super) unseen: Vec<String>,
    pub(super) removed: Vec<String>,
    pub(super) left: Option<LeftoverBoard>,
    #[serde(skip)]
    pub(super) denied: Option<BoardError>,
}

#[derive(Debug, Serialize)]
pub(super) struct LeftoverBoard {
    pub(super) place: String,
    pub(super) command: Suggestion,
}

impl Findings {
    pub(super) fn new(board: &dyn Board, server: Option<String>) -> Self {
        Self {
            board: board.url().to_owned(),
            server,
            ..Self::default()
        }
    }

    /// Grades a promise; the first failure of a broken promise stands.
    pub(super) fn grade(&mut self, promise: Promise, seen: Assessment) {
        match self.promises.iter_mut().find(|it| it.promise == promise) {
            Some(known) if seen.grade > known.seen.grade => known.seen = seen,
            Some(_) => {}
            None => self.promises.push(GradedPromise {
                promise,
                means: promise.meaning(),
                seen,
            }),
        }
    }

    pub(super) fn of(&self, promise: Promise) -> Option<Grade> {
        let mut known = self.promises.iter();
        known
            .find(|it| it.promise == promise)
            .map(|it| it.seen.grade)
    }

    pub(super) fn is_all_tried(&self) -> bool {
        let mut all = Promise::ALL.iter().filter(|it| !it.is_seen());
        all.all(|it| matches!(self.of(*it), Some(Grade::Ok | Grade::Weak)))
    }

    pub(super) fn nothing_tried(&mut self, why: &str) {
        for promise in Promise::ALL.iter().filter(|it| !it.is_seen()) {
            if self.of(*promise).is_none() {
                self.grade(*promise, Assessment::untried(why));
            }
        }
    }

    pub(super) fn cannot_begin(&mut self, error: BoardError) {
        let why = chain(&error);
        match error {
            BoardError::Denied { .. } => {
                self.grade(
                    Promise::Rights,
                    Assessment::weak(&why, "grant this permission to the user"),
                );
                self.denied = Some(error);
            }
            _ => self.grade(Promise::Answers, Assessment::new(Grade::Broken, &why)),
        }
        self.nothing_tried(&why);
    }

    pub(super) fn conclude(&mut self) {
        self.nothing_tried("out of time; allow more with --for");
        self.promises.sort_by_key(|it| it.promise as usize);
        let named = |grade: Grade| {
            let of = self.promises.iter().filter(|it| it.seen.grade == grade);
            // A read without a result does not outweigh a test.
            let of = of.filter(|it| grade != Grade::Untried || !it.promise.is_seen());
            listed(of.map(|it| it.promise.name()))
        };
        let [broken, weak, untried] = [Grade::Broken, Grade::Weak, Grade::Untried].map(named);
        (self.verdict, self.guarantee) = match [&*broken, &*weak, &*untried] {
            ["", "", ""] => (
                BoardGrade::Sound,
                "You can trust this board with jobs: no job is lost, each has one owner at a time, \
                    and former owners cannot settle it, even after broken connections and crashes."
                    .to_owned(),
            ),
            ["", _, ""] => (
                BoardGrade::Weak,
                format!("Jobs are safe here with limits: see {weak}. Every other promise holds."),
            ),
            ["", _, _] => (
                BoardGrade::Unknown,
                format!("No broken promise found, but these were not tested: {untried}."),
            ),
            _ => (
                BoardGrade::Broken,
                format!("Do not trust this board with jobs until this is fixed: {broken}."),
            ),
        };
    }
}

impl Report for Findings {
    fn human(&self, page: &mut Page) {
        const HANG: usize = 22;
        page.line().add(Tone::Strong, &self.board);
        page.facts("backend", &self.server);
        page.fact("duration", format!("{:.1} s", self.seconds));
        page.line();
        let (untried, tried): (Vec<_>, Vec<_>) =
            (self.promises.iter()).partition(|it| it.seen.grade == Grade::Untried);
        for it in tried {
            let (promise, seen) = (it.promise, &it.seen);
            let line = page.sentence(HANG).plain(format!("{promise:<13}"));
            line.add(seen.grade.tone(), format!("{:<9}", seen.grade))
                .plain(&seen.why);
            let promised = (seen.grade != Grade::Ok).then_some(("promised: ", it.means));
            let remedy = seen.remedy.as_deref().map(|it| ("do: ", it));
            for (word, text) in promised.into_iter().chain(remedy) {
                let line = page.sentence(HANG).plain(format!("{:HANG$}", ""));
                line.add(Tone::Faint, word).plain(text);
            }
            if let Some(command) = &seen.command {
                page.command(&format!("{:HANG$}do: ", ""), command);
            }
        }
        for alike in untried.chunk_by(|one, other| one.seen.why == other.seen.why) {
            let line = page.sentence(HANG).add(Tone::Faint, "untried: ");
            line.plain(listed(alike.iter().map(|it| it.promise.name())))
                .plain(format!(": {}", alike[0].seen.why));
        }
        page.facts("not checked", &self.unseen);
        for name in &self.removed {
            page.fact("removed", format!("{name}, from an earlier test"));
        }
        page.line();
        let tone = match self.verdict {
            BoardGrade::Sound => Tone::Good,
            BoardGrade::Weak => Tone::Warning,
            BoardGrade::Broken => Tone::Bad,
            BoardGrade::Unknown => Tone::Strong,
        };
        let line = page.sentence(0).add(tone, self.verdict.name());
        line.plain(": ").plain(&self.guarantee);
    }
}

#[derive(Debug, Serialize)]
pub(super) struct RemovalReport {
    pub(super) board: String,
    pub(super) place: Option<String>,
    pub(super) left: Vec<String>,
    pub(super) removed: Vec<String>,
}

impl Report for RemovalReport {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        page.facts("place", &self.place);
        page.facts("left", &self.left);
        page.facts("removed", &self.removed);
        if self.left.is_empty() && self.removed.is_empty() {
            page.line().plain("Earlier tests left nothing behind.");
        }
    }
}
