//! Valid board URLs, and messages for invalid ones.

mod redis;
mod zookeeper;

use std::time::Duration;

use super::{
    redis::{Address, Sentinel},
    zookeeper::Acl,
    *,
};
use crate::tests::rows;

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

/// Requires that each refusal contains a text.
#[track_caller]
fn refused(cases: &str) {
    for [text, message] in rows(cases) {
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
            makes_directory: false,
        }
    );
    assert_eq!(
        embedded("sqlite:./~/x?sync=normal").path,
        Path::new("./~/x")
    );
    assert!(!parse("sqlite:x").is_network());
}

#[test]
fn invalid_file_urls_are_refused() {
    refused(
        r#"
        sqlite: => use sqlite:PATH
        sqlite:?sync=full => use sqlite:PATH
        sqlite::memory: => in memory
        sqlite:///srv/jobs.db => for example sqlite:/srv/jobs.db
        sqlite:~/jobs.db => does not expand `~`
        sqlite:x?sync=off => `sync=off` is invalid; use full or normal
        sqlite:x?mode=ro => unknown parameter `mode` (valid: sync)
        sqlite:x?ca=y => `ca` needs TLS
        "#,
    );
}

#[test]
fn missing_or_unknown_scheme_lists_the_known_ones() {
    assert!(refusal("").contains("use sqlite:PATH"));
    refused(
        r#"
        jobs => use sqlite:PATH
        jobs.db => use sqlite:jobs.db
        ./jobs => use sqlite:./jobs
        /srv/a:b.db => use sqlite:PATH
        ./a:b => use sqlite:PATH
        :x => use sqlite:PATH
        file:/srv/jobs.db => use sqlite:PATH
        etcd://host => unknown scheme `etcd`; use one of sqlite, redis, rediss, redis+unix, redis-sentinel, rediss-sentinel, zk, zks, octavia
        localhost:6379 => use redis://localhost:6379
        redis-cluster://host => several slots
        rediss-cluster://host => several slots
        "#,
    );
}

#[test]
fn printed_url_parses_to_itself() {
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
fn password_is_never_displayed() {
    for [text, shown] in rows(
        r#"
        redis://ada:hunter2@h => redis://ada@h:6379/0
        rediss://:hunter2@h => rediss://h:6379/0
        redis+unix://:hunter2@/s => redis+unix:///s
        redis-sentinel://:hunter2@h/m => redis-sentinel://h:26379/m/0
        zk://ada:hunter2@h => zk://ada@h:2181/taskflow/jobs
        "#,
    ) {
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
fn error_repeats_no_password() {
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
fn relative_paths_resolve_against_a_directory() {
    for [text, there] in rows(
        r#"
        sqlite:jobs.db => sqlite:/etc/x/jobs.db
        sqlite:/jobs.db?sync=full => sqlite:/jobs.db?sync=full
        rediss://h:1/0?ca=a&cert=/b&key=c => rediss://h:1/0?ca=/etc/x/a&cert=/b&key=/etc/x/c
        redis+unix:///run/s => redis+unix:///run/s
        rediss-sentinel://h:1/m/0?sentinel_password_file=p&ca=a => rediss-sentinel://h:1/m/0?sentinel_password_file=/etc/x/p&ca=/etc/x/a
        zks://h:1/j?ca=a => zks://h:1/j?ca=/etc/x/a
        zk://h:1/j => zk://h:1/j
        "#,
    ) {
        let url = parse(text).relative_to(Path::new("/etc/x"));
        assert_eq!(url.to_string(), there);
    }
    let both = sentinel(redis("rediss-sentinel://h/m?ca=a"));
    assert_eq!(both.tls.unwrap().ca, Some("a".into()));
}

#[test]
fn sibling_board_has_the_same_access() {
    for [url, companions] in rows(
        r#"
        sqlite:jobs.db?sync=full => sqlite:jobs.db.x-1a2b?sync=full
        redis://h => redis://h:6379/0?namespace=taskflow:x-1a2b
        redis://ada@h/1?namespace=a:b => redis://ada@h:6379/1?namespace=a:b:x-1a2b
        redis://h?bare=true => redis://h:6379/0?namespace=x-1a2b
        zk://h => zk://h:2181/taskflow/.x-1a2b/of-1a2b
        zk://h/jobs?chroot=/c => zk://h:2181/.x-1a2b/of-1a2b?chroot=/c
        "#,
    ) {
        let sibling = parse(url).sibling("x-1a2b");
        assert_eq!(sibling, parse(companions), "{sibling}");
    }
}
