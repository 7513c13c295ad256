//! The packages: built twice, installed, used, upgraded and removed in separate roots.
//!
//! `JOBBOARD_DIST=dist cargo test --test cli packages -- --include-ignored` tests the output of `scripts/package`;
//! otherwise the program under test is packed.

use std::{
    collections::BTreeSet,
    env, fs,
    io::Read as _,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
    thread,
};

use tempfile::TempDir;

use crate::support::{Authority, Server, needs};

/// Runs a program that must succeed, and returns its output.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    assert!(output.status.success(), "{command:?}\n{out}{err}");
    out.into_owned()
}

fn has_tools() -> bool {
    ["dpkg", "rpm", "rpmbuild", "jq", "lintian"]
        .into_iter()
        .all(needs::has)
        && needs::is_there("root", rustix::process::getuid().is_root())
}

/// Packs the program under test, quickly.
fn pack(revision: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/package");
    let program = env!("CARGO_BIN_EXE_jobboard");
    done(
        Command::new(script)
            .args(["--binary", program, "--revision", revision, "--out"])
            .arg(directory.path())
            .env("JOBBOARD_PACKAGE_XZ", "0")
            .env("SOURCE_DATE_EPOCH", "1700000000"),
    );
    directory
}

/// Returns the packages of most tests.
fn packed() -> PathBuf {
    static PACKED: OnceLock<TempDir> = OnceLock::new();
    match env::var_os("JOBBOARD_DIST") {
        Some(directory) => Path::new(env!("CARGO_MANIFEST_DIR")).join(directory),
        None => PACKED.get_or_init(|| pack("1")).path().to_owned(),
    }
}

/// Returns the packages of the next version.
fn upgrade() -> &'static Path {
    static PACKED: OnceLock<TempDir> = OnceLock::new();
    PACKED.get_or_init(|| pack("2")).path()
}

/// Returns the one file in a directory with this suffix.
fn file(directory: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(directory).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let mut found = paths.filter(|path| path.to_string_lossy().ends_with(end));
    found.next().unwrap()
}

/// A root file system with only the necessary files.
struct Root(TempDir);

impl Root {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for directory in ["tmp", "root", "etc"] {
            fs::create_dir(root.path().join(directory)).unwrap();
        }
        Self(root)
    }

    /// Copies the system libraries of the program.
    fn add_libraries(&self) {
        let needed = done(Command::new("ldd").arg(env!("CARGO_BIN_EXE_jobboard")));
        let paths = needed.split_whitespace().filter(|it| it.starts_with('/'));
        for path in paths {
            let there = self.0.path().join(&path[1..]);
            fs::create_dir_all(there.parent().unwrap()).unwrap();
            fs::copy(path, there).unwrap();
        }
    }

    /// Prepares a run of a program in this root.
    fn run(&self, words: &[&str]) -> Command {
        let chroot = env::split_paths("/usr/sbin:/usr/bin:/sbin");
        let chroot = chroot.map(|it| it.join("chroot"));
        let mut command = Command::new(chroot.into_iter().find(|it| it.exists()).unwrap());
        command.arg(self.0.path()).args(words);
        command.env_clear().env("HOME", "/root");
        command
    }

    /// Returns all files except those of package managers.
    fn files(&self) -> BTreeSet<PathBuf> {
        let listed = Command::new("find")
            .arg(self.0.path())
            .args(["-not", "-type", "d", "-not", "-path", "*/var/lib/*"])
            .output();
        let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
        listed.lines().map(PathBuf::from).collect()
    }
}

/// Uses an installed program like a user, and returns its version.
fn use_it(root: &Root, program: &str) -> String {
    let version = done(&mut root.run(&[program, "--version"]));
    let job = done(&mut root.run(&[program, "post", "backup"]));
    assert!(done(&mut root.run(&[program, "list"])).contains("backup"));
    done(&mut root.run(&[program, "consume", "--force", "--yes", job.trim()]));
    version
}

/// Installs, uses, upgrades, uses and removes: only the board remains.
fn comes_and_goes(root: &Root, manager: impl Fn(&[&str])) {
    root.add_libraries();
    let before = root.files();
    let ends = |directory: &Path| {
        ["deb", "rpm"].map(|end| file(directory, end).to_str().unwrap().to_owned())
    };
    for directory in [&packed(), upgrade()] {
        let [deb, rpm] = ends(directory);
        manager(&["install", &deb, &rpm]);
        assert_eq!(use_it(root, "/usr/bin/jobboard").trim(), version());
        for there in [
            "usr/share/man/man1/jobboard-claim.1.gz",
            "usr/share/man/man7/jobboard-boards.7.gz",
            "usr/share/bash-completion/completions/jobboard",
            "usr/share/doc/jobboard/examples/config.toml",
            "usr/lib/systemd/system/jobboard-conduct@.service",
            "etc/jobboard",
        ] {
            assert!(root.0.path().join(there).exists(), "{there}");
        }
    }
    let config = root.0.path().join("etc/jobboard/config.toml");
    fs::write(&config, "default = 'mine'\n").unwrap();
    manager(&["remove"]);
    let left: BTreeSet<_> = root.files().difference(&before).cloned().collect();
    let is_data = |path: &&PathBuf| {
        let text = path.to_string_lossy();
        text.contains("root/.local/state/jobboard/board.db")
            || path.ends_with("etc/jobboard/config.toml")
    };
    let strange: Vec<_> = left.iter().filter(|path| !is_data(path)).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(config.exists());
}

fn version() -> String {
    format!("jobboard {}", env!("CARGO_PKG_VERSION"))
}

#[test]
fn packages_are_reproducible() {
    if has_tools() {
        let hashes = |directory: &Path| fs::read_to_string(directory.join("SHA256SUMS")).unwrap();
        let (one, other) = (hashes(upgrade()), hashes(pack("2").path()));
        assert_eq!(one, other);
        assert_eq!(one.lines().count(), 4, "{one}");
    }
}

#[test]
fn debian_package_installs_and_uninstalls() {
    if !has_tools() {
        return;
    }
    let root = Root::new();
    let admin = root.0.path().join("var/lib/dpkg");
    for directory in ["info", "updates", "triggers"] {
        fs::create_dir_all(admin.join(directory)).unwrap();
    }
    fs::write(admin.join("status"), "").unwrap();
    comes_and_goes(&root, |words| {
        let act: &[&str] = match words {
            ["install", deb, _] => &["--install", deb],
            _ => &["--purge", "jobboard"],
        };
        // The libraries exist outside the package database.
        let root = format!("--root={}", root.0.path().display());
        done(
            Command::new("dpkg")
                .args([&root, "--force-depends"])
                .args(act),
        );
    });
}

#[test]
fn rpm_package_installs_and_uninstalls() {
    if !has_tools() {
        return;
    }
    let root = Root::new();
    comes_and_goes(&root, |words| {
        let act: &[&str] = match words {
            ["install", _, rpm] => &["--nodeps", "--upgrade", rpm],
            _ => &["--erase", "jobboard"],
        };
        let database = ["--dbpath", "/var/lib/rpm", "--root"];
        let mut rpm = Command::new("rpm");
        done(rpm.args(database).arg(root.0.path()).args(act));
    });
}

#[test]
fn lintian_accepts_the_debian_package() {
    if has_tools() {
        let deb = file(&packed(), "deb");
        let mut lintian = Command::new("lintian");
        let complaints = done(lintian.args(["--fail-on", "error,warning"]).arg(deb));
        assert_eq!(complaints, "");
    }
}

#[test]
fn bill_of_materials_lists_the_dependencies() {
    if has_tools() {
        let sbom = fs::read_to_string(file(&packed(), ".cdx.json")).unwrap();
        let sbom: serde_json::Value = serde_json::from_str(&sbom).unwrap();
        let mut parts = sbom["components"].as_array().unwrap().iter();
        let redis = parts.find(|it| it["name"] == "redis").unwrap();
        assert_eq!(redis["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(sbom["metadata"]["component"]["name"], "jobboard");
        assert!(!parts.any(|it| it["name"] == "insta"), "only for tests");
    }
}

/// The root contains only the program, a certificate, and the name server's address.
#[test]
#[ignore = "takes what scripts/package has built: JOBBOARD_DIST"]
fn static_program_needs_no_library() {
    need!(authority = Authority::new());
    let identity = authority.issue("DNS:board.test,DNS:board.hosts", 1);
    let server = Server::start_tls(&identity, &authority).unwrap();
    let root = Root::new();
    let packed = file(&packed(), "-linux.tar.gz");
    done(
        Command::new("tar")
            .arg("--extract")
            .arg("--file")
            .arg(packed)
            .args(["--strip-components=1", "--directory"])
            .arg(root.0.path()),
    );
    for (name, file) in [
        ("ca.pem", authority.ca()),
        ("cert.pem", identity.cert.clone()),
        ("key.pem", identity.key.clone()),
    ] {
        fs::copy(file, root.0.path().join(name)).unwrap();
    }
    fs::write(root.0.path().join("etc/hosts"), "127.0.0.1 board.hosts\n").unwrap();
    let resolver = "nameserver 127.83.83.83\n";
    fs::write(root.0.path().join("etc/resolv.conf"), resolver).unwrap();
    let socket = UdpSocket::bind("127.83.83.83:53").unwrap();
    thread::spawn(move || answer_names(&socket));
    for host in ["board.hosts", "board.test"] {
        let files = "ca=/ca.pem&cert=/cert.pem&key=/key.pem";
        let url = format!("rediss://{host}:{}?{files}", server.port());
        let ping = done(&mut root.run(&["/jobboard", "--board", &url, "ping"]));
        assert!(ping.contains("redis"), "{ping}");
    }
    assert_eq!(use_it(&root, "/jobboard").trim(), version());
    let mut program = Vec::new();
    let file = fs::File::open(root.0.path().join("jobboard"));
    file.unwrap().read_to_end(&mut program).unwrap();
    let here = env!("CARGO_MANIFEST_DIR").as_bytes();
    let is_shown = program.windows(here.len()).any(|bytes| bytes == here);
    assert!(!is_shown, "the program knows where it was built");
}

/// Resolves every IPv4 name to this machine.
fn answer_names(socket: &UdpSocket) {
    let mut asked = [0; 512];
    while let Ok((length, who)) = socket.recv_from(&mut asked) {
        let question = &asked[12..length];
        let name = question.iter().position(|byte| *byte == 0).unwrap();
        let question = &question[..name + 5];
        let is_v4 = question[name + 2] == 1;
        let mut answer = asked[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_v4), 0, 0, 0, 0]);
        answer.extend(question);
        if is_v4 {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
        }
        socket.send_to(&answer, who).unwrap();
    }
}
