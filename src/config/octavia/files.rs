//! Finds the files that describe the board.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};

use crate::config::Environment;

/// Returns the files, later ones override earlier ones. A named directory stands for its files. The default is
/// Octavia's own file and the files in its directory.
pub(super) fn find(named: &str, folder: &Path, env: &Environment) -> anyhow::Result<Vec<PathBuf>> {
    // It may contain a password.
    ensure!(!named.contains("://"), "octavia:FILE takes no URL");
    let named = match named {
        "" => {
            let folder = env.etc.join("octavia");
            let beside = folder.join("octavia.conf.d");
            let beside = beside.is_dir().then_some(beside);
            [folder.join("octavia.conf")]
                .into_iter()
                .chain(beside)
                .collect()
        }
        named => {
            let files = named.split(',').filter(|file| !file.is_empty());
            files.map(|file| folder.join(file)).collect::<Vec<_>>()
        }
    };
    let mut files = Vec::new();
    for path in named {
        if path.is_dir() {
            files.append(&mut inside(&path)?);
            continue;
        }
        let exists = path.try_exists();
        let exists = exists.with_context(|| format!("cannot access {}", path.display()))?;
        ensure!(
            exists,
            "file {} does not exist; name the configuration as octavia:FILE, or several as \
             octavia:FILE,FILE",
            path.display()
        );
        files.push(path);
    }
    Ok(files)
}

fn inside(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let trying = || format!("cannot read the directory {}", folder.display());
    let entries = fs::read_dir(folder).with_context(trying)?;
    let paths = entries.map(|entry| Ok(entry.with_context(trying)?.path()));
    let mut paths = paths.collect::<anyhow::Result<Vec<_>>>()?;
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    paths.retain(|path| {
        path.extension() == Some(OsStr::new("conf")) && !path.file_name().is_some_and(is_hidden)
    });
    paths.sort();
    Ok(paths)
}
