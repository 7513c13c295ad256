//! Reads files that a user names, within limits of size and time.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Read},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    io::Errno,
};

use crate::duration;

/// The largest file to read whole: a configuration, a certificate, a password.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// How long to wait for the program at the other end of a named pipe.
const OTHER_END: Duration = Duration::from_secs(5);

/// Opens a file or pipe for reading without a time limit; only the first bytes of a named pipe must come soon.
pub(crate) fn input(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if file.metadata().is_ok_and(|it| is_named_pipe(path, &it)) {
        let begun = wait_for(&file, (Instant::now(), OTHER_END));
        begun.map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => no_other_end("wrote to"),
            _ => error,
        })?;
    }
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Opens what `options` describe for writing. A named pipe must soon have a reader.
pub(crate) fn output(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if !fs::metadata(path).is_ok_and(|it| is_named_pipe(path, &it)) {
        return options.open(path);
    }
    let start = Instant::now();
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    loop {
        match options.open(path) {
            Ok(file) => {
                fcntl_setfl(&file, OFlags::empty())?;
                return Ok(file);
            }
            Err(error) if Errno::from_io_error(&error) != Some(Errno::NXIO) => return Err(error),
            Err(_) if start.elapsed() > OTHER_END => return Err(no_other_end("reads")),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The pipes of process substitution have no name: both ends are open already.
fn is_named_pipe(path: &Path, facts: &Metadata) -> bool {
    facts.file_type().is_fifo() && fs::canonicalize(path).is_ok()
}

fn no_other_end(does: &str) -> io::Error {
    let patience = duration::exact(OTHER_END);
    let problem = format!("no program {does} the pipe within {patience}");
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

pub(crate) fn regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let found = file.metadata()?;
    if !found.is_file() && !found.is_dir() {
        return Err(io::Error::other("the path is not a regular file"));
    }
    to_end(file)
}

pub(crate) fn to_end(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MAX_BYTES {
        true => Err(too_long(MAX_BYTES)),
        false => Ok(bytes),
    }
}

pub(crate) fn file_or_pipe(path: &Path, most: u64, patience: Duration) -> io::Result<Vec<u8>> {
    within(open(path)?, most, (Instant::now(), patience))
}

pub(crate) fn within(mut file: File, most: u64, time: (Instant, Duration)) -> io::Result<Vec<u8>> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    while bytes.len() as u64 <= most {
        wait_for(&file, time)?;
        match file.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Err(too_long(most))
}

/// Waits until the descriptor is readable or the process has ended, up to this long after `start`.
pub(crate) fn wait_for(file: impl AsFd, (start, patience): (Instant, Duration)) -> io::Result<()> {
    loop {
        let left = patience.saturating_sub(start.elapsed());
        // A timeout too large for the clock means no timeout.
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], left.as_ref()) {
            Ok(0) => return Err(late(patience)),
            Err(Errno::INTR) => {}
            polled => return Ok(polled.map(drop)?),
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

fn too_long(most: u64) -> io::Error {
    io::Error::other(format!("the input has more than {most} bytes"))
}

fn late(patience: Duration) -> io::Error {
    let patience = duration::exact(patience);
    let problem = format!("the input did not end within {patience}");
    io::Error::new(io::ErrorKind::TimedOut, problem)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    const SHORT: Duration = Duration::from_millis(50);
    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn endless_file_is_not_read_completely() {
        for path in ["/dev/zero", "/dev/urandom"] {
            let path = path.as_ref();
            assert!(
                regular_file(path)
                    .unwrap_err()
                    .to_string()
                    .contains("not a regular")
            );
            let message = file_or_pipe(path, MAX_BYTES, LONG).unwrap_err().to_string();
            assert!(message.contains("more than 1048576 bytes"), "{message}");
        }
        assert_eq!(
            to_end(io::repeat(0)).unwrap_err().kind(),
            io::ErrorKind::Other
        );
    }

    #[test]
    fn named_pipe_without_another_end_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        let read = || input(&pipe).unwrap_err().to_string();
        let write = || output(File::options().write(true), &pipe).unwrap_err();
        let (read, written) = thread::scope(|scope| {
            let read = scope.spawn(read).join().unwrap();
            (read, write().to_string())
        });
        assert_eq!(read, "no program wrote to the pipe within 5s");
        assert_eq!(written, "no program reads the pipe within 5s");
        let reader = pipe.clone();
        let reader = thread::spawn(move || to_end(input(&reader).unwrap()).unwrap());
        let mut writer = output(File::options().write(true), &pipe).unwrap();
        writer.write_all(b"some").unwrap();
        drop(writer);
        assert_eq!(reader.join().unwrap(), b"some");
    }

    #[test]
    fn pipe_read_has_a_timeout() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        regular_file(&pipe).unwrap_err();
        let late = file_or_pipe(&pipe, MAX_BYTES, SHORT).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let writer = pipe.clone();
        let writer = thread::spawn(move || {
            let mut end = File::options().write(true).open(writer).unwrap();
            for _ in 0..3 {
                end.write_all(b"some ").unwrap();
                thread::sleep(SHORT / 10);
            }
        });
        assert_eq!(
            file_or_pipe(&pipe, MAX_BYTES, LONG).unwrap(),
            b"some some some "
        );
        writer.join().unwrap();
    }
}
