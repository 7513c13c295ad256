//! ZooKeeper server processes that end with the process that started them.
//!
//! Depends on no other module, so that the integration tests can use it too.

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

const SERVER_TIMEOUT: Duration = Duration::from_secs(90);

const JAR: &str = "/usr/share/java/zookeeper.jar";

/// Adds the classes that TLS servers need; Debian's manifest omits them.
pub(crate) const CLASSES: &str = "/usr/share/java/zookeeper.jar:/usr/share/java/netty-codec.jar:\
    /usr/share/java/netty-resolver.jar:/usr/share/java/netty-transport-native-unix-common.jar";

const MAIN: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

/// Small and quick to start.
///
/// Without the limit, election back-off grows to a minute; on a busy machine an election then takes minutes.
/// The server would write a snapshot after 100,000 changes, and exit because its directory is gone.
const VIRTUAL_MACHINE: [&str; 9] = [
    "-Dzookeeper.fastleader.maxNotificationInterval=1000",
    "-Dzookeeper.snapCount=1000000000",
    "-Xmx384m",
    "-Xss512k",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
    "-Dzookeeper.preAllocSize=64",
    "-Dzookeeper.jmx.log4j.disable=true",
];

/// Keeps nothing after its end, skips fsync and allows sessions of 500 ms.
const CONFIGURATION: &str = "tickTime=250\n\
    minSessionTimeout=500\n\
    maxSessionTimeout=60000\n\
    forceSync=no\n\
    admin.enableServer=false\n\
    maxClientCnxns=0\n\
    4lw.commands.whitelist=*\n";

fn is_installed() -> bool {
    may_start_servers()
        && is_there(JAR, Path::new(JAR).exists())
        && ["java", "setpriv"].iter().all(|program| has(program))
}

pub(crate) struct Process {
    /// `None` once the files of a server that never restarts are deleted.
    directory: Option<TempDir>,
    port: u16,
    child: Option<Child>,
}

impl Process {
    /// Returns the server that all tests of this process share, each below its own nodes.
    ///
    /// Starting it takes as long as running a hundred tests on it.
    pub(crate) fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Option<Process>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| {
            let mut process = Self::start(&[])?;
            // Statics are never dropped. By the first session the server has opened every file it needs.
            process.directory = None;
            Some(process)
        });
        shared.as_ref()
    }

    pub(crate) fn start(lines: &[&str]) -> Option<Self> {
        is_installed().then(|| Self::start_in(tempfile::tempdir().unwrap(), lines))
    }

    fn start_in(directory: TempDir, lines: &[&str]) -> Self {
        // If another test takes the port first, the server exits.
        for _ in 0..20 {
            let port = free_port();
            let data = directory.path().join("data");
            let configuration = format!(
                "{CONFIGURATION}dataDir={}\nclientPort={port}\nclientPortAddress=127.0.0.1\n{}\n",
                data.display(),
                lines.join("\n")
            );
            fs::write(directory.path().join("zoo.cfg"), configuration).unwrap();
            let mut child = spawn(directory.path());
            if serves(port, &mut child) {
                return Self {
                    directory: Some(directory),
                    port,
                    child: Some(child),
                };
            }
        }
        panic!("ZooKeeper does not start");
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it abruptly, like a power loss.
    pub(crate) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn start_again(&mut self) {
        self.stop();
        let directory = self.directory.as_ref().expect("it has kept its files");
        let mut child = spawn(directory.path());
        assert!(serves(self.port, &mut child), "the port is still free");
        self.child = Some(child);
    }

    /// Restarts it on the same port without its data.
    #[allow(dead_code, reason = "for the tests of commands")]
    pub(crate) fn start_empty(&mut self) {
        self.stop();
        let directory = self.directory.as_ref().expect("it has kept its files");
        std::fs::remove_dir_all(directory.path().join("data")).unwrap();
        self.start_again();
    }

    pub(crate) fn asked(&self, word: &str) -> String {
        ask(self.port, word, SERVER_TIMEOUT).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

pub(crate) struct Ensemble {
    members: Vec<Process>,
}

impl Ensemble {
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
            let directory = tempfile::tempdir().unwrap();
            let data = directory.path().join("data");
            fs::create_dir(&data).unwrap();
            fs::write(data.join("myid"), format!("{id}")).unwrap();
            let configuration = format!(
                "{CONFIGURATION}initLimit=40\nsyncLimit=20\ndataDir={}\nclientPort={port}\n\
                 clientPortAddress=127.0.0.1\n{servers}",
                data.display()
            );
            fs::write(directory.path().join("zoo.cfg"), configuration).unwrap();
            let child = Some(spawn(directory.path()));
            members.push(Process {
                directory: Some(directory),
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

    pub(crate) fn hosts(&self) -> String {
        let hosts = self.members.iter();
        let hosts = hosts.map(|member| format!("127.0.0.1:{}", member.port));
        hosts.collect::<Vec<_>>().join(",")
    }

    pub(crate) fn leader(&mut self) -> Option<&mut Process> {
        let leader = self.leader_at()?;
        Some(self.member(leader))
    }

    pub(crate) fn leader_at(&self) -> Option<usize> {
        let mut members = self.members.iter();
        members.position(|member| member.asked("srvr").contains("Mode: leader"))
    }

    /// Restarts the servers that have exited by themselves, as a service manager would.
    #[allow(dead_code, reason = "for the tests of boards")]
    pub(crate) fn revive(&mut self) {
        for member in &mut self.members {
            let child = member.child.as_mut();
            if child.is_some_and(|it| it.try_wait().unwrap().is_some()) {
                member.start_again();
            }
        }
    }

    pub(crate) fn member(&mut self, at: usize) -> &mut Process {
        &mut self.members[at]
    }
}

pub(crate) fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

fn free_ports<const COUNT: usize>() -> [u16; COUNT] {
    let listeners = [(); COUNT].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

/// Starts the server configured in a directory.
///
/// The kernel ends the server with the thread that started it, so that thread never ends.
fn spawn(directory: &Path) -> Child {
    let directory: PathBuf = directory.to_owned();
    let (sender, child) = mpsc::channel();
    thread::spawn(move || {
        let spawned = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "java"])
            .args(VIRTUAL_MACHINE)
            .args(["-cp", CLASSES, MAIN, "./zoo.cfg"])
            .current_dir(&directory)
            .stdin(Stdio::null())
            .stdout(fs::File::create(directory.join("out")).unwrap())
            .stderr(fs::File::create(directory.join("log")).unwrap())
            .spawn();
        sender.send(spawned.unwrap()).unwrap();
        loop {
            thread::park();
        }
    });
    child.recv().unwrap()
}

/// Waits until a server serves and has opened a session; `false` if it exits instead.
fn serves(port: u16, child: &mut Child) -> bool {
    let end = Instant::now() + SERVER_TIMEOUT;
    while child.try_wait().unwrap().is_none() {
        // A starting server may accept a connection and never serve it.
        let soon = Duration::from_millis(200);
        if ask(port, "srvr", soon).is_ok_and(|answer| answer.contains("Mode: ")) {
            // The first session takes by far the longest.
            let _ = open_session(port);
            // Another server may have answered on that port.
            return child.try_wait().unwrap().is_none();
        }
        assert!(Instant::now() < end, "ZooKeeper takes too long to start");
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn open_session(port: u16) -> io::Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(SERVER_TIMEOUT))?;
    let mut request = [0; 48];
    // Length, timeout in milliseconds, and length of the empty password.
    request[3] = 44;
    request[18..20].copy_from_slice(&1000_u16.to_be_bytes());
    request[31] = 16;
    stream.write_all(&request)?;
    stream.read_exact(&mut [0; 40])?;
    // Length, request number, and opcode: -11 closes the session.
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
