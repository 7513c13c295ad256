//! ZooKeeper servers as processes, which end with the process that started them, however it ends.
//!
//! Stands on its own, so that the tests of the program as a whole can start the same servers.

use std::{
    fs,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{OnceLock, mpsc},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::needs::{has, is_there, may_start_servers};

/// How long a server may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(90);

/// What ZooKeeper is run from, as Debian has it.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// The same, and what servers with TLS need besides, which Debian's does not name.
pub(crate) const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar:\
    /usr/share/java/netty-resolver.jar:/usr/share/java/netty-transport-native-unix-common.jar";

const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Small and quick to start, as servers for tests are.
///
/// Who votes asks again ever more rarely, down to once a minute: on a busy machine that would be an election of minutes.
const VIRTUAL_MACHINE: [&str; 8] = [
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
    "-Xmx128m",
    "-Xss512k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.jmx.log4j.disable=true",
];

/// Forgets all when it ends, waits for no disk, and lets sessions be as short as 500 ms.
const CONFIGURATION: &str = "tickTime=250\n\
    minSessionTimeout=500\n\
    maxSessionTimeout=60000\n\
    forceSync=no\n\
    admin.enableServer=false\n\
    maxClientCnxns=0\n\
    4lw.commands.whitelist=*\n";

/// Whether all is there that a server needs.
fn is_installed() -> bool {
    may_start_servers()
        && is_there(JAR, Path::new(JAR).exists())
        && ["java", "setpriv"].iter().all(|program| has(program))
}

/// A server on 127.0.0.1.
pub(crate) struct Process {
    /// `None` once the files of a server that never starts again are gone.
    folder: Option<TempDir>,
    port: u16,
    child: Option<Child>,
}

impl Process {
    /// Returns the one that all tests of this process share, each below nodes of its own.
    ///
    /// It takes a moment to start, and as much to run a hundred tests on it as one.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Process>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let mut process = Self::start(&[])?;
            // What is static is never dropped. With the first session the server has opened all
            // files that it ever needs.
            process.folder = None;
            Some(process)
        });
        shared.as_ref()
    }

    /// Starts one with these lines added to its configuration, on a port of its own.
    pub(crate) fn start(lines: &[&str]) -> Option<Self> {
        is_installed().then(|| Self::start_in(tempfile::tempdir().unwrap(), lines))
    }

    fn start_in(folder: TempDir, lines: &[&str]) -> Self {
        // Another test may take the port before the server does, which then ends.
        for _ in 0..20 {
            let port = free_port();
            let data = folder.path().join("data");
            let configuration = format!(
                "{CONFIGURATION}dataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n{}\n",
                data.display(),
                lines.join("\n")
            );
            fs::write(folder.path().join("zoo.cfg"), configuration).unwrap();
            let mut child = spawn(folder.path());
            if serves(port, &mut child) {
                return Self {
                    folder: Some(folder),
                    port,
                    child: Some(child),
                };
            }
        }
        panic!("ZooKeeper does not start");
    }

    /// Returns the port on which it listens, without TLS.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it as if its machine had lost power.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again with the data that it had, where it was.
    pub(crate) fn start_again(&mut self) {
        self.stop();
        let folder = self.folder.as_ref().expect("it has kept its files");
        let mut child = spawn(folder.path());
        assert!(serves(self.port, &mut child), "the port is still free");
        self.child = Some(child);
    }

    /// Starts it again without any of its data.
    #[allow(dead_code, reason = "for the tests of commands")]
    pub(crate) fn start_empty(&mut self) {
        self.stop();
        let folder = self.folder.as_ref().expect("it has kept its files");
        std::fs::remove_dir_all(folder.path().join("data")).unwrap();
        self.start_again();
    }

    /// Asks with one of the words of four letters that servers know.
    pub(crate) fn asked(&self, word: &str) -> String {
        ask(self.port, word, PATIENCE).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Servers that elect a leader among them.
pub(crate) struct Ensemble {
    members: Vec<Process>,
}

impl Ensemble {
    /// Starts three, and waits until each serves.
    pub(crate) fn start() -> Option<Self> {
        if !is_installed() {
            return None;
        }
        for _ in 0..5 {
            if let Some(members) = Self::try_start() {
                return Some(Self { members });
            }
        }
        panic!("the ensemble does not start");
    }

    fn try_start() -> Option<Vec<Process>> {
        let ports: [[u16; 3]; 3] = [(); 3].map(|()| free_ports());
        let servers: String = (1..)
            .zip(&ports)
            .map(|(id, [_, peers, votes])| format!("server.{id}=127.0.0.1:{peers}:{votes}\n"))
            .collect();
        let mut members = Vec::new();
        for (id, [port, ..]) in (1..).zip(ports) {
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("data");
            fs::create_dir(&data).unwrap();
            fs::write(data.join("myid"), format!("{id}")).unwrap();
            let configuration = format!(
                "{CONFIGURATION}initLimit=40\nsyncLimit=20\ndataDir={}\nclientPort={port}\n\
                 clientPortAddress=127.0.0.1\n{servers}",
                data.display()
            );
            fs::write(folder.path().join("zoo.cfg"), configuration).unwrap();
            let child = Some(spawn(folder.path()));
            members.push(Process {
                folder: Some(folder),
                port,
                child,
            });
        }
        let mut serving = members.iter_mut();
        let all_serve = serving.all(|member| {
            let child = member.child.as_mut().expect("it was just started");
            serves(member.port, child)
        });
        all_serve.then_some(members)
    }

    /// Returns where they listen, as it stands in a URL.
    pub(crate) fn hosts(&self) -> String {
        let hosts = self.members.iter();
        let hosts = hosts.map(|member| format!("127.0.0.1:{}", member.port));
        hosts.collect::<Vec<_>>().join(",")
    }

    /// Returns the one that leads the others; `None` while they are still voting.
    pub(crate) fn leader(&mut self) -> Option<&mut Process> {
        let leader = self.leader_at()?;
        Some(self.member(leader))
    }

    /// Returns which one leads the others; `None` while they are still voting.
    pub(crate) fn leader_at(&self) -> Option<usize> {
        let mut members = self.members.iter();
        members.position(|member| member.asked("srvr").contains("Mode: leader"))
    }

    pub(crate) fn member(&mut self, at: usize) -> &mut Process {
        &mut self.members[at]
    }
}

/// Returns a port on which nobody listens yet.
pub(crate) fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Starts the server whose configuration is in a folder.
///
/// The kernel ends it with the thread that has started it, and so that thread never ends.
fn spawn(folder: &Path) -> Child {
    let folder: PathBuf = folder.to_owned();
    let (sender, child) = mpsc::channel();
    thread::spawn(move || {
        let spawned = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "java"])
            .args(VIRTUAL_MACHINE)
            .args(["-cp", CLASSES, MAIN, "./zoo.cfg"])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(fs::File::create(folder.join("out")).unwrap())
            .stderr(fs::File::create(folder.join("log")).unwrap())
            .spawn();
        sender.send(spawned.unwrap()).unwrap();
        loop {
            thread::park();
        }
    });
    child.recv().unwrap()
}

/// Waits until a server serves, and has given somebody a session; `false` if it ends instead.
fn serves(port: u16, child: &mut Child) -> bool {
    let end = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        // A server that is starting may take a connection, and never look at it.
        let soon = Duration::from_millis(200);
        if ask(port, "srvr", soon).is_ok_and(|answer| answer.contains("Mode: ")) {
            // The first one takes by far the longest.
            let _ = open_session(port);
            // Perhaps it was somebody else who has answered on that port.
            return child.try_wait().unwrap().is_none();
        }
        assert!(Instant::now() < end, "ZooKeeper takes too long to start");
        thread::sleep(Duration::from_millis(20));
    }
    false
}

/// Opens a session, and closes it.
fn open_session(port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut request = [0; 48];
    // Its length, the timeout in milliseconds, and the length of a password that is none yet.
    request[3] = 44;
    request[18..20].copy_from_slice(&1000_u16.to_be_bytes());
    request[31] = 16;
    stream.write_all(&request)?;
    stream.read_exact(&mut [0; 40])?;
    // Its length, its number, and what it asks for: -11 is the end.
    stream.write_all(&[0, 0, 0, 8, 0, 0, 0, 1, 255, 255, 255, 245])?;
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

fn ask(port: u16, word: &str, patience: Duration) -> io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(word.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
