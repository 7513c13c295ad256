//! The destination of commands' output: our own output by line, files of limited size, or nowhere.

use std::{
    collections::VecDeque,
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::{fs::OFlags, process::geteuid};

use crate::{
    conductor::log::{Log, LogItem, OutputStream, Tag},
    process::command::{CommandSpec, OutputTarget},
};

const MAX_FILE_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Destination {
    /// To our output, each line after the name of its job.
    Prefix,
    Inherit,
    Discard,
    Directory(PathBuf),
}

impl Destination {
    /// Standard error is read in all cases but one: its end explains a failure.
    pub(crate) fn apply(&self, command: &mut CommandSpec) {
        (command.output, command.errors) = match self {
            Self::Prefix | Self::Directory(_) => (OutputTarget::Pipe, OutputTarget::Pipe),
            Self::Inherit => (OutputTarget::Inherit, OutputTarget::Inherit),
            Self::Discard => (OutputTarget::Discard, OutputTarget::Pipe),
        };
    }
}

#[derive(Debug)]
pub(super) enum OutputSink {
    Lines(Arc<Tag>),
    File(Arc<Log>, u64),
    Nothing,
}

impl OutputSink {
    pub(super) fn of(
        destination: &Destination,
        tag: &Arc<Tag>,
        attempt: u32,
    ) -> Result<Self, String> {
        Ok(match destination {
            Destination::Prefix => Self::Lines(Arc::clone(tag)),
            Destination::Directory(directory) => {
                let path = path_of(directory, tag, attempt);
                let failed = |error| format!("{}: {error}", path.display());
                let file = open(&path).map_err(failed)?;
                // A repeated attempt appends to the file of the first.
                let length = file.metadata().map_err(failed)?.len();
                Self::File(Arc::new(Log::new(Some(tag), path, file)), length)
            }
            Destination::Inherit | Destination::Discard => Self::Nothing,
        })
    }

    pub(super) fn take_line(
        &mut self,
        waiting: &mut VecDeque<LogItem>,
        stream: OutputStream,
        mut text: Vec<u8>,
    ) {
        match self {
            Self::Lines(job) => waiting.push_back(LogItem::Line {
                job: Arc::clone(job),
                stream,
                text,
            }),
            Self::File(file, length) => {
                if *length > MAX_FILE_BYTES {
                    return;
                }
                text.push(b'\n');
                *length += text.len() as u64;
                if *length > MAX_FILE_BYTES {
                    text.extend_from_slice(
                        b"(the rest of the output exceeds the limit and is not kept)\n",
                    );
                }
                match waiting.back_mut() {
                    // Separate entries per line would leave no room for notes.
                    Some(LogItem::Bytes(_, last)) => last.append(&mut text),
                    _ => waiting.push_back(LogItem::Bytes(Arc::clone(file), text)),
                }
            }
            Self::Nothing => {}
        }
    }
}

fn path_of(directory: &Path, tag: &Tag, attempt: u32) -> PathBuf {
    // The name is foreign text: it must not lead out of the directory or be too long for it.
    let plain = |text: &str, most: usize| -> String {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.');
        let plain = text.chars().map(|it| if is_plain(it) { it } else { '_' });
        plain.take(most).collect()
    };
    let (name, uuid) = (plain(&tag.name, 100), plain(&tag.uuid, 36));
    directory.join(format!("{name}-{uuid}.{attempt}.log"))
}

/// Other writers of the directory may place a link or a pipe without a reader there. Opening neither follows nor
/// waits for it.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    let found = file.metadata()?;
    let is_ours = found.is_file() && found.uid() == geteuid().as_raw() && found.nlink() == 1;
    match is_ours {
        true => Ok(file),
        false => Err(io::Error::other("the path is not a private regular file")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_file_has_a_size_limit() {
        let directory = tempfile::tempdir().unwrap();
        let tag = Tag {
            uuid: "0123456789".to_owned(),
            name: "../a b".to_owned(),
        };
        let path = path_of(directory.path(), &tag, 2);
        assert_eq!(path, directory.path().join(".._a_b-0123456789.2.log"));
        let file = open(&path).unwrap();
        let file = Arc::new(Log::new(Some(&Arc::new(tag)), path, file));
        let (mut sink, mut waiting) = (OutputSink::File(file, MAX_FILE_BYTES - 1), VecDeque::new());
        for _ in 0..3 {
            sink.take_line(&mut waiting, OutputStream::Output, b"line".to_vec());
        }
        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn repeated_attempt_shares_the_size_limit_of_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let tag = Arc::new(Tag {
            uuid: "0123456789".to_owned(),
            name: "a".to_owned(),
        });
        let path = path_of(directory.path(), &tag, 1);
        open(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let destination = Destination::Directory(directory.path().to_owned());
        let mut sink = OutputSink::of(&destination, &tag, 1).unwrap();
        let mut waiting = VecDeque::new();
        sink.take_line(&mut waiting, OutputStream::Output, b"line".to_vec());
        assert_eq!(waiting.len(), 0);
    }

    #[test]
    fn foreign_files_are_neither_followed_nor_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("ours"), "before\n").unwrap();
        open(&at("ours")).unwrap();
        std::os::unix::fs::symlink(at("ours"), at("link")).unwrap();
        std::fs::hard_link(at("ours"), at("second")).unwrap();
        std::fs::create_dir(at("folder")).unwrap();
        let fifo = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), fifo, 0o600.into(), 0).unwrap();
        for name in ["link", "second", "ours", "folder", "pipe"] {
            open(&at(name)).unwrap_err();
        }
        // A pipe with a reader is refused too.
        let _reader = File::options()
            .read(true)
            .write(true)
            .open(at("pipe"))
            .unwrap();
        open(&at("pipe")).unwrap_err();
        if geteuid().is_root() {
            std::fs::write(at("foreign"), "").unwrap();
            std::os::unix::fs::chown(at("foreign"), Some(65534), None).unwrap();
            open(&at("foreign")).unwrap_err();
        }
    }
}
