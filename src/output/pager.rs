//! Long help on a terminal goes through a pager.

use std::{
    env,
    ffi::OsString,
    fs::File,
    io::{self, IsTerminal, Seek, Write},
    os::unix::process::CommandExt,
    process::Command,
};

use rustix::fs::{MemfdFlags, memfd_create};

use super::size_of;

/// Turns the pager off. Help is printed while arguments are parsed, so the option is searched in the raw words.
const OFF: &str = "--no-pager";

/// Replaces this process with a pager that shows the text. Returns if there is no pager or the text fits the
/// terminal.
pub(super) fn show(text: &str) {
    let rows = size_of(io::stdout()).map_or(usize::MAX, |(_, rows)| rows);
    let is_watched = io::stdin().is_terminal() && io::stdout().is_terminal();
    if !is_watched || text.lines().count() < rows || env::args_os().any(|word| word == OFF) {
        return;
    }
    let pager = env::var_os("PAGER").unwrap_or_else(|| OsString::from("less"));
    if !is_program(&pager.to_string_lossy()) {
        return;
    }
    if let Ok(file) = stored(text) {
        // The pager takes over the process: Ctrl-C, suspending and the exit code need no relaying.
        let mut command = Command::new("sh");
        command.arg("-c").arg(pager).stdin(file);
        if env::var_os("LESS").is_none() {
            command.env("LESS", "FRX");
        }
        let _ = command.exec();
    }
}

/// Whether the line begins with a program in PATH.
pub(crate) fn is_program(line: &str) -> bool {
    let search = env::var_os("PATH").unwrap_or_default();
    let mut directories = env::split_paths(&search);
    let program = line.split_whitespace().next();
    program.is_some_and(|program| directories.any(|it| it.join(program).is_file()))
}

fn stored(text: &str) -> io::Result<File> {
    let mut file = File::from(memfd_create("help", MemfdFlags::CLOEXEC)?);
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}
