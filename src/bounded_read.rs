//! Reads files that a user names, within limits of size and time.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::{fd::AsFd, unix::fs::OpenOptionsExt},
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    io::Errno,
};

use crate::duration;

/// The largest file to read whole: a configuration, a certificate, a password.
pub(crate) const LARGEST: u64 = 1 << 20;

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
    from.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(too_long(LARGEST)),
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
    use std::{io::Write as _, thread};

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
            let told = file_or_pipe(path, LARGEST, LONG).unwrap_err().to_string();
            assert!(told.contains("more than 1048576 bytes"), "{told}");
        }
        assert_eq!(
            to_end(io::repeat(0)).unwrap_err().kind(),
            io::ErrorKind::Other
        );
    }

    #[test]
    fn pipe_read_has_a_timeout() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, 0o600.into(), 0).unwrap();
        regular_file(&pipe).unwrap_err();
        let late = file_or_pipe(&pipe, LARGEST, SHORT).unwrap_err();
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
            file_or_pipe(&pipe, LARGEST, LONG).unwrap(),
            b"some some some "
        );
        writer.join().unwrap();
    }
}
