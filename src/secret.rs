//! Passwords, kept out of all output.

mod cover;

use std::{fmt, io, path::Path, time::Duration};

pub(crate) use self::cover::{
    covered, covered_member, covered_text, covered_urls, has_cover, have_secret, is_covered,
};
use crate::bounded_read;

/// Our variables that may hold a password; no child process may inherit them.
pub(crate) const SECRET_VARIABLES: [&str; 3] =
    ["JOBBOARD_PASSWORD", "JOBBOARD_LOGBOOK", "JOBBOARD_URL"];

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Reads a secret up to the end, without the trailing newline of an editor.
    ///
    /// An empty one is an error: it would look like a password that was never set.
    pub(crate) fn read(from: impl io::Read) -> io::Result<Self> {
        Self::of(bounded_read::to_end(from)?)
    }

    fn of(bytes: Vec<u8>) -> io::Result<Self> {
        let text = String::from_utf8(bytes).map_err(|_| invalid("the file is not UTF-8 text"))?;
        let text = text.strip_suffix('\n').unwrap_or(&text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        if text.is_empty() {
            return Err(invalid("the file is empty"));
        }
        Ok(Self::new(text))
    }

    pub(crate) fn from_file(path: &Path, patience: Duration) -> io::Result<Self> {
        Self::of(bounded_read::file_or_pipe(
            path,
            bounded_read::MAX_BYTES,
            patience,
        )?)
    }

    /// Returns the text, for the one place that sends it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_hides_the_secret() {
        assert_eq!(format!("{:?}", Secret::new("hunter2")), "Secret(..)");
    }

    #[test]
    fn one_trailing_newline_is_dropped() {
        for (text, secret) in [
            ("hunter2", "hunter2"),
            ("hunter2\n", "hunter2"),
            ("hunter2\r\n", "hunter2"),
            ("hunter2\n\n", "hunter2\n"),
            (" hunter2 ", " hunter2 "),
        ] {
            assert_eq!(Secret::read(text.as_bytes()).unwrap().expose(), secret);
        }
    }

    #[test]
    fn invalid_passwords_are_refused() {
        for bytes in [&b""[..], b"\n", b"\r\n", b"\xff\xfe"] {
            let error = Secret::read(bytes).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }

    #[test]
    fn secret_is_read_from_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        std::fs::write(&path, "hunter2\n").unwrap();
        assert_eq!(
            Secret::from_file(&path, Duration::MAX).unwrap().expose(),
            "hunter2"
        );
        assert!(Secret::from_file(&directory.path().join("absent"), Duration::MAX).is_err());
    }
}
