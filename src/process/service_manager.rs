//! Notifies the service manager that started this process, over systemd's socket.

use std::{
    ffi::OsString,
    io,
    os::{
        linux::net::SocketAddrExt,
        unix::{
            ffi::OsStrExt,
            net::{SocketAddr, UnixDatagram},
        },
    },
    time::Duration,
};

use rustix::process::{Pid, getppid};

/// Systemd's variables: the socket for notifications, the watchdog interval and its process, the sockets to hand over,
/// and facts about this process.
pub(crate) const VARIABLES: [&str; 9] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "SYSTEMD_EXEC_PID",
    "MANAGERPID",
    "FDSTORE",
];

#[derive(Debug)]
pub(crate) struct ServiceManager {
    socket: UnixDatagram,
    address: SocketAddr,
    /// A service without a notification for this long is restarted.
    pub(crate) watchdog: Option<Duration>,
}

impl ServiceManager {
    pub(crate) fn find(variable: impl Fn(&str) -> Option<OsString>) -> io::Result<Option<Self>> {
        let [name, pause, whose, ..] = VARIABLES.map(variable);
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(None);
        };
        let address = match name.as_bytes() {
            [b'/', ..] => SocketAddr::from_pathname(&name)?,
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => {
                return Err(io::Error::other(
                    "NOTIFY_SOCKET does not name a local socket",
                ));
            }
        };
        let number = |text: Option<OsString>| text?.to_str()?.parse::<u64>().ok();
        // The first process of a container starts us as its child.
        let is_child_of_first = || getppid().is_some_and(Pid::is_init);
        let is_us = |pid| pid == u64::from(std::process::id()) || pid == 1 && is_child_of_first();
        let is_ours = whose.is_none() || number(whose).is_some_and(is_us);
        let pause = number(pause).filter(|pause| *pause > 0 && is_ours);
        let socket = UnixDatagram::unbound()?;
        // A manager that does not read must not block us.
        socket.set_nonblocking(true)?;
        Ok(Some(Self {
            socket,
            address,
            watchdog: pause.map(Duration::from_micros),
        }))
    }

    /// Sends all of these, each as `NAME=value`, or none of them.
    pub(crate) fn notify(&self, assignments: &[String]) -> io::Result<()> {
        let lines = assignments.join("\n");
        self.socket.send_to_addr(lines.as_bytes(), &self.address)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(variables: [Option<&str>; 3]) -> io::Result<Option<ServiceManager>> {
        ServiceManager::find(|name| {
            let at = VARIABLES.iter().position(|known| *known == name)?;
            variables.get(at)?.map(OsString::from)
        })
    }

    #[test]
    fn notification_reaches_a_path_and_an_abstract_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify").display().to_string();
        let name = format!("@jobboard-{}", std::process::id());
        let abstractly = SocketAddr::from_abstract_name(&name[1..]).unwrap();
        for (name, socket) in [
            (&path, UnixDatagram::bind(&path).unwrap()),
            (&name, UnixDatagram::bind_addr(&abstractly).unwrap()),
        ] {
            let manager = find([Some(name), None, None]).unwrap().unwrap();
            manager
                .notify(&["READY=1".to_owned(), "STATUS=a b".to_owned()])
                .unwrap();
            let mut received = [0; 64];
            let length = socket.recv(&mut received).unwrap();
            assert_eq!(&received[..length], b"READY=1\nSTATUS=a b");
        }
    }

    #[test]
    fn missing_or_foreign_service_manager_is_not_notified() {
        assert!(find([None, Some("1"), None]).unwrap().is_none());
        assert!(find([Some(""), None, None]).unwrap().is_none());
        for wrong in ["vsock:2:1234", "notify", &format!("/{}", "a".repeat(200))] {
            assert!(find([Some(wrong), None, None]).is_err(), "{wrong}");
        }
        let us = std::process::id().to_string();
        for (pause, whose, watchdog) in [
            ("30000000", None, Some(30)),
            ("30000000", Some(us.as_str()), Some(30)),
            ("30000000", Some("4294967295"), None),
            ("30000000", Some("x"), None),
            ("0", None, None),
            ("x", None, None),
        ] {
            let found = find([Some("/nowhere"), Some(pause), whose])
                .unwrap()
                .unwrap();
            assert_eq!(
                found.watchdog,
                watchdog.map(Duration::from_secs),
                "{pause} {whose:?}"
            );
        }
    }

    #[test]
    fn unresponsive_service_manager_is_not_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let _deaf = UnixDatagram::bind(&path).unwrap();
        let manager = find([path.to_str(), None, None]).unwrap().unwrap();
        let full = std::iter::repeat_with(|| manager.notify(&["WATCHDOG=1".to_owned()]))
            .take(100_000)
            .find_map(Result::err);
        assert_eq!(full.unwrap().kind(), io::ErrorKind::WouldBlock);
    }
}
