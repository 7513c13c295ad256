//! Futures that are parts of a program, and stop and end with it.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use super::{
    machine::machine,
    program::{Inside, current},
};

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
