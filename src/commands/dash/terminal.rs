//! Takes over the terminal for the dashboard, and restores it in every case.

use std::{
    io::{self, Stdout},
    mem::ManuallyDrop,
    panic,
};

use crossterm::{
    cursor::{Hide, Show},
    event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture},
    execute, queue,
    terminal::{
        BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
        disable_raw_mode, enable_raw_mode,
    },
};
use ratatui::{Terminal, backend::CrosstermBackend, buffer::Buffer, layout::Rect};
use rustix::process::{Signal, getpid, kill_process};

#[derive(Debug)]
pub(super) struct Screen {
    /// Not dropped: its destructor reports an error without a terminal.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // Makes the panic message readable.
            leave();
            before(panic);
        }));
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        let terminal = ManuallyDrop::new(terminal);
        let screen = Self { terminal };
        enter()?;
        Ok(screen)
    }

    pub(super) fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws a frame; writes only changes, in one atomic update where the terminal supports it.
    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        queue!(io::stdout(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|frame| draw(frame.buffer_mut()))?;
        execute!(io::stdout(), EndSynchronizedUpdate)
    }

    pub(super) fn clear(&mut self) -> io::Result<()> {
        // Not `clear`, which asks the terminal for its cursor position while keys are read.
        let (columns, rows) = self.size()?;
        self.terminal.resize(Rect::new(0, 0, columns, rows))
    }

    pub(super) fn suspend(&mut self) -> io::Result<()> {
        leave();
        // Not SIGTSTP, which the dashboard catches.
        kill_process(getpid(), Signal::STOP)?;
        enter()?;
        self.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
        Hide
    )
}

/// Restores the terminal once; errors of a vanished terminal are ignored.
fn leave() {
    let _ = execute!(
        io::stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    );
    let _ = disable_raw_mode();
}

#[cfg(test)]
mod tests {
    use std::{env, process::Command};

    use super::*;

    /// The other test runs it on a terminal.
    #[test]
    #[ignore = "it panics"]
    fn panics_on_the_terminal() {
        let _screen = Screen::open().unwrap();
        panic!("the panic message");
    }

    #[test]
    fn panic_restores_the_terminal_before_its_message() {
        let test = "commands::dash::terminal::tests::panics_on_the_terminal";
        let program = env::current_exe().unwrap();
        let run = format!(
            "stty -g; {} --exact {test} --ignored --nocapture; stty -g",
            program.display()
        );
        let script = Command::new("script")
            .args(["-qec", &run, "/dev/null"])
            .output();
        let Ok(output) = script else {
            return eprintln!("skipped: there is no script(1)");
        };
        let printed = String::from_utf8_lossy(&output.stdout);
        let modes: Vec<_> = (printed.lines())
            .filter(|line| line.matches(':').count() > 20)
            .collect();
        assert!(modes.len() == 2 && modes[0] == modes[1], "{printed}");
        let at = |text| {
            printed
                .find(text)
                .unwrap_or_else(|| panic!("{text:?}: {printed}"))
        };
        let (taken, left) = (at("\u{1b}[?1049h"), at("\u{1b}[?1049l"));
        assert!(
            taken < left && left < at("the panic message\r\n"),
            "{printed}"
        );
    }
}
