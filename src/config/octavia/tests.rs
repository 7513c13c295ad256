//! What becomes of configurations, of deployments and of nobody.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    board::url::redis::Address,
    untrusted::{Answer, Bounds, Corpus, refused},
};

/// Stands for what nobody may be told.
const PASSWORD: &str = "hunter2";

/// A folder that stands for `/etc`.
struct Machine(TempDir);

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self(folder)
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

fn remarks(octavia: &Octavia) -> Vec<String> {
    let remarks = octavia.settings.iter().filter(|it| it.key == "remark");
    remarks.map(Setting::text).collect()
}

/// What deployments write, and the URL of the board that it means.
const DEPLOYMENTS: [(&str, &str, &str); 9] = [
    (
        "nothing set",
        "",
        "redis://127.0.0.1:6379/0?namespace=octavia_jobboard",
    ),
    (
        "kolla-ansible: Valkey behind Sentinel, three hosts, the default user",
        "jobboard_enabled = True\njobboard_backend_driver = redis_taskflow_driver\n\
         jobboard_backend_hosts = 10.1.0.1,10.1.0.2,10.1.0.3\njobboard_backend_port = 26379\n\
         jobboard_backend_username = default\njobboard_backend_password = hunter2\n\
         jobboard_redis_sentinel = kolla\njobboard_redis_backend_ssl_options = ssl:False\n\
         jobboard_redis_sentinel_ssl_options = ssl:False\n",
        "redis-sentinel://default@10.1.0.1:26379,10.1.0.2:26379,10.1.0.3:26379/kolla/0\
         ?namespace=octavia_jobboard",
    ),
    (
        "atmosphere: TLS with certificates to both",
        "jobboard_backend_hosts = valkey.openstack.svc.cluster.local\n\
         jobboard_backend_port = 26379\njobboard_redis_sentinel = atmosphere\n\
         jobboard_expiration_time = 100\n\
         jobboard_redis_backend_ssl_options = ssl:True,ssl_keyfile:/v/tls.key,\
         ssl_certfile:/v/tls.crt,ssl_ca_certs:/v/ca.crt\n\
         jobboard_redis_sentinel_ssl_options = ssl:True,ssl_keyfile:/v/tls.key,\
         ssl_certfile:/v/tls.crt,ssl_ca_certs:/v/ca.crt\n",
        "rediss-sentinel://valkey.openstack.svc.cluster.local:26379/atmosphere/0\
         ?namespace=octavia_jobboard&ca=/v/ca.crt&cert=/v/tls.crt&key=/v/tls.key",
    ),
    (
        "openstack-helm: Sentinel without TLS",
        "jobboard_backend_hosts = valkey\njobboard_backend_port = 26379\n\
         jobboard_redis_sentinel = mymaster\njobboard_redis_sentinel_username = watcher\n\
         jobboard_redis_sentinel_password = hunter2\n",
        "redis-sentinel://valkey:26379/mymaster/0?sentinel_user=watcher\
         &namespace=octavia_jobboard",
    ),
    (
        "openstack-ansible: ZooKeeper with TLS",
        "jobboard_backend_driver = zookeeper_taskflow_driver\n\
         jobboard_backend_hosts = 172.29.236.11,172.29.236.12\njobboard_backend_port = 2281\n\
         jobboard_zookeeper_ssl_options = use_ssl:True,keyfile_password:None,\
         keyfile:/o/k.pem,certfile:/o/c.pem,verify_certs:False\n",
        "zks://172.29.236.11:2281,172.29.236.12:2281/octavia_jobboard\
         ?cert=/o/c.pem&key=/o/k.pem",
    ),
    (
        "RHOSO: Redis with TLS behind a service",
        "jobboard_backend_hosts = redis-redis.openstack.svc\njobboard_backend_port = 6379\n\
         jobboard_redis_backend_ssl_options = ssl:true\n",
        "rediss://redis-redis.openstack.svc:6379/0?namespace=octavia_jobboard",
    ),
    (
        "TLS to Sentinel alone, with files of its own",
        "jobboard_backend_hosts = s\njobboard_backend_port = 26379\n\
         jobboard_redis_sentinel = m\n\
         jobboard_redis_sentinel_ssl_options = ssl:yes,ssl_ca_certs:/ca\n",
        "redis-sentinel://s:26379/m/0?sentinel_tls=true&ca=/ca&namespace=octavia_jobboard",
    ),
    (
        "TLS to both, each with its own authority",
        "jobboard_backend_hosts = s\njobboard_backend_port = 26379\n\
         jobboard_redis_sentinel = m\njobboard_redis_backend_ssl_options = ssl:1,ssl_ca_certs:/a\n\
         jobboard_redis_sentinel_ssl_options = ssl:on,ssl_ca_certs:/b,ssl_certfile:/c\n",
        "rediss-sentinel://s:26379/m/0?sentinel_ca=/b&sentinel_cert=/c&sentinel_key=/c\
         &namespace=octavia_jobboard&ca=/a",
    ),
    (
        "another database and namespace, IPv6",
        "jobboard_backend_hosts = 'fd00::7'\njobboard_redis_backend_db = 3\n\
         jobboard_backend_namespace = a:b c\n",
        "redis://[fd00::7]:6379/3?namespace=a:b%20c",
    ),
];

#[test]
fn each_deployment_gives_the_board_that_its_octavia_uses() {
    for (deployment, options, board) in DEPLOYMENTS {
        assert_eq!(url(options), board, "{deployment}");
        assert_eq!(
            board.parse::<BoardUrl>().unwrap().to_string(),
            board,
            "{deployment}"
        );
    }
}

#[test]
fn values_are_written_as_openstack_services_read_them() {
    for (text, namespace) in [
        ("jobboard_backend_namespace=a", "a"),
        ("jobboard_backend_namespace: a", "a"),
        ("jobboard_backend_namespace = a = b", "a = b"),
        ("jobboard_backend_namespace = 'a b'", "a b"),
        ("jobboard_backend_namespace = \"a'b\"", "a'b"),
        ("jobboard_backend_namespace = 'a", "'a"),
        (
            "jobboard_backend_namespace = a\njobboard_backend_namespace = b",
            "b",
        ),
        (
            "jobboard_backend_namespace = a\n# c\n; d\n[other]\njobboard_backend_namespace = b",
            "a",
        ),
        ("jobboard_backend_namespace = a\n  b\n\tc", "a\nb\nc"),
        ("jobboard_backend_namespace = a$$b", "a$b"),
        ("jobboard_backend_namespace = a\\$b", "a$b"),
        ("jobboard_backend_namespace = a$ b$", "a$ b$"),
        ("jobboard_backend_namespace = ${a", "${a"),
        (
            "jobboard_backend_namespace = x$jobboard_backend_port",
            "x6379",
        ),
        (
            "jobboard_backend_namespace = x${jobboard_backend_username}y",
            "xy",
        ),
        (
            "jobboard_backend_namespace = $word\n[DEFAULT]\nword = w",
            "w",
        ),
    ] {
        let octavia = of(&format!("[Task_Flow]\n{text}\n")).unwrap();
        let BoardUrl::Redis(board) = octavia.url else {
            panic!("{text}");
        };
        assert_eq!(board.namespace.as_deref(), Some(namespace), "{text}");
    }
}

/// Returns what is written down beside the tests of the program: readings by oslo.config itself.
fn recorded(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cli/fixtures/octavia")
        .join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Reads an option as something of the same type as what was recorded.
fn read_as(recorded: &Value, text: &str) -> Option<Value> {
    match recorded {
        Value::Bool(_) => oslo::is_true(text).map(Value::from),
        Value::Number(_) => oslo::number::<i64>(text).map(Value::from),
        Value::Array(_) => Some(oslo::list(text).into()),
        Value::Object(_) => Some(json!(oslo::dict(text).ok()?)),
        // A number that is not there.
        Value::Null if text.is_empty() => None,
        _ => Some(text.into()),
    }
}

#[test]
fn each_spelling_is_read_as_octavia_reads_it() {
    let env = Environment::made_of(&[], Path::new("/nowhere"), || None);
    let mut compared = 0;
    for case in recorded("spellings.json") {
        let text = case["text"].as_str().unwrap();
        // Which names Octavia knows beside those of its board is not known here; digits are of ASCII; and how
        // Python writes a list down is of no use to anybody.
        if ["made_up", "\u{ff16}", "${jobboard_backend_hosts}"]
            .iter()
            .any(|it| text.contains(it))
        {
            continue;
        }
        let mut oslo = Oslo::new(default, &env);
        let read = oslo.take_in(Path::new("o.conf"), text);
        let Some(options) = case["reading"]["options"].as_object() else {
            assert!(read.is_err(), "{text:?} is read");
            continue;
        };
        read.unwrap_or_else(|error| panic!("{text:?}: {error:#}"));
        for (key, recorded) in options {
            let (group, name) = key.split_once('.').unwrap();
            if group == GROUP && !is_option(group, name) {
                continue;
            }
            // No server has so many databases.
            if recorded.is_f64() {
                continue;
            }
            compared += 1;
            let value = oslo.value(group, name);
            if recorded["error"].is_string() {
                let is_refused = value.is_err() || of(text).is_err();
                assert!(is_refused, "{text:?}: {name} is taken");
                continue;
            }
            let value = value.unwrap_or_else(|error| panic!("{text:?}: {error:#}"));
            let value = value.and_then(|said| read_as(recorded, &said.text));
            assert_eq!(
                value.as_ref().unwrap_or(&Value::Null),
                recorded,
                "{text:?}: {name}"
            );
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Says whether it is the board that Octavia was seen to make, and what differs if not.
fn differs(octavia: &Octavia, board: &Value) -> Option<String> {
    let differ = |what: &str, ours: Value, theirs: &Value| {
        (ours != *theirs).then(|| format!("{what}: {ours}, and not {theirs}"))
    };
    let (conf, client) = (&board["conf"], &board["client"]);
    match &octavia.url {
        BoardUrl::Redis(url) => {
            let (servers, master) = match &url.address {
                Address::Tcp(server) => (vec![server], None),
                Address::Sentinel(sentinel) => {
                    (sentinel.servers.iter().collect(), Some(&sentinel.master))
                }
                Address::Unix(path) => return Some(path.display().to_string()),
            };
            let password = octavia.password.as_ref().map(|it| it.value.expose());
            let user = conf["username"].as_str().filter(|user| !user.is_empty());
            let tls = conf["ssl"]
                .as_str()
                .is_some_and(|it| server::is_yes(it.to_owned()));
            let ca = url.tls.as_ref().and_then(|tls| tls.ca.as_ref());
            let said = conf["ssl_ca_certs"]
                .as_str()
                .filter(|it| tls && *it != "None");
            [
                differ("host", json!(servers[0].host), &conf["host"]),
                differ("port", json!(servers[0].port), &conf["port"]),
                differ("db", json!(url.db), &conf["db"]),
                differ("namespace", json!(url.namespace), &conf["namespace"]),
                differ("master", json!(master), &conf["sentinel"]),
                differ("password", json!(password), &conf["password"]),
                differ("user", json!(url.user), &json!(user)),
                differ("tls", json!(url.tls.is_some()), &json!(tls)),
                differ("ca", json!(ca), &json!(said)),
            ]
            .into_iter()
            .flatten()
            .next()
        }
        BoardUrl::ZooKeeper(url) => {
            let hosts: Vec<_> = url
                .servers
                .iter()
                .map(|it| json!([it.host, it.port]))
                .collect();
            let tls = client["use_ssl"] == true;
            let differences = [
                differ("path", json!(url.path), &conf["path"]),
                differ("hosts", json!(hosts), &client["hosts"]),
                differ("tls", json!(url.tls.is_some()), &json!(tls)),
            ];
            differences.into_iter().flatten().next()
        }
        BoardUrl::Embedded(url) => Some(url.to_string()),
    }
}

#[test]
fn each_configuration_gives_the_board_that_octavia_makes_of_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures/octavia/conf");
    let mut compared = 0;
    for case in recorded("cases.json") {
        let (name, board) = (&case["name"], &case["reading"]["board"]);
        let args: Vec<_> = case["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it.as_str().unwrap())
            .collect();
        let variables = case["environ"].as_object().unwrap().iter();
        let variables: Vec<_> = variables
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        // Without files Octavia takes those of the user who runs it; and which folder goes with a file is said
        // otherwise here.
        if args.is_empty() || variables.contains(&("HOME", "home")) {
            continue;
        }
        let files: Vec<_> = args
            .iter()
            .filter(|it| !it.starts_with("--"))
            .copied()
            .collect();
        let env = Environment::made_of(&variables, Path::new("/nowhere"), || None);
        let made = Octavia::read(&files.join(","), &folder, &env);
        let is_on_etcd = conf_of(board, "board") == "etcd";
        // What its client of ZooKeeper does not understand, ours does; and no host has quotes.
        let is_understood = board["client"]["error"].is_null();
        let has_quotes = conf_of(board, "host").contains('\'');
        if board["conf"].is_null() || is_on_etcd || has_quotes {
            assert!(
                made.is_err(),
                "{name} is taken for {:?}",
                made.map(|it| it.url.to_string())
            );
            continue;
        }
        let octavia = made.unwrap_or_else(|error| panic!("{name}: {error:#}"));
        if is_understood {
            compared += 1;
            assert_eq!(differs(&octavia, board), None, "{name}");
        }
    }
    assert!(compared > 25, "{compared}");
}

fn conf_of<'a>(board: &'a Value, key: &str) -> &'a str {
    board["conf"][key].as_str().unwrap_or_default()
}

#[test]
fn later_files_are_stronger_and_the_environment_is_strongest() {
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
    let octavia = machine.read("", &[variable]);
    let setting = octavia
        .settings
        .iter()
        .find(|it| it.key == "task_flow.jobboard_backend_hosts");
    assert_eq!(setting.unwrap().source, variable.0);
}

#[test]
fn what_has_no_counterpart_or_is_hardly_meant_is_said() {
    for (options, said) in [
        ("", "Octavia does not use its board until this is True"),
        ("", "in the memory of each process"),
        (
            "jobboard_backend_hosts = a,b",
            "only the first is used: a:6379",
        ),
        ("jobboard_redis_sentinel = m", "Sentinel does on 26379"),
        (
            "jobboard_redis_backend_ssl_options = ssl:True,ssl_cert_reqs:none,ssl_ca_certs:/c",
            "verified all the same",
        ),
        (
            "jobboard_redis_backend_ssl_options = ssl:True",
            "whom the system trusts",
        ),
        (
            "jobboard_backend_driver = zookeeper_taskflow_driver\n\
             jobboard_backend_hosts = ::1",
            "without brackets",
        ),
        (
            "jobboard_backend_driver = zookeeper_taskflow_driver\n\
             jobboard_zookeeper_ssl_options = use_ssl:True,verify_certs:False",
            "verified all the same",
        ),
    ] {
        let octavia = of(&format!("[task_flow]\n{options}\n")).unwrap();
        let remarks = remarks(&octavia);
        assert!(
            remarks.iter().any(|it| it.contains(said)),
            "{options}: {remarks:?}"
        );
    }
    let fine = "jobboard_enabled = True\npersistence_connection = mysql+pymysql://o:hunter2@h/p\n";
    let octavia = of(&format!("[task_flow]\n{fine}")).unwrap();
    assert!(remarks(&octavia).is_empty());
    assert_eq!(octavia.expiry, Duration::from_secs(30));
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_without_its_value() {
    for (text, said) in [
        (
            "jobboard_enabled = True",
            "octavia.conf:1: it stands before any [GROUP]",
        ),
        ("[task_flow\n", "octavia.conf:1: write it as [GROUP]"),
        (
            "[task_flow]\nhunter2\n",
            "octavia.conf:2: write it as KEY = VALUE",
        ),
        (
            "[task_flow]\n hunter2\n",
            "octavia.conf:2: it goes on with what was not begun",
        ),
        (
            "[task_flow]\n= hunter2\n",
            "octavia.conf:2: nothing stands before the `=`",
        ),
        (
            "[task_flow]\njobboard_backend_port = hunter2",
            "jobboard_backend_port is no",
        ),
        (
            "[task_flow]\njobboard_backend_port = 65536",
            "jobboard_backend_port is no",
        ),
        ("[task_flow]\njobboard_backend_hosts = ,", "names no host"),
        (
            "[task_flow]\njobboard_backend_password = a$hunter2",
            "a `$` as such is written `$$`",
        ),
        (
            "[task_flow]\njobboard_backend_namespace = $jobboard_backend_namespace",
            "in itself",
        ),
        (
            "[task_flow]\njobboard_enabled = hunter2",
            "neither True nor False",
        ),
        (
            "[task_flow]\njobboard_backend_driver = etcd_taskflow_driver",
            "on etcd",
        ),
        (
            "[task_flow]\njobboard_redis_backend_ssl_options = ssl",
            "KEY:VALUE",
        ),
    ] {
        let error = of(text).unwrap_err();
        assert!(
            error.contains(said) && !error.contains(PASSWORD),
            "{text}: {error}"
        );
    }
    let machine = Machine::new(&[]);
    let error = machine.try_read("", &[]).unwrap_err();
    assert!(
        error.contains("octavia/octavia.conf: octavia:FILE names another"),
        "{error}"
    );
}

#[test]
fn names_that_stand_for_ever_more_names_come_to_an_end() {
    let mut text = "[task_flow]\njobboard_backend_namespace = $a0\n[DEFAULT]\na12 =\n".to_owned();
    for at in 0..12 {
        let next = format!("$a{}", at + 1);
        text += &format!("a{at} = {}\n", next.repeat(10));
    }
    let error = of(&text).unwrap_err();
    assert!(error.contains("too many names"), "{error}");
}

#[test]
fn no_password_is_shown() {
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
fn untrusted_configurations_make_a_board_or_are_refused_without_telling_a_password() {
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
            .take_in(Path::new("o.conf"), text)
            .and_then(|()| Octavia::of(oslo, Path::new("/o")));
        match octavia {
            Err(error) => refused(&format!("{error:#}")),
            Ok(octavia) => {
                let told = octavia.url.to_string();
                match octavia
                    .password
                    .is_some_and(|it| it.value.expose() == PASSWORD)
                    && told.contains(PASSWORD)
                    && text.matches(PASSWORD).count() < 2
                {
                    true => Err(format!("the password is told: {told}")),
                    false => Ok(Answer::Read),
                }
            }
        }
    });
}
