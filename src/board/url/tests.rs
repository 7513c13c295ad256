//! What the URLs of boards mean, and what is said about those that mean nothing.

use std::time::Duration;

use super::{
    redis::{Address, Sentinel},
    zookeeper::Acl,
    *,
};

fn parse(text: &str) -> BoardUrl {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refusal(text: &str) -> String {
    let error = text.parse::<BoardUrl>().expect_err(text);
    let source = std::error::Error::source(&error);
    match source {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn refused(cases: &[(&str, &str)]) {
    for (text, message) in cases {
        let refusal = refusal(text);
        assert!(refusal.contains(message), "{text}: {refusal}");
    }
}

fn embedded(text: &str) -> EmbeddedUrl {
    match parse(text) {
        BoardUrl::Embedded(url) => url,
        url => panic!("{url}"),
    }
}

fn redis(text: &str) -> RedisUrl {
    match parse(text) {
        BoardUrl::Redis(url) => *url,
        url => panic!("{url}"),
    }
}

fn sentinel(url: RedisUrl) -> Sentinel {
    match url.address {
        Address::Sentinel(sentinel) => sentinel,
        address => panic!("{address:?}"),
    }
}

fn zookeeper(text: &str) -> ZooKeeperUrl {
    match parse(text) {
        BoardUrl::ZooKeeper(url) => *url,
        url => panic!("{url}"),
    }
}

fn server(host: &str, port: u16) -> Server {
    let host = host.to_owned();
    Server { host, port }
}

#[test]
fn a_file_is_an_embedded_board() {
    let url = embedded("sqlite:/srv/jobs.db");
    assert_eq!(url, EmbeddedUrl::new("/srv/jobs.db"));
    assert!(!url.sync_full);
    assert_eq!(
        embedded("SQLite:100%.db?sync=full"),
        EmbeddedUrl {
            path: "100%.db".into(),
            sync_full: true,
            makes_folder: false,
        }
    );
    assert_eq!(
        embedded("sqlite:./~/x?sync=normal").path,
        Path::new("./~/x")
    );
    assert!(!parse("sqlite:x").is_network());
}

#[test]
fn a_file_must_be_one() {
    refused(&[
        ("sqlite:", "write sqlite:PATH"),
        ("sqlite:?sync=full", "write sqlite:PATH"),
        ("sqlite::memory:", "in memory"),
        ("sqlite:///srv/jobs.db", "as in sqlite:/srv/jobs.db"),
        ("sqlite:~/jobs.db", "`~` is not replaced"),
        (
            "sqlite:x?sync=off",
            "`sync=off` is not understood: it is one of full, normal",
        ),
        (
            "sqlite:x?mode=ro",
            "unknown key `mode` behind the `?`: known are sync",
        ),
        ("sqlite:x?ca=y", "`ca` is for TLS"),
    ]);
}

#[test]
fn what_has_no_known_scheme_is_told_the_known_ones() {
    refused(&[
        ("", "is sqlite:PATH"),
        ("jobs.db", "is sqlite:PATH"),
        ("/srv/a:b.db", "is sqlite:PATH"),
        ("./a:b", "is sqlite:PATH"),
        (":x", "is sqlite:PATH"),
        ("file:/srv/jobs.db", "is sqlite:PATH"),
        (
            "etcd://host",
            "unknown scheme `etcd`: it is one of sqlite, redis, rediss, redis+unix, \
             redis-sentinel, rediss-sentinel, zk, zks",
        ),
        ("localhost:6379", "unknown scheme `localhost`"),
        ("redis-cluster://host", "different slots"),
        ("rediss-cluster://host", "different slots"),
    ]);
}

#[test]
fn a_host_is_all_that_redis_needs() {
    assert_eq!(
        redis("redis://localhost"),
        RedisUrl {
            address: Address::Tcp(server("localhost", 6379)),
            tls: None,
            user: None,
            password: None,
            db: 0,
            namespace: Some("taskflow".to_owned()),
        }
    );
    assert_eq!(
        redis("redis://localhost/"),
        redis("redis://localhost:6379/0?")
    );
    assert!(parse("redis://localhost").is_network());
}

#[test]
fn redis_takes_all_its_parts() {
    let url = redis("redis://ada:p%40ss:w@[::1]:7000/3?namespace=a%26b:c");
    assert_eq!(url.address, Address::Tcp(server("::1", 7000)));
    assert_eq!(url.user.as_deref(), Some("ada"));
    assert_eq!(url.password.unwrap().expose(), "p@ss:w");
    assert_eq!(url.db, 3);
    assert_eq!(url.namespace.as_deref(), Some("a&b:c"));

    let url = redis("redis://:hunter2@10.0.0.1");
    assert_eq!(
        (url.user, url.password),
        (None, Some(Secret::new("hunter2")))
    );
    let url = redis("redis://ada:@host");
    assert_eq!((url.user.as_deref(), url.password), (Some("ada"), None));
    let url = redis("redis://p@ss:x@host");
    assert_eq!(url.user.as_deref(), Some("p@ss"));
}

#[test]
fn a_namespace_may_be_empty_or_none_at_all() {
    let namespace = |query: &str| redis(&format!("redis://host?{query}")).namespace;
    assert_eq!(namespace("namespace="), Some(String::new()));
    assert_eq!(namespace("bare=true"), None);
    assert_eq!(namespace("bare=false"), Some("taskflow".to_owned()));
    assert_eq!(namespace("bare=false&namespace=x"), Some("x".to_owned()));
    refused(&[
        ("redis://host?bare=true&namespace=x", "exclude each other"),
        ("redis://host?namespace=&bare=true", "exclude each other"),
        (
            "redis://host?bare=yes",
            "`bare=yes` is not understood: it is true or false",
        ),
        ("redis://host?bare", "the key `bare` has no value"),
    ]);
}

#[test]
fn redis_refuses_what_it_cannot_mean() {
    refused(&[
        (
            "redis:host",
            "behind `redis:` comes write it as //HOST:PORT/DB",
        ),
        ("redis://", "the host is missing"),
        ("redis:///0", "the host is missing"),
        ("redis://:6379", "the host is missing"),
        (
            "redis://host/notanumber",
            "`notanumber` is not the number of a database",
        ),
        ("redis://host/+1", "`+1` is not the number"),
        ("redis://host/-1", "`-1` is not the number"),
        ("redis://host/1/", "`1/` is not the number"),
        ("redis://host//1", "`/1` is not the number"),
        ("redis://host/4294967296", "`4294967296` is not the number"),
        ("redis://a,b/0", "a `redis` board has one host"),
        ("rediss://a,b/0", "a `rediss` board has one host"),
        ("redis://ho st", "`ho st` is not the name of a host"),
        ("redis://h%6fst", "`h%6fst` is not the name of a host"),
        (
            "redis://host?db=1",
            "unknown key `db` behind the `?`: known are namespace, bare",
        ),
        (
            "redis://host?namespace=a&namespace=b",
            "the key `namespace` is there twice",
        ),
        (
            "redis://host?namespace=%zz",
            "a value behind the `?` has a `%`",
        ),
        ("redis://host?namespace=%ff", "escape of UTF-8 text"),
        ("redis://%4@host", "the user has a `%`"),
        ("redis://host#x", "no fragment"),
        ("redis://host?Namespace=x", "unknown key `Namespace`"),
    ]);
}

#[test]
fn ports_and_addresses_are_checked() {
    for port in ["0", "65536", "+1", "x", "", "-1"] {
        let refusal = refusal(&format!("redis://host:{port}/0"));
        assert_eq!(
            refusal,
            "the port of `host` is not a number from 1 to 65535"
        );
    }
    refused(&[
        ("redis://::1", "stands in brackets"),
        ("redis://fe80::1/0", "stands in brackets"),
        ("redis://[::1", "not an IPv6 address"),
        ("redis://[host]", "not an IPv6 address"),
        ("redis://[::1]x", "not an IPv6 address"),
        ("redis://[::1]:x", "the port of `::1`"),
    ]);
}

#[test]
fn tls_is_a_matter_of_the_scheme() {
    assert_eq!(redis("rediss://host").tls, Some(TlsFiles::default()));
    assert_eq!(
        redis("rediss://host?ca=/a%20b.pem&cert=c&key=k").tls,
        Some(TlsFiles {
            ca: Some("/a b.pem".into()),
            identity: Some(Identity {
                cert: "c".into(),
                key: "k".into(),
            }),
        })
    );
    refused(&[
        (
            "redis://host?ca=x",
            "`ca` is for TLS, which this is without: use rediss://",
        ),
        ("redis+unix:///s?cert=x", "`cert` is for TLS"),
        ("zk://host?key=x", "`key` is for TLS"),
        ("redis-sentinel://host/m?ca=x", "`ca` is for TLS"),
        ("redis-sentinel://host/m?cert=x&key=y", "`cert` is for TLS"),
        ("rediss://host?cert=x", "`cert` needs `key` as well"),
        ("rediss://host?key=x", "`key` needs `cert` as well"),
        ("zks://host?cert=x&ca=y", "`cert` needs `key` as well"),
        ("rediss://host?ca=", "the key `ca` has no value"),
    ]);
}

#[test]
fn redis_listens_on_sockets_too() {
    let url = redis("redis+unix:///run/redis%3F.sock?db=2&namespace=x");
    assert_eq!(url.address, Address::Unix("/run/redis?.sock".into()));
    assert_eq!((url.db, url.namespace.as_deref()), (2, Some("x")));
    assert_eq!(redis("redis+unix://ada@/s").user.as_deref(), Some("ada"));
    refused(&[
        ("redis+unix://", "the path of the socket is missing"),
        ("redis+unix:///", "the path of the socket is missing"),
        ("redis+unix:/run/s", "write it as ///PATH"),
        ("redis+unix://run/s", "write it as ///PATH"),
        (
            "redis+unix:///s?db=x",
            "`x` is not the number of a database",
        ),
    ]);
}

#[test]
fn sentinels_name_the_master() {
    let url = redis("redis-sentinel://ada:pw@s1,s2:7,[::2]/my%2Fmaster/4");
    assert_eq!((url.db, url.user.as_deref()), (4, Some("ada")));
    assert_eq!(url.tls, None);
    assert_eq!(
        sentinel(url),
        Sentinel {
            servers: vec![server("s1", 26379), server("s2", 7), server("::2", 26379)],
            master: "my/master".to_owned(),
            user: None,
            password: None,
            password_file: None,
            tls: None,
        }
    );
    let asked = sentinel(redis(
        "redis-sentinel://s/m?sentinel_user=eve&sentinel_password_file=/run/pw",
    ));
    assert_eq!(asked.user.as_deref(), Some("eve"));
    assert_eq!(asked.password_file, Some("/run/pw".into()));
}

#[test]
fn sentinels_have_tls_of_their_own() {
    let tls = |text: &str| {
        let url = redis(text);
        let server = url.tls.clone();
        (server, sentinel(url).tls)
    };
    let ca = || {
        Some(TlsFiles {
            ca: Some("x".into()),
            identity: None,
        })
    };
    assert_eq!(tls("rediss-sentinel://s/m?ca=x"), (ca(), ca()));
    assert_eq!(
        tls("rediss-sentinel://s/m?ca=x&sentinel_tls=false"),
        (ca(), None)
    );
    assert_eq!(
        tls("redis-sentinel://s/m?ca=x&sentinel_tls=true"),
        (None, ca())
    );
    assert_eq!(tls("redis-sentinel://s/m?sentinel_tls=false"), (None, None));
}

#[test]
fn sentinels_without_a_master_are_refused() {
    refused(&[
        (
            "redis-sentinel://s1,s2",
            "the name of the master is missing",
        ),
        ("redis-sentinel://s1/", "the name of the master is missing"),
        (
            "redis-sentinel://s1//0",
            "the name of the master is missing",
        ),
        ("redis-sentinel:///m", "the host is missing"),
        ("redis-sentinel://s1,,s2/m", "the host is missing"),
        (
            "redis-sentinel://s1/m/x",
            "`x` is not the number of a database",
        ),
        (
            "redis-sentinel://s1/m/0/",
            "`0/` is not the number of a database",
        ),
        (
            "redis-sentinel://s1/m?sentinel_tls=1",
            "it is true or false",
        ),
        (
            "redis-sentinel://s1/m?x=1",
            "known are namespace, bare, sentinel_user",
        ),
    ]);
}

#[test]
fn zookeeper_takes_all_its_parts() {
    let usual = zookeeper("zk://localhost");
    assert_eq!(usual.servers, [server("localhost", 2181)]);
    assert_eq!(usual.path, "/taskflow/jobs");
    assert_eq!((usual.chroot.as_ref(), usual.session), (None, None));
    assert_eq!((usual.acl, usual.tls.as_ref()), (Acl::World, None));
    assert_eq!(zookeeper("zk://localhost/"), usual);
    assert_eq!(zookeeper("zk://localhost?acl=world&chroot=/"), usual);

    let url = zookeeper(
        "zks://ada:pw@h1,[::1]:99/octavia%3f/jobs?chroot=/x/y&session=1m30s&acl=creator&ca=c",
    );
    assert_eq!(url.servers, [server("h1", 2181), server("::1", 99)]);
    assert_eq!(url.path, "/octavia?/jobs");
    assert_eq!(url.chroot.as_deref(), Some("/x/y"));
    assert_eq!(url.session, Some(Duration::from_secs(90)));
    assert_eq!(url.acl, Acl::Creator);
    assert_eq!(url.user.as_deref(), Some("ada"));
    assert_eq!(url.password, Some(Secret::new("pw")));
    assert_eq!(url.tls.unwrap().ca, Some("c".into()));
    assert_eq!(
        zookeeper("zks://h?acl=creator&cert=c&key=k").acl,
        Acl::Creator
    );
}

#[test]
fn zookeeper_refuses_what_it_cannot_mean() {
    refused(&[
        ("zk://", "the host is missing"),
        ("zk:///taskflow/jobs", "the host is missing"),
        ("zk://h1,/x", "the host is missing"),
        ("zk://h/jobs/", "the path `/jobs/` ends with `/`"),
        ("zk://h//", "ends with `/`"),
        ("zk://h/a//b", "nothing between two `/`"),
        ("zk://h/a/../b", "has `.` or `..`"),
        ("zk://h/a%00b", "a character that ZooKeeper does not allow"),
        ("zk://h/a?chroot=x", "the path `x` does not begin with `/`"),
        ("zk://h/a?chroot=/x/", "the path `/x/` ends with `/`"),
        (
            "zk://h?session=10",
            "`session` is not understood: `10` lacks a unit",
        ),
        ("zk://h?session=0s", "`session=0s` is not understood"),
        ("zk://h?session=25d", "`session=25d` is not understood"),
        ("zk://h?acl=none", "it is one of world, creator"),
        ("zk://h?acl=creator", "needs a creator"),
        ("zks://h?acl=creator", "needs a creator"),
        ("zk://:pw@h", "without a user"),
        ("zk://h?namespace=x", "known are chroot, session, acl"),
        (
            "zks://h?x=y",
            "known are chroot, session, acl, ca, cert, key",
        ),
    ]);
}

#[test]
fn what_is_written_can_be_read_again() {
    for text in [
        "sqlite:/srv/jobs.db",
        "sqlite:jobs.db?sync=full",
        "redis://localhost:6379/0",
        "redis://ada@[::1]:7/3?namespace=a%26b%25:c",
        "redis://host:6379/0?namespace=",
        "redis://host:6379/0?bare=true",
        "rediss://a%3Ab%40c@host:6379/0?ca=/a%20b&cert=c&key=d",
        "redis+unix:///run/redis.sock",
        "redis+unix://ada@/run/redis.sock?db=2&bare=true",
        "redis-sentinel://s1:1,s2:2/m%2Fn/0?sentinel_user=u&sentinel_password_file=f",
        "redis-sentinel://s1:1/m/0?sentinel_tls=true&ca=x",
        "rediss-sentinel://s1:1/m/5?sentinel_tls=false&namespace=x&ca=x",
        "rediss-sentinel://s1:1/m/0?ca=x",
        "zk://h1:1,h2:2/taskflow/jobs",
        "zk://ada@h1:1/x%3Fy?chroot=/z&session=1m30s&acl=creator",
        "zks://h1:1/x?ca=a&cert=b&key=c",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
    assert_eq!(parse("redis://h").to_string(), "redis://h:6379/0");
    assert_eq!(parse("zk://h").to_string(), "zk://h:2181/taskflow/jobs");
}

#[test]
fn passwords_are_shown_nowhere() {
    for (text, shown) in [
        ("redis://ada:hunter2@h", "redis://ada@h:6379/0"),
        ("rediss://:hunter2@h", "rediss://h:6379/0"),
        ("redis+unix://:hunter2@/s", "redis+unix:///s"),
        (
            "redis-sentinel://:hunter2@h/m",
            "redis-sentinel://h:26379/m/0",
        ),
        ("zk://ada:hunter2@h", "zk://ada@h:2181/taskflow/jobs"),
    ] {
        let url = parse(text);
        assert_eq!(url.to_string(), shown);
        assert!(!format!("{url:?}").contains("hunter2"), "{url:?}");
        assert!(url.has_password());
        assert_eq!(url.password().unwrap().expose(), "hunter2");
    }
    for text in ["sqlite:x", "redis://ada@h", "redis://h", "zk://ada@h"] {
        assert!(!parse(text).has_password());
    }
}

#[test]
fn no_message_repeats_a_password() {
    for text in [
        "redis://ada:hunter2",
        "redis://ada:hunter2@",
        "redis://ada:hunter2@:6379",
        "redis://ada:hunter2@host:x",
        "redis://ada:hunter2@host/x",
        "redis://ada:hunter2@host?x=y",
        "redis://ada:hunter2%@host",
        "redis://:hunter2%ff@host",
        "redis://:hun/hunter2@host",
        "redis://:hun?hunter2@host",
        "redis://:hun#hunter2@host",
        "redis://:1234/hunter2@host",
        "redis://:hun@hun/hunter2@host/0",
        "redis://host?password=hunter2",
        "redis-sentinel://host/m?sentinel_password=hunter2",
        "redis-cluster://:hunter2@host",
        "redis+unix://:hunter2@host/s",
        "etcd://:hunter2@host",
        "ada:hunter2@host:6379",
        "zk://:hunter2@host",
        "zk://a,b:hunter2@",
        "rediss//:hunter2@host",
    ] {
        let refusal = refusal(text);
        assert!(!refusal.contains("hunter2"), "{text}: {refusal}");
        assert!(!format!("{:?}", text.parse::<BoardUrl>()).contains("hunter2"));
    }
}

#[test]
fn relative_files_can_be_given_a_folder() {
    for (text, there) in [
        ("sqlite:jobs.db", "sqlite:/etc/x/jobs.db"),
        ("sqlite:/jobs.db?sync=full", "sqlite:/jobs.db?sync=full"),
        (
            "rediss://h:1/0?ca=a&cert=/b&key=c",
            "rediss://h:1/0?ca=/etc/x/a&cert=/b&key=/etc/x/c",
        ),
        ("redis+unix:///run/s", "redis+unix:///run/s"),
        (
            "rediss-sentinel://h:1/m/0?sentinel_password_file=p&ca=a",
            "rediss-sentinel://h:1/m/0?sentinel_password_file=/etc/x/p&ca=/etc/x/a",
        ),
        ("zks://h:1/j?ca=a", "zks://h:1/j?ca=/etc/x/a"),
        ("zk://h:1/j", "zk://h:1/j"),
    ] {
        let url = parse(text).relative_to(Path::new("/etc/x"));
        assert_eq!(url.to_string(), there);
    }
    let both = sentinel(redis("rediss-sentinel://h/m?ca=a"));
    assert_eq!(both.tls.unwrap().ca, Some("a".into()));
}

#[test]
fn a_board_beside_another_is_where_whoever_may_use_that_may_use_it() {
    for (url, beside) in [
        (
            "sqlite:jobs.db?sync=full",
            "sqlite:jobs.db.x-1a2b?sync=full",
        ),
        ("redis://h", "redis://h:6379/0?namespace=taskflow:x-1a2b"),
        (
            "redis://ada@h/1?namespace=a:b",
            "redis://ada@h:6379/1?namespace=a:b:x-1a2b",
        ),
        ("redis://h?bare=true", "redis://h:6379/0?namespace=x-1a2b"),
        ("zk://h", "zk://h:2181/taskflow/.x-1a2b/of-1a2b"),
        (
            "zk://h/jobs?chroot=/c",
            "zk://h:2181/.x-1a2b/of-1a2b?chroot=/c",
        ),
    ] {
        let told = parse(url).beside("x-1a2b");
        assert_eq!(told, parse(beside), "{told}");
    }
}
