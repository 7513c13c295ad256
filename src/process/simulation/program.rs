//! Programs that can be stopped and killed: conductors and their guards.

use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::machine::machine;

thread_local! {
    /// The program that is being polled.
    static CURRENT: Cell<Option<u32>> = const { Cell::new(None) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    Runs,
    /// By SIGSTOP: time passes, and none of its code runs.
    Stopped,
    /// By SIGKILL.
    Dead,
}

pub(crate) fn current() -> Option<u32> {
    CURRENT.get()
}

/// Returns the number of a conductor's guard.
pub(crate) fn guard_of(conductor: u32) -> u32 {
    conductor | 1 << 31
}

/// Makes a future part of the current program.
pub(crate) fn part<F: Future>(future: F) -> ProgramPart<F> {
    part_of(current(), future)
}

pub(crate) fn part_of<F: Future>(program: Option<u32>, future: F) -> ProgramPart<F> {
    ProgramPart {
        program,
        future: Some(Box::pin(future)),
    }
}

pub(crate) struct ProgramPart<F> {
    program: Option<u32>,
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for ProgramPart<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let program = self.program;
        if let (Some(program), Some(machine)) = (program, machine())
            && !machine.lets_run(program, context.waker())
        {
            return Poll::Pending;
        }
        let _inside = Inside::of(program);
        match &mut self.future {
            Some(future) => future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl<F> Drop for ProgramPart<F> {
    fn drop(&mut self) {
        let _inside = Inside::of(self.program);
        self.future = None;
    }
}

struct Inside(Option<u32>);

impl Inside {
    fn of(program: Option<u32>) -> Self {
        Self(CURRENT.replace(program))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}
