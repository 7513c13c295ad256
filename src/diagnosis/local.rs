//! Diagnoses this machine: permissions of trusted files, and missing kernel features.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::{
    board::examine::Examined,
    config::Config,
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

pub(super) fn examine(config: &Config) -> Examined {
    let mut seen = Examined::default();
    let configs = config.files();
    let configs = configs.map(|it| (it, 0o022, Code::ConfigWritable, "written", "go-w"));
    let password = config.password_file();
    let password = password.map(|it| (it, 0o077, Code::PasswordReadable, "read", "600"));
    for (path, forbidden, code, what, mode) in configs.chain(password) {
        let Ok(found) = fs::metadata(path).map(|found| found.mode() & 0o7777) else {
            continue;
        };
        // A shell's pipe is read once, and only by its own reader.
        if found & forbidden != 0 && path.is_file() {
            let name = path.display();
            let summary = format!("{name} can be {what} by other users (mode {found:o})");
            let command = Suggestion::of("chmod").with([mode, &path.to_string_lossy()]);
            seen.add(Problem::new(code, summary).fixed_by(Fix::elsewhere(command)));
        }
    }
    let lacking = [
        (
            "pidfd",
            pidfd_open(getpid(), PidfdFlags::empty()).is_err(),
            "uname -r",
        ),
        (
            "/proc",
            !Path::new("/proc/self/exe").exists(),
            "mount -t proc proc /proc",
        ),
    ];
    for (what, _, remedy) in lacking.into_iter().filter(|(_, lacks, _)| *lacks) {
        let summary = format!("the kernel or this container lacks {what}");
        let remedy = Fix::elsewhere(Suggestion::of(remedy));
        seen.add(Problem::new(Code::Kernel, summary).fixed_by(remedy));
    }
    seen
}
