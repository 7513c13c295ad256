//! Certificates for servers and clients, made by `openssl`.
//!
//! The tests of the boards use this file too.

use std::{path::PathBuf, process::Command};

use tempfile::TempDir;

use super::has;

/// The options for a new key; its file follows.
const KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout";

pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

pub(crate) struct Authority {
    directory: TempDir,
}

impl Authority {
    /// `None` without `openssl`.
    pub(crate) fn new() -> Option<Self> {
        if !has("openssl") {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let authority = Self { directory };
        authority.openssl(&format!(
            "req -x509 {KEY} ca.key -out ca.pem -days 2 -subj /CN=ca"
        ));
        Some(authority)
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }

    /// Issues a certificate for names such as `IP:127.0.0.1`, valid for some days.
    pub(crate) fn issue(&self, names: &str, days: i32) -> Identity {
        let id = uuid::Uuid::new_v4().simple().to_string();
        let subject = format!("-subj /CN={id} -addext subjectAltName={names}");
        self.openssl(&format!("req {KEY} {id}.key -out {id}.csr {subject}"));
        let by = "-CA ca.pem -CAkey ca.key -CAcreateserial -copy_extensions copy";
        self.openssl(&format!(
            "x509 -req -in {id}.csr -out {id}.pem {by} -days {days}"
        ));
        let path = |end: &str| self.directory.path().join(format!("{id}.{end}"));
        Identity {
            cert: path("pem"),
            key: path("key"),
        }
    }

    fn openssl(&self, arguments: &str) {
        let output = Command::new("openssl")
            .args(arguments.split(' '))
            .current_dir(&self.directory)
            .output()
            .unwrap();
        assert!(output.status.success(), "openssl {arguments}: {output:?}");
    }
}
