//! Tests with configurations of real deployments and invented ones.

mod recorded;

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    board::url::redis::Address,
    tests::rows,
    untrusted::{Answer, Bounds, Corpus, refused},
};

const PASSWORD: &str = "hunter2";

struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(directory)
    }

    fn try_read(&self, named: &str, variables: &[(&str, &str)]) -> Result<Octavia, String> {
        let env = Environment::made_of(variables, self.0.path(), || None);
        Octavia::read(named, self.0.path(), &env).map_err(|error| format!("{error:#}"))
    }

    fn read(&self, named: &str, variables: &[(&str, &str)]) -> Octavia {
        self.try_read(named, variables).unwrap()
    }
}

fn of(text: &str) -> Result<Octavia, String> {
    Machine::new(&[("octavia/octavia.conf", text)]).try_read("", &[])
}

fn url(options: &str) -> String {
    let octavia = of(&format!("[task_flow]\n{options}")).unwrap();
    octavia.url.to_string()
}

fn notes(octavia: &Octavia) -> Vec<String> {
    let notes = octavia.settings.iter().filter(|it| it.key == "note");
    notes.map(Setting::text).collect()
}

#[test]
fn values_are_parsed_as_by_oslo_config() {
    for [text, namespace] in rows(
        r#"
        NAME=a => a
        NAME: a => a
        NAME = a = b => a = b
        NAME = 'a b' => a b
        NAME = "a'b" => a'b
        NAME = 'a => 'a
        NAME = a\nNAME = b => b
        NAME = a\n# c\n; d\n[other]\nNAME = b => a
        NAME = a\n  b\nTABc => a\nb\nc
        NAME = a$$b => a$b
        NAME = a\$b => a$b
        NAME = a$ b$ => a$ b$
        NAME = ${a => ${a
        NAME = x$jobboard_backend_port => x6379
        NAME = x${jobboard_backend_username}y => xy
        NAME = $word\n[DEFAULT]\nword = w => w
        "#,
    ) {
        let text = text.replace("NAME", "jobboard_backend_namespace");
        let text = text.replace("TAB", "\t");
        let octavia = of(&format!("[Task_Flow]\n{text}\n")).unwrap();
        let BoardUrl::Redis(board) = octavia.url else {
            panic!("{text}");
        };
        assert_eq!(board.namespace.as_deref(), Some(namespace), "{text}");
    }
}

#[test]
fn later_files_override_and_the_environment_wins() {
    let set = |host: &str| format!("[task_flow]\njobboard_backend_hosts = {host}\n");
    let (first, second, third, other) = (set("h1"), set("h2"), set("h3"), set("h4"));
    let machine = Machine::new(&[
        ("octavia/octavia.conf", first.as_str()),
        ("octavia/octavia.conf.d/20-b.conf", &third),
        ("octavia/octavia.conf.d/10-a.conf", &second),
        ("octavia/octavia.conf.d/30-c.conf.bak", &other),
        ("octavia/octavia.conf.d/.hidden.conf", &other),
        ("other.conf", &other),
    ]);
    let host = |named: &str, variables: &[(&str, &str)]| {
        let text = machine.read(named, variables).url.to_string();
        text.split(['/', ':']).nth(3).unwrap().to_owned()
    };
    assert_eq!(host("", &[]), "h3");
    assert_eq!(host("octavia/octavia.conf.d", &[]), "h3");
    assert_eq!(host("octavia/octavia.conf,other.conf", &[]), "h4");
    assert_eq!(host("other.conf,octavia/octavia.conf", &[]), "h1");
    let all = "other.conf,octavia/octavia.conf,octavia/octavia.conf.d";
    assert_eq!(host(all, &[]), "h3");
    let variable = ("OS_TASK_FLOW__JOBBOARD_BACKEND_HOSTS", "h5");
    assert_eq!(host("", &[variable]), "h5");
    let mut settings = machine.read("", &[variable]).settings.into_iter();
    let setting = settings.find(|it| it.key == "task_flow.jobboard_backend_hosts");
    assert_eq!(setting.unwrap().source, variable.0);
}

#[test]
fn unsupported_or_suspicious_options_are_reported() {
    for [options, note] in rows(
        r"
        # nothing set => Octavia does not use its board until this is True
        # nothing set => in the memory of each process
        jobboard_backend_hosts = a,b => Octavia uses only the first host: a:6379
        jobboard_redis_sentinel = m => the default port of Sentinel is 26379
        jobboard_redis_backend_ssl_options = ssl:True,ssl_cert_reqs:none,ssl_ca_certs:/c => Octavia does not verify the certificate of the server; jobboard does
        jobboard_redis_backend_ssl_options = ssl:True => the certificate authorities of the system
        jobboard_backend_driver = zookeeper_taskflow_driver\njobboard_backend_hosts = ::1 => without brackets
        jobboard_backend_driver = zookeeper_taskflow_driver\njobboard_zookeeper_ssl_options = use_ssl:True,verify_certs:False => Octavia does not verify the certificate of the server; jobboard does
        ",
    ) {
        let octavia = of(&format!("[task_flow]\n{options}\n")).unwrap();
        let notes = notes(&octavia);
        let mut texts = notes.iter();
        assert!(texts.any(|it| it.contains(note)), "{options}: {notes:?}");
    }
    let fine = "jobboard_enabled = True\npersistence_connection = mysql+pymysql://o:hunter2@h/p\n";
    let octavia = of(&format!("[task_flow]\n{fine}")).unwrap();
    assert!(notes(&octavia).is_empty());
    assert_eq!(octavia.expiry, Duration::from_secs(30));
}

const MISTAKES: &str = r#"
    jobboard_enabled = True => octavia.conf:1: the option comes before any [GROUP]
    [task_flow\n => octavia.conf:1: a group has the form [GROUP]
    [task_flow]\nhunter2\n => octavia.conf:2: an option has the form KEY = VALUE
    [task_flow]\n hunter2\n => octavia.conf:2: the continuation line follows no option
    [task_flow]\n= hunter2\n => octavia.conf:2: the key before `=` is missing
    [task_flow]\njobboard_backend_port = hunter2 => jobboard_backend_port is not a valid number
    [task_flow]\njobboard_backend_port = 65536 => jobboard_backend_port is not a valid number
    [task_flow]\njobboard_backend_hosts = , => lists no host
    [task_flow]\njobboard_backend_hosts = ,a => octavia.conf:2: jobboard_backend_hosts lists no host, or an empty name
    [task_flow]\njobboard_backend_password = a$hunter2 => write `$$` for a literal `$`
    [task_flow]\njobboard_backend_namespace = $jobboard_backend_namespace => the value refers to itself
    [task_flow]\njobboard_enabled = hunter2 => neither True nor False
    [task_flow]\njobboard_backend_driver = etcd_taskflow_driver => on etcd
    [task_flow]\njobboard_redis_backend_ssl_options = ssl => KEY:VALUE
"#;

#[test]
fn errors_have_a_position_but_no_value() {
    for [text, message] in rows(MISTAKES) {
        let error = of(text).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
        assert!(!error.contains(PASSWORD), "{text}: {error}");
    }
    let error = of("\u{feff}[task_flow]\n").unwrap_err();
    let mark = "octavia.conf:1: the file begins with a byte order mark";
    assert!(error.contains(mark), "{error}");
    let machine = Machine::new(&[]);
    let error = machine.try_read("", &[]).unwrap_err();
    let missing = "octavia/octavia.conf does not exist";
    assert!(error.contains(missing), "{error}");
}

#[test]
fn exponential_substitutions_are_stopped() {
    let mut text = "[task_flow]\njobboard_backend_namespace = $a0\n[DEFAULT]\na12 =\n".to_owned();
    for at in 0..12 {
        let next = format!("$a{}", at + 1);
        text += &format!("a{at} = {}\n", next.repeat(10));
    }
    let error = of(&text).unwrap_err();
    assert!(error.contains("too many references"), "{error}");
}

#[test]
fn password_is_never_displayed() {
    for options in [
        "jobboard_backend_driver = zookeeper_taskflow_driver\n\
         jobboard_zookeeper_ssl_options = use_ssl:True,keyfile_password:hunter2,certfile:/c\n",
        "persistence_connection = mysql://h/p?user=u&password=hunter2\n",
        "persistence_connection = u:hunter2@h/p\n",
        "jobboard_redis_sentinel_password = hunter2\n",
    ] {
        let octavia = of(&format!("[task_flow]\n{options}")).unwrap();
        let shown: Vec<_> = octavia.settings.iter().map(Setting::text).collect();
        assert!(!shown.concat().contains(PASSWORD), "{shown:?}");
    }
    let text = "[task_flow]\njobboard_backend_password = hunter2\n\
                jobboard_redis_sentinel_password = hunter2\njobboard_redis_sentinel = m\n\
                persistence_connection = mysql+pymysql://octavia:hunter2@h:3306/p?charset=utf8\n";
    let octavia = of(text).unwrap();
    assert!(!format!("{octavia:?}").contains(PASSWORD));
    let BoardUrl::Redis(board) = &octavia.url else {
        panic!("{}", octavia.url);
    };
    let Address::Sentinel(sentinel) = &board.address else {
        panic!("{}", octavia.url);
    };
    assert_eq!(sentinel.password.as_ref().unwrap().expose(), PASSWORD);
    assert_eq!(octavia.password.unwrap().value.expose(), PASSWORD);
}

#[test]
fn untrusted_octavia_configurations_never_reveal_a_password() {
    let bounds = Bounds {
        longest: 2048,
        memory: (256 << 10, 64 << 10),
        words: 4096,
        ..Bounds::STORED
    };
    let corpus = [
        "[task_flow]\njobboard_backend_hosts = a, b\njobboard_backend_password = 'hunter2'\n\
         jobboard_redis_sentinel = m\njobboard_redis_backend_ssl_options = ssl:True,ssl_ca_certs:/c\n",
        "[DEFAULT]\nw = $$x\n[task_flow]\njobboard_backend_driver: zookeeper_taskflow_driver\n\
         jobboard_backend_namespace = $w\n  y\n; z\njobboard_backend_hosts = ::1,\n",
    ];
    let env = Environment::made_of(&[], Path::new("/nowhere"), || None);
    Corpus::of(bounds, corpus).hold_for_text(|text| {
        let mut oslo = Oslo::new(default, &env);
        let octavia = oslo
            .parse_file(Path::new("o.conf"), text)
            .and_then(|()| Octavia::of(oslo, Path::new("/o")));
        match octavia {
            Err(error) => refused(&format!("{error:#}")),
            Ok(octavia) => {
                let url = octavia.url.to_string();
                match octavia
                    .password
                    .is_some_and(|it| it.value.expose() == PASSWORD)
                    && url.contains(PASSWORD)
                    && text.matches(PASSWORD).count() < 2
                {
                    true => Err(format!("the password is shown: {url}")),
                    false => Ok(Answer::Read),
                }
            }
        }
    });
}
