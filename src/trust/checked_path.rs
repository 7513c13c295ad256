//! Walks the path to a file, directory by directory, and checks who could redirect it.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat},
    process::{getegid, geteuid},
};

use super::{Trust, Untrusted, check, kind, unreadable};

/// The kernel's own limit.
const MAX_LINKS: u32 = 40;

/// Who may write to the directories on the path, besides us and root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtherWriters {
    Nobody,
    /// The group with our number: many systems give each user a group and make it own directories.
    OurGroup,
}

#[derive(Debug)]
pub(crate) struct CheckedPath {
    /// The path without links.
    pub(crate) path: PathBuf,
    pub(crate) file: OwnedFd,
    pub(crate) stat: Stat,
}

impl CheckedPath {
    /// Walks to a file, and checks the path to it, but not the permissions of the file itself.
    ///
    /// Every directory and link must belong to this user or root, and no other user may be able to write to a directory,
    /// unless it is sticky like `/tmp`.
    pub(crate) fn to(path: &Path, others: OtherWriters) -> Result<Self, Untrusted> {
        let path = std::path::absolute(path).map_err(|source| unreadable(path, source))?;
        let mut current = Self::root()?;
        let mut rest = parts(&path);
        let mut links = 0;
        while let Some(part) = rest.pop() {
            current.check_passage(others)?;
            let next = current.step(&part)?;
            if FileType::from_raw_mode(next.stat.st_mode) != FileType::Symlink {
                current = next;
                continue;
            }
            links += 1;
            let target = readlinkat(&next.file, "", Vec::new());
            let target = target.map_err(|error| unreadable(&next.path, error.into()))?;
            let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
            if links > MAX_LINKS {
                let source = io::Error::other("the path has too many symbolic links");
                return Err(unreadable(&path, source));
            }
            if target.is_absolute() {
                current = Self::root()?;
            }
            rest.extend(parts(&target));
        }
        Ok(current)
    }

    /// Opens an entry of the directory without following a link. It must belong to us or root.
    pub(crate) fn step(&self, name: &OsStr) -> Result<Self, Untrusted> {
        let mut path = self.path.clone();
        match name == ".." {
            true => _ = path.pop(),
            false => path.push(name),
        }
        Self::open(self.file.as_fd(), name, path)
    }

    fn root() -> Result<Self, Untrusted> {
        Self::open(CWD, OsStr::new("/"), PathBuf::from("/"))
    }

    fn open(directory: impl AsFd, name: &OsStr, path: PathBuf) -> Result<Self, Untrusted> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = openat(directory, name, flags, Mode::empty())
            .and_then(|file| Ok((fstat(&file)?, file)))
            .map_err(|error| unreadable(&path, error.into()));
        let (stat, file) = opened?;
        let current = Self { path, file, stat };
        // Whatever its type: the owner could replace it or change its permissions.
        check(&current.path, current.stat.st_uid, 0, Trust::UsAndRoot)?;
        Ok(current)
    }

    /// Checks that no other user can replace an entry of the directory.
    fn check_passage(&self, others: OtherWriters) -> Result<(), Untrusted> {
        if FileType::from_raw_mode(self.stat.st_mode) != FileType::Directory {
            return Err(kind(&self.path, "a directory"));
        }
        let is_sticky = Mode::from_raw_mode(self.stat.st_mode).contains(Mode::SVTX);
        match is_sticky {
            true => Ok(()),
            false => self.check_place(others),
        }
    }

    /// Checks that no other user can create an entry there.
    pub(crate) fn check_place(&self, others: OtherWriters) -> Result<(), Untrusted> {
        let group = self.stat.st_gid;
        let is_ours = group == getegid().as_raw() && group == geteuid().as_raw();
        let mode = match others {
            OtherWriters::OurGroup if is_ours => self.stat.st_mode & !0o020,
            OtherWriters::OurGroup | OtherWriters::Nobody => self.stat.st_mode,
        };
        let checked = check(&self.path, self.stat.st_uid, mode, Trust::UsAndRoot);
        checked.map_err(|error| match error {
            // Report the whole mode, not only the bits that were checked.
            Untrusted::Writable { path, .. } => Untrusted::Writable {
                path,
                mode: self.stat.st_mode & 0o7777,
            },
            error => error,
        })
    }

    /// Checks the owner, and that no other user can write to it.
    pub(crate) fn check(&self, trust: Trust) -> Result<(), Untrusted> {
        check(&self.path, self.stat.st_uid, self.stat.st_mode, trust)
    }
}

/// Requires that only this user and root can write or replace a file.
pub(crate) fn require_ours(path: &Path) -> Result<(), Untrusted> {
    match fs::metadata(path) {
        // A pipe from process substitution has no path to check.
        Ok(found) if !found.is_file() => check(path, found.uid(), found.mode(), Trust::UsAndRoot),
        _ => CheckedPath::to(path, OtherWriters::OurGroup)?.check(Trust::UsAndRoot),
    }
}

fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    path.components().rev().filter_map(part).collect()
}
