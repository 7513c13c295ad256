//! The event loop of the dashboard.
//!
//! Board requests run beside the keys, one of each kind at a time.

use std::{
    collections::{HashMap, HashSet},
    mem::{Discriminant, discriminant},
    time::Duration,
};

use anyhow::Context as _;
use chrono::Utc;
use crossterm::event::{
    Event as TerminalEvent, EventStream, KeyEventKind, MouseButton, MouseEventKind,
};
use futures_util::{
    StreamExt,
    future::{LocalBoxFuture, OptionFuture},
    stream::{FuturesUnordered, LocalBoxStream},
};
use rustix::process::{Signal, kill_current_process_group};
use tokio::time::{Instant, sleep_until};

use super::{
    act::DashEffect,
    draw::{self, DrawStyle},
    questions::Questions,
    state::DashState,
    terminal::Screen,
    update::{DashInput, update},
};
use crate::{
    board::follow::{News, Start, follow},
    commands::parts::under_claim,
    exit::chain,
    process::signal::Signals,
};

const FRAME: Duration = Duration::from_millis(33);

const LOOK: Duration = Duration::from_millis(40);

const MAX_READ_JOBS: usize = 500;

/// A task pauses for this multiple of its duration.
const PAUSE_FACTOR: u32 = 20;

/// The lines that a step of the mouse wheel moves.
const WHEEL: isize = 3;

const SECOND: Duration = Duration::from_secs(1);

struct DashSession<'a> {
    questions: Questions<'a>,
    state: DashState,
    look: DrawStyle,
    screen: Screen,
    tasks: FuturesUnordered<LocalBoxFuture<'a, (QuestionKind, DashInput)>>,
    asked: HashSet<QuestionKind>,
    /// Requests to repeat after the answer to the same request.
    again: HashMap<QuestionKind, DashEffect>,
    reading: Option<(LocalBoxStream<'a, DashInput>, Instant)>,
    due: DueTimes,
}

type QuestionKind = Discriminant<DashEffect>;

struct DueTimes {
    frame: Option<Instant>,
    drawn: Instant,
    tick: Instant,
    read: Option<Instant>,
    may_read: Instant,
    may_look: Instant,
    may_count: Instant,
}

pub(super) async fn run(
    questions: Questions<'_>,
    state: DashState,
    look: DrawStyle,
) -> anyhow::Result<()> {
    let mut signals = Signals::ending()?;
    let mut news = follow(questions.board, Start::Now);
    let trying = || questions.ctx.trying("watch", "the jobs");
    // Before taking over the terminal: an unreachable board is reported on the plain screen.
    let first = news.next().await.transpose().with_context(trying)?;
    let mut stops = Signals::catch(&[Signal::TSTP])?;
    let mut keys = EventStream::new();
    let now = Instant::now();
    let mut session = DashSession {
        questions,
        state,
        look,
        screen: Screen::open().context("cannot use the terminal")?,
        tasks: FuturesUnordered::new(),
        asked: HashSet::new(),
        again: HashMap::new(),
        reading: None,
        due: DueTimes {
            frame: Some(now),
            drawn: now,
            tick: now + SECOND,
            read: None,
            may_read: now,
            may_look: now,
            may_count: now,
        },
    };
    session.state.size = session.screen.size()?;
    let mut goes_on = session.hear(first)?;
    while goes_on {
        session.attend()?;
        let wake = session.wake();
        goes_on = tokio::select! {
            biased;
            signal = signals.next() => return Err(under_claim::code(128 + signal.as_raw())),
            _ = stops.next() => session.suspend()?,
            key = keys.next() => match key {
                Some(key) => session.key(key?)?,
                None => false,
            },
            Some((kind, input)) = session.tasks.next(), if !session.tasks.is_empty() => {
                session.answered(kind, input)?
            }
            () = sleep_until(wake.unwrap_or_else(Instant::now)), if wake.is_some() => true,
            heard = news.next() => session.hear(heard.transpose().with_context(trying)?)?,
            Some(read) = OptionFuture::from(session.reading.as_mut().map(|(stream, _)| stream.next())), if session.reading.is_some() => session.read(read)?,
        };
    }
    Ok(())
}

impl<'a> DashSession<'a> {
    fn take(&mut self, input: DashInput) -> anyhow::Result<bool> {
        let is_tick = matches!(input, DashInput::Tick);
        let effects = update(&mut self.state, input, Utc::now());
        if !is_tick || self.state.changes_with_time() {
            self.redraw();
        }
        for effect in effects {
            match effect {
                DashEffect::Quit => return Ok(false),
                // Stops the rest of the pipeline or script, too.
                DashEffect::Suspend => kill_current_process_group(Signal::TSTP)?,
                DashEffect::Redraw => self.screen.clear()?,
                DashEffect::Read => self.due.read = Some(self.due.may_read),
                DashEffect::ReadNow => {
                    self.reading = None;
                    self.due.may_read = Instant::now();
                    self.due.read = Some(self.due.may_read);
                }
                question => self.ask(question),
            }
        }
        Ok(true)
    }

    fn ask(&mut self, effect: DashEffect) {
        let kind = discriminant(&effect);
        if self.asked.insert(kind) {
            let filters = self.state.picture.filters.clone();
            let answer = self.questions.ask(effect, filters);
            self.tasks
                .push(Box::pin(async move { (kind, answer.await) }));
        } else {
            self.again.insert(kind, effect);
        }
    }

    fn answered(&mut self, kind: QuestionKind, input: DashInput) -> anyhow::Result<bool> {
        self.asked.remove(&kind);
        if matches!(input, DashInput::Found(Err(_))) {
            self.due.may_look = Instant::now() + SECOND;
        }
        if let Some(effect) = self.again.remove(&kind) {
            self.ask(effect);
        }
        self.take(input)
    }

    fn key(&mut self, event: TerminalEvent) -> anyhow::Result<bool> {
        match event {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => {
                // Keys are answered without delay.
                self.due.drawn -= FRAME;
                self.take(DashInput::Key(key))
            }
            TerminalEvent::Paste(text) => self.take(DashInput::Paste(text)),
            TerminalEvent::Mouse(mouse) => match mouse.kind {
                MouseEventKind::Down(MouseButton::Left) => {
                    self.take(DashInput::Click(mouse.column, mouse.row))
                }
                MouseEventKind::ScrollUp => self.take(DashInput::Scroll(-WHEEL)),
                MouseEventKind::ScrollDown => self.take(DashInput::Scroll(WHEEL)),
                _ => Ok(true),
            },
            TerminalEvent::Resize(columns, rows) => self.take(DashInput::Resize(columns, rows)),
            _ => Ok(true),
        }
    }

    fn hear(&mut self, news: Option<News>) -> anyhow::Result<bool> {
        match news {
            None => Ok(false),
            Some(News::Event(event)) => self.take(DashInput::Event(event)),
            Some(News::Lost(error)) => {
                self.reading = None;
                self.take(DashInput::Lost(chain(&error)))
            }
            Some(News::Listening(lack) | News::Back(lack)) => self.take(DashInput::Listening(lack)),
        }
    }

    fn read(&mut self, read: Option<DashInput>) -> anyhow::Result<bool> {
        let Some(input) = read else {
            self.finish_reading();
            return self.take(DashInput::Read);
        };
        if matches!(input, DashInput::Unread(_)) {
            self.finish_reading();
            // The subscription reports its return; otherwise the read is repeated.
            self.due.read = Some(self.due.may_read + SECOND);
        }
        self.take(input)
    }

    fn finish_reading(&mut self) {
        if let Some((_, start)) = self.reading.take() {
            self.due.may_read = Instant::now() + start.elapsed() * PAUSE_FACTOR;
            // Requests from meanwhile wait as well.
            self.due.read = self.due.read.map(|read| read.max(self.due.may_read));
        }
    }

    fn redraw(&mut self) {
        let next = self.due.drawn + FRAME;
        self.due.frame = Some(self.due.frame.map_or(next, |frame| frame.min(next)));
    }

    fn suspend(&mut self) -> anyhow::Result<bool> {
        self.screen.suspend()?;
        let (columns, rows) = self.screen.size()?;
        self.take(DashInput::Resize(columns, rows))
    }

    fn attend(&mut self) -> anyhow::Result<()> {
        let now = Instant::now();
        if self.due_read().is_some_and(|read| read <= now) {
            self.due.read = None;
            let filters = self.state.picture.filters.clone();
            self.reading = Some((self.questions.read(&filters), now));
            self.take(DashInput::Reading)?;
        }
        if self.due_look().is_some_and(|look| look <= now) {
            self.due.may_look = now + LOOK;
            let places = self.state.picture.ask(MAX_READ_JOBS);
            self.ask(DashEffect::Find(places));
        }
        if self.due.tick <= now {
            self.due.tick = now + SECOND;
            self.take(DashInput::Tick)?;
        }
        if self.due.frame.is_some_and(|frame| frame <= now) {
            self.frame(now)?;
        }
        Ok(())
    }

    fn due_read(&self) -> Option<Instant> {
        let is_possible = self.reading.is_none() && !self.state.is_away();
        self.due.read.filter(|_| is_possible)
    }

    fn due_look(&self) -> Option<Instant> {
        let kind = discriminant(&DashEffect::Find(Vec::new()));
        let is_possible = !self.asked.contains(&kind) && !self.state.is_away();
        (is_possible && self.state.picture.wants()).then_some(self.due.may_look)
    }

    fn frame(&mut self, now: Instant) -> anyhow::Result<()> {
        self.due.frame = None;
        self.due.drawn = now;
        let state = &mut self.state;
        state.now = Utc::now();
        state.size = self.screen.size()?;
        if state.summary.version != Some(state.picture.version) {
            if self.due.may_count <= now {
                state.update_summary();
                self.due.may_count = now + now.elapsed() * PAUSE_FACTOR;
            } else {
                self.due.frame = Some(self.due.may_count.max(now + FRAME));
            }
        }
        draw::fit(state);
        let look = self.look;
        self.screen.draw(|buffer| draw::draw(state, look, buffer))?;
        Ok(())
    }

    fn wake(&self) -> Option<Instant> {
        let tick = self.state.changes_with_time().then_some(self.due.tick);
        let times = [self.due.frame, tick, self.due_read(), self.due_look()];
        times.into_iter().flatten().min()
    }
}
