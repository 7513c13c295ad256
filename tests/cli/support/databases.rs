//! Databases of OpenStack, each for one test, stopped with it.

use std::{
    fs::{self, Permissions},
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{
    env::wait_until,
    needs::{has, is_there},
    servers::{Authority, Identity, free_port},
};

/// The database names: Octavia's, and TaskFlow's.
pub(crate) const NAMES: [&str; 2] = ["octavia", "persistence"];

/// The user with all rights, and the password.
const USER: &str = "octavia";
const PASSWORD: &str = "hunter2";

/// A user for servers that refuse to run as root.
const NOBODY: u32 = 65_534;

/// The scheme of MariaDB in Python's URLs.
const MYSQL: &str = "mysql+pymysql";

pub(crate) struct Database {
    directory: TempDir,
    /// The issuer of its certificate.
    authority: Authority,
    scheme: &'static str,
    port: u16,
    process: Child,
}

impl Database {
    pub(crate) fn mariadb() -> Option<Self> {
        if !has("mariadb-install-db")
            || !is_there("mariadbd", Path::new("/usr/sbin/mariadbd").exists())
        {
            return None;
        }
        let authority = Authority::new()?;
        let Identity { cert, key } = authority.issue("IP:127.0.0.1", 2);
        let directory = tempfile::tempdir().unwrap();
        let (data, socket) = (
            directory.path().join("data"),
            directory.path().join("socket"),
        );
        let data = format!("--datadir={}", data.display());
        quiet(
            Command::new("mariadb-install-db")
                .args(["--no-defaults", &data, "--user=root"])
                .args(["--auth-root-authentication-method=normal", "--skip-test-db"]),
        );
        let port = free_port();
        let mut server = Command::new("/usr/sbin/mariadbd");
        server
            .args([
                "--no-defaults",
                &data,
                "--user=root",
                "--bind-address=127.0.0.1",
            ])
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--port={port}"))
            .arg(format!(
                "--pid-file={}",
                directory.path().join("pid").display()
            ))
            .arg("--innodb-flush-log-at-trx-commit=0")
            .arg(format!("--ssl-cert={}", cert.display()))
            .arg(format!("--ssl-key={}", key.display()));
        let database = Self::run(server, (directory, port), authority, MYSQL);
        let client = |words: &str| mysql(database.directory.path(), words);
        wait_until("MariaDB answers", || succeeds(client("SELECT 1")));
        for name in NAMES {
            quiet(&mut client(&format!(
                "CREATE DATABASE {name}; GRANT ALL ON {name}.* TO '{USER}'@'127.0.0.1' IDENTIFIED BY '{PASSWORD}'"
            )));
        }
        Some(database)
    }

    pub(crate) fn postgres() -> Option<Self> {
        let programs = postgres_programs();
        if !is_there("PostgreSQL", programs.is_some()) {
            return None;
        }
        let programs = programs?;
        let authority = Authority::new()?;
        let Identity { cert, key } = authority.issue("IP:127.0.0.1", 2);
        let directory = tempfile::tempdir().unwrap();
        let is_root = geteuid().is_root();
        if is_root {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let run = |name: &str| unprivileged(&programs.join(name));
        let data = directory.path().join("data");
        let mut password = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
        password.write_all(PASSWORD.as_bytes()).unwrap();
        if is_root {
            chown(password.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        quiet(
            run("initdb")
                .args(["-A", "scram-sha-256", "-U", USER, "--no-sync", "-D"])
                .arg(&data)
                .arg(format!("--pwfile={}", password.path().display())),
        );
        let mut settings = vec!["ssl=on".to_owned()];
        for (setting, from) in [("ssl_cert_file", cert), ("ssl_key_file", key)] {
            let to = directory.path().join(setting);
            fs::copy(from, &to).unwrap();
            // It rejects a key that other users can read.
            fs::set_permissions(&to, Permissions::from_mode(0o600)).unwrap();
            if is_root {
                chown(&to, Some(NOBODY), Some(NOBODY)).unwrap();
            }
            settings.push(format!("{setting}={}", to.display()));
        }
        let port = free_port();
        let mut server = run("postgres");
        server
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .args([
                "-c",
                "listen_addresses=127.0.0.1",
                "-c",
                "fsync=off",
                "-p",
                &port.to_string(),
            ])
            .arg("-k")
            .arg(directory.path())
            .arg("-D")
            .arg(&data);
        let database = Self::run(server, (directory, port), authority, "postgresql+psycopg2");
        let client = |words: &str| psql(&programs, port, words);
        wait_until("PostgreSQL answers", || succeeds(client("SELECT 1")));
        for name in NAMES {
            quiet(&mut client(&format!("CREATE DATABASE {name}")));
        }
        Some(database)
    }

    fn run(
        mut server: Command,
        (directory, port): (TempDir, u16),
        authority: Authority,
        scheme: &'static str,
    ) -> Self {
        let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self {
            directory,
            authority,
            scheme,
            port,
            process: process.unwrap(),
        }
    }

    /// Returns the URL of a database, as Python writes it.
    pub(crate) fn url(&self, name: &str) -> String {
        format!(
            "{}://{USER}:{PASSWORD}@127.0.0.1:{}/{name}",
            self.scheme, self.port
        )
    }

    pub(crate) fn tls_url(&self, name: &str) -> String {
        let key = match self.is_mariadb() {
            true => "ssl_verify_cert=true",
            false => "sslmode=verify-full",
        };
        format!("{}?{key}", self.url(name))
    }

    /// Returns a URL that names a trusted authority.
    pub(crate) fn secure_url(&self, name: &str, authority: &Authority) -> String {
        let key = match self.is_mariadb() {
            true => "ssl_ca",
            false => "sslrootcert",
        };
        format!("{}&{key}={}", self.tls_url(name), authority.ca().display())
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Returns the URL of a user who may only read, once such a user exists.
    pub(crate) fn url_of_reader(&self, name: &str) -> String {
        self.url(name).replace(&format!("//{USER}:"), "//reader:")
    }

    pub(crate) fn is_mariadb(&self) -> bool {
        self.scheme == MYSQL
    }

    pub(crate) fn mysql(&self, words: &str) {
        quiet(&mut mysql(self.directory.path(), words));
    }

    /// Executes a statement in a database.
    pub(crate) fn execute(&self, name: &str, words: &str) {
        if self.is_mariadb() {
            return self.mysql(&format!("USE {name}; {words}"));
        }
        let programs = postgres_programs().unwrap();
        let mut client = psql(&programs, self.port, words);
        quiet(client.env("PGDATABASE", name));
    }

    /// Empties both databases.
    pub(crate) fn clear(&self) {
        for name in NAMES {
            let how = if self.is_mariadb() {
                ""
            } else {
                " WITH (FORCE)"
            };
            let owner = if self.is_mariadb() {
                "mysql"
            } else {
                "postgres"
            };
            self.execute(owner, &format!("DROP DATABASE {name}{how}"));
            self.execute(owner, &format!("CREATE DATABASE {name}"));
        }
    }

    /// Suspends or resumes the server.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn mysql(directory: &Path, words: &str) -> Command {
    let mut command = Command::new("mariadb");
    command.args(["--no-defaults", "-uroot", "-e", words]);
    command.arg(format!("--socket={}", directory.join("socket").display()));
    command
}

/// Prepares a program run without root.
fn unprivileged(program: &Path) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program).current_dir("/");
    command
}

fn psql(programs: &Path, port: u16, words: &str) -> Command {
    let mut command = Command::new(programs.join("psql"));
    command.env("PGPASSWORD", PASSWORD);
    command.args(["-h", "127.0.0.1", "-U", USER]);
    command.env("PGDATABASE", "postgres");
    command.args(["-p", &port.to_string(), "-c", words]);
    command
}

fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut versions: Vec<_> = versions.flatten().map(|it| it.path().join("bin")).collect();
    versions.sort();
    versions.pop().filter(|path| path.join("initdb").exists())
}

fn succeeds(mut command: Command) -> bool {
    command.output().unwrap().status.success()
}

fn quiet(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
}
