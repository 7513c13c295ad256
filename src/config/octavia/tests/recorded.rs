//! Compares our reading of configurations with Octavia's own, for real and invented ones.

use super::*;

/// Settings of real deployments, and the URL of the board that they mean.
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
fn each_deployment_resolves_to_its_board() {
    for (deployment, options, board) in DEPLOYMENTS {
        assert_eq!(url(options), board, "{deployment}");
        let printed = board.parse::<BoardUrl>().unwrap().to_string();
        assert_eq!(printed, board, "{deployment}");
    }
}

fn recorded(name: &str) -> Vec<Value> {
    let root = env!("CARGO_MANIFEST_DIR");
    let path = format!("{root}/tests/cli/fixtures/octavia/{name}");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn read_as(recorded: &Value, text: &str) -> Option<Value> {
    match recorded {
        Value::Bool(_) => oslo::is_true(text).map(Value::from),
        Value::Number(_) => oslo::number::<i64>(text).map(Value::from),
        Value::Array(_) => Some(oslo::list(text).into()),
        Value::Object(_) => Some(json!(oslo::dict(text).ok()?)),
        // An absent number.
        Value::Null if text.is_empty() => None,
        _ => Some(text.into()),
    }
}

#[test]
fn each_spelling_is_read_as_in_octavia() {
    let env = Environment::made_of(&[], Path::new("/nowhere"), || None);
    let mut compared = 0;
    for case in recorded("spellings.json") {
        let text = case["text"].as_str().unwrap();
        // Octavia's other option names are unknown here; only ASCII digits are accepted; and Python's notation of a
        // list is useless.
        let mut unlike = ["made_up", "\u{ff16}", "${jobboard_backend_hosts}"].iter();
        if unlike.any(|it| text.contains(it)) {
            continue;
        }
        let mut oslo = Oslo::new(default, &env);
        let read = oslo.parse_file(Path::new("o.conf"), text);
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
            // Servers have fewer databases.
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
            let value = value.and_then(|it| read_as(recorded, &it.text));
            let value = value.unwrap_or_default();
            assert_eq!(value, *recorded, "{text:?}: {name}");
        }
    }
    assert!(compared > 200, "{compared}");
}

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
            let tls = conf["ssl"].as_str();
            let tls = tls.is_some_and(|it| server::is_yes(it.to_owned()));
            let ca = url.tls.as_ref().and_then(|tls| tls.ca.as_ref());
            let expected = conf["ssl_ca_certs"].as_str();
            let expected = expected.filter(|it| tls && *it != "None");
            [
                differ("host", json!(servers[0].host), &conf["host"]),
                differ("port", json!(servers[0].port), &conf["port"]),
                differ("db", json!(url.db), &conf["db"]),
                differ("namespace", json!(url.namespace), &conf["namespace"]),
                differ("master", json!(master), &conf["sentinel"]),
                differ("password", json!(password), &conf["password"]),
                differ("user", json!(url.user), &json!(user)),
                differ("tls", json!(url.tls.is_some()), &json!(tls)),
                differ("ca", json!(ca), &json!(expected)),
            ]
            .into_iter()
            .flatten()
            .next()
        }
        BoardUrl::ZooKeeper(url) => {
            let hosts = url.servers.iter().map(|it| json!([it.host, it.port]));
            let hosts: Vec<_> = hosts.collect();
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
fn each_configuration_resolves_to_its_board() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/fixtures/octavia/conf");
    let mut compared = 0;
    for case in recorded("cases.json") {
        let (name, board) = (&case["name"], &case["reading"]["board"]);
        let args = case["args"].as_array().unwrap().iter();
        let args: Vec<_> = args.map(|it| it.as_str().unwrap()).collect();
        let variables = case["environ"].as_object().unwrap().iter();
        let variables: Vec<_> = variables
            .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
            .collect();
        // Without files Octavia reads its user's files; and this program names a file's directory differently.
        if args.is_empty() || variables.contains(&("HOME", "home")) {
            continue;
        }
        let files = args.into_iter().filter(|it| !it.starts_with("--"));
        let files: Vec<_> = files.collect();
        let env = Environment::made_of(&variables, Path::new("/nowhere"), || None);
        let made = Octavia::read(&files.join(","), &directory, &env);
        let is_on_etcd = conf_of(board, "board") == "etcd";
        // Our ZooKeeper client accepts more than Octavia's; and no host name has quotes.
        let is_understood = board["client"]["error"].is_null();
        let has_quotes = conf_of(board, "host").contains('\'');
        if board["conf"].is_null() || is_on_etcd || has_quotes {
            let url = made.map(|it| it.url.to_string());
            assert!(url.is_err(), "{name} is taken for {url:?}");
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
