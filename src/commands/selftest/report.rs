//! What a test of a board tells: of each promise how it is kept, what was measured, and what can be relied on.

use std::time::Duration;

use serde::Serialize;

use super::{
    looks::Figures,
    promise::{Grade, Promise, Seen},
    site::Site,
};
use crate::{
    board::{Board, BoardError},
    exit::chain,
    names::named,
    output::{Page, Record, Report, Tone},
    shell,
};

named! {
    /// What can be said of a board as a whole.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub(crate) enum Verdict ("verdict", str::eq) {
        Sound => "sound",
        Weak => "weak",
        Broken => "broken",
        Unknown => "unknown",
    }
}

/// How one promise is kept, and why that is said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Judged {
    pub(super) promise: Promise,
    means: &'static str,
    pub(super) grade: Grade,
    pub(super) why: String,
    /// What to do about it.
    remedy: Option<String>,
}

/// What has been found so far.
pub(super) struct Findings {
    board: String,
    server: Option<String>,
    judged: Vec<Judged>,
    pub(super) figures: Figures,
    /// What could not be seen, and why.
    pub(super) unseen: Vec<String>,
    /// What earlier ones had left.
    pub(super) removed: Vec<String>,
    took: Duration,
    /// What keeps anything from being tried, where that is a right.
    pub(super) denied: Option<BoardError>,
}

impl Findings {
    pub(super) fn new(board: &dyn Board, server: Option<String>) -> Self {
        Self {
            board: board.name().to_owned(),
            server,
            judged: Vec::new(),
            figures: Figures::default(),
            unseen: Vec::new(),
            removed: Vec::new(),
            took: Duration::ZERO,
            denied: None,
        }
    }

    /// Notes how a promise is kept; what was seen first of one that is broken stands.
    pub(super) fn judge(&mut self, promise: Promise, Seen(grade, why, remedy): Seen) {
        if let Some(known) = self.judged.iter_mut().find(|it| it.promise == promise) {
            if grade > known.grade {
                (known.grade, known.why, known.remedy) = (grade, why, remedy);
            }
            return;
        }
        let means = promise.meaning();
        self.judged.push(Judged {
            promise,
            means,
            grade,
            why,
            remedy,
        });
    }

    /// Returns how a promise is kept, as far as that is known.
    pub(super) fn of(&self, promise: Promise) -> Option<Grade> {
        let found = self.judged.iter().find(|it| it.promise == promise);
        found.map(|it| it.grade)
    }

    /// Says of all that takes acting why it was not tried.
    pub(super) fn nothing_tried(&mut self, why: &str) {
        for promise in Promise::ALL.iter().filter(|it| !it.is_seen()) {
            if self.of(*promise).is_none() {
                self.judge(*promise, Seen::untried(why));
            }
        }
    }

    /// Says of all that takes acting that it cannot even begin.
    pub(super) fn cannot_begin(&mut self, error: BoardError) {
        let why = chain(&error);
        match error {
            BoardError::Denied { .. } => {
                self.judge(Promise::Rights, Seen::weak(&why, "grant it to the user"));
                self.denied = Some(error);
            }
            _ => self.judge(Promise::Answers, Seen::broken(&why)),
        }
        self.nothing_tried(&why);
    }

    /// Says that it is over, and how long it took.
    pub(super) fn over(&mut self, took: Duration) {
        self.took = took;
    }

    /// Says what can be relied on.
    pub(super) fn told(mut self, left: Option<Place>) -> Told {
        self.nothing_tried("there was no time for it: --for gives it more");
        self.judged.sort_by_key(|it| it.promise as usize);
        let named = |grade: Grade| {
            let of = self.judged.iter().filter(|it| it.grade == grade);
            of.map(|it| it.promise.name()).collect::<Vec<_>>()
        };
        let (broken, weak) = (named(Grade::Broken), named(Grade::Weak));
        let untried = named(Grade::Untried);
        let untried: Vec<_> = Promise::ALL
            .iter()
            .filter(|it| !it.is_seen())
            .map(|it| it.name())
            .filter(|name| untried.contains(name))
            .collect();
        let (verdict, guarantee) = match (&broken[..], &weak[..], &untried[..]) {
            ([], [], []) => (
                Verdict::Sound,
                "A job that is posted here stays until it is done, one at a time has it, and whoever loses it \
                 settles nothing: also when connections break and processes die."
                    .to_owned(),
            ),
            ([], _, [_, ..]) => (
                Verdict::Unknown,
                format!(
                    "Nothing is broken as far as it was tried; nobody knows of {}.",
                    untried.join(", ")
                ),
            ),
            ([], [_, ..], []) => (
                Verdict::Weak,
                format!(
                    "Jobs are safe here with reservations: see {}. All else is kept.",
                    weak.join(", ")
                ),
            ),
            ([_, ..], ..) => (
                Verdict::Broken,
                format!(
                    "Do not trust this board with jobs before this is mended: {}.",
                    broken.join(", ")
                ),
            ),
        };
        Told {
            board: self.board,
            server: self.server,
            verdict,
            guarantee,
            seconds: self.took.as_secs_f64(),
            promises: self.judged,
            figures: self.figures,
            unseen: self.unseen,
            removed: self.removed,
            left,
        }
    }
}

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    board: String,
    server: Option<String>,
    pub(super) verdict: Verdict,
    guarantee: String,
    /// How long it took, without cleaning up.
    seconds: f64,
    promises: Vec<Judged>,
    figures: Figures,
    unseen: Vec<String>,
    removed: Vec<String>,
    left: Option<Place>,
}

/// A board that was to be thrown away, and what removes it.
#[derive(Debug, Serialize)]
pub(super) struct Place {
    pub(super) place: String,
    pub(super) command: String,
}

impl Place {
    pub(super) fn of(site: &Site, mut program: Vec<String>) -> Self {
        program.extend(["selftest", "--clean"].map(str::to_owned));
        Self {
            place: site.url.to_string(),
            command: shell::line(&program),
        }
    }
}

impl Record for Told {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    /// Returns a line for each promise, each figure, what could not be seen, and the verdict.
    fn lines(&self) -> Vec<Vec<String>> {
        let line = |words: [&str; 4]| words.map(str::to_owned).to_vec();
        let promises = self.promises.iter().map(|it| {
            let remedy = it.remedy.as_deref().unwrap_or_default();
            line([it.promise.name(), it.grade.name(), &it.why, remedy])
        });
        let figures = self.figures.told();
        let figures = figures
            .iter()
            .map(|(name, text)| line([name, "", text, ""]));
        let unseen = self
            .unseen
            .iter()
            .map(|what| line(["unseen", "", what, ""]));
        let verdict = line(["verdict", self.verdict.name(), &self.guarantee, ""]);
        promises
            .chain(figures)
            .chain(unseen)
            .chain([verdict])
            .collect()
    }
}

impl Report for Told {
    fn human(&self, page: &mut Page) {
        /// How far in the reasons stand.
        const HANG: usize = 22;
        page.line().add(Tone::Strong, &self.board);
        if let Some(server) = &self.server {
            page.fact("served by", server);
        }
        page.fact("tried for", format!("{:.1} s", self.seconds));
        page.line();
        let (untried, tried): (Vec<_>, Vec<_>) =
            (self.promises.iter()).partition(|it| it.grade == Grade::Untried);
        for it in tried {
            let line = page.sentence(HANG).plain(format!("{:<13}", it.promise));
            line.add(it.grade.tone(), format!("{:<9}", it.grade))
                .plain(&it.why);
            if it.grade != Grade::Ok {
                let line = page.sentence(HANG).plain(format!("{:HANG$}", ""));
                line.add(Tone::Faint, "promised: ").plain(it.means);
            }
            if let Some(remedy) = &it.remedy {
                let line = page.sentence(HANG).plain(format!("{:HANG$}", ""));
                line.add(Tone::Faint, "do: ").plain(remedy);
            }
        }
        for alike in untried.chunk_by(|one, other| one.why == other.why) {
            let names: Vec<_> = alike.iter().map(|it| it.promise.name()).collect();
            let line = page.sentence(HANG).add(Tone::Faint, "untried: ");
            line.plain(names.join(", "))
                .plain(format!(": {}", alike[0].why));
        }
        let figures = self.figures.told();
        if !figures.is_empty() {
            page.line();
        }
        for (name, text) in figures {
            page.fact(name, text);
        }
        for what in &self.unseen {
            page.fact("not seen", what);
        }
        for name in &self.removed {
            page.fact("removed", format!("{name}, which an earlier test had left"));
        }
        page.line();
        let tone = match self.verdict {
            Verdict::Sound => Tone::Good,
            Verdict::Weak => Tone::Busy,
            Verdict::Broken => Tone::Bad,
            Verdict::Unknown => Tone::Strong,
        };
        let line = page.sentence(0).add(tone, self.verdict.name());
        line.plain(": ").plain(&self.guarantee);
    }
}

/// What earlier ones have left beside a board.
#[derive(Debug, Serialize)]
pub(super) struct Leavings {
    board: String,
    /// Where this one would work; none, if it was only to clean up.
    place: Option<String>,
    left: Vec<String>,
    removed: Vec<String>,
}

impl Leavings {
    pub(super) fn shown(board: &dyn Board, site: &Site, left: Vec<String>) -> Self {
        Self {
            board: board.name().to_owned(),
            place: Some(site.url.to_string()),
            left,
            removed: Vec::new(),
        }
    }

    pub(super) fn removed(board: &dyn Board, removed: Vec<String>) -> Self {
        Self {
            board: board.name().to_owned(),
            place: None,
            left: Vec::new(),
            removed,
        }
    }
}

impl Record for Leavings {
    fn fields(&self) -> Vec<String> {
        self.lines().concat()
    }

    fn lines(&self) -> Vec<Vec<String>> {
        let line = |word: &str, what: &String| vec![word.to_owned(), what.clone()];
        let place = self.place.iter().map(|it| line("place", it));
        let left = self.left.iter().map(|it| line("left", it));
        let removed = self.removed.iter().map(|it| line("removed", it));
        place.chain(left).chain(removed).collect()
    }
}

impl Report for Leavings {
    fn human(&self, page: &mut Page) {
        page.line().add(Tone::Strong, &self.board);
        for fields in self.lines() {
            page.fact(&fields[0], &fields[1]);
        }
        if self.left.is_empty() && self.removed.is_empty() {
            page.line().plain("Earlier tests have left nothing.");
        }
    }
}
