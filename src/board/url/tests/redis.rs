//! URLs of boards on Redis.

use super::*;

#[test]
fn host_alone_is_a_complete_redis_url() {
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
    let explicit = redis("redis://localhost:6379/0?");
    assert_eq!(redis("redis://localhost/"), explicit);
    assert!(parse("redis://localhost").is_network());
}

#[test]
fn redis_url_with_all_parts() {
    let url = redis("redis://ada:p%40ss:w@[::1]:7000/3?namespace=a%26b:c");
    assert_eq!(url.address, Address::Tcp(server("::1", 7000)));
    assert_eq!(url.user.as_deref(), Some("ada"));
    assert_eq!(url.password.unwrap().expose(), "p@ss:w");
    assert_eq!(url.db, 3);
    assert_eq!(url.namespace.as_deref(), Some("a&b:c"));

    let url = redis("redis://:hunter2@10.0.0.1");
    let password = Some(Secret::new("hunter2"));
    assert_eq!((url.user, url.password), (None, password));
    let url = redis("redis://ada:@host");
    assert_eq!((url.user.as_deref(), url.password), (Some("ada"), None));
    let url = redis("redis://p@ss:x@host");
    assert_eq!(url.user.as_deref(), Some("p@ss"));
}

#[test]
fn namespace_may_be_empty_or_absent() {
    let namespace = |query: &str| redis(&format!("redis://host?{query}")).namespace;
    assert_eq!(namespace("namespace="), Some(String::new()));
    assert_eq!(namespace("bare=true"), None);
    assert_eq!(namespace("bare=false"), Some("taskflow".to_owned()));
    assert_eq!(namespace("bare=false&namespace=x"), Some("x".to_owned()));
    refused(
        r#"
        redis://host?bare=true&namespace=x => cannot be used together
        redis://host?namespace=&bare=true => cannot be used together
        redis://host?bare=yes => `bare=yes` is invalid; use true or false
        redis://host?bare => the key `bare` has no value
        "#,
    );
}

#[test]
fn invalid_redis_urls_are_refused() {
    refused(
        r#"
        redis:host => the address after `redis:` is invalid; write //HOST:PORT/DB
        redis:// => the host is missing
        redis:///0 => the host is missing
        redis://:6379 => the host is missing
        redis://host/notanumber => `notanumber` is not a database number
        redis://host/+1 => `+1` is not a database number
        redis://host/-1 => `-1` is not a database number
        redis://host/1/ => `1/` is not a database number
        redis://host//1 => `/1` is not a database number
        redis://host/4294967296 => `4294967296` is not a database number
        redis://a,b/0 => a `redis` board takes one host
        rediss://a,b/0 => a `rediss` board takes one host
        redis://ho st => `ho st` is neither a host name nor an address
        redis://h%6fst => `h%6fst` is neither a host name nor an address
        redis://host?db=1 => unknown parameter `db` (valid: namespace, bare
        redis://host?namespace=a&namespace=b => the parameter `namespace` is given twice
        redis://host?namespace=%zz => a value after the `?` contains an invalid `%` escape
        redis://host?namespace=%ff => contains an invalid `%` escape
        redis://%4@host => the user contains an invalid `%` escape
        redis://host#x => no fragment
        redis://host?Namespace=x => unknown parameter `Namespace`
        "#,
    );
}

#[test]
fn invalid_ports_and_addresses_are_refused() {
    for port in ["0", "65536", "+1", "x", "", "-1"] {
        let refusal = refusal(&format!("redis://host:{port}/0"));
        let expected = "the port of `host` is not a number from 1 to 65535";
        assert_eq!(refusal, expected);
    }
    refused(
        r#"
        redis://::1 => needs brackets
        redis://fe80::1/0 => needs brackets
        redis://[::1 => not an IPv6 address
        redis://[host] => not an IPv6 address
        redis://[::1]x => not an IPv6 address
        redis://[::1]:x => the port of `::1`
        "#,
    );
}

#[test]
fn scheme_selects_tls() {
    assert_eq!(redis("rediss://host").tls, Some(TlsFiles::default()));
    assert_eq!(
        redis("rediss://host?ca=/a%20b.pem&cert=c&key=k").tls,
        Some(TlsFiles {
            ca: Some("/a b.pem".into()),
            identity: Some(TlsIdentity {
                cert: "c".into(),
                key: "k".into(),
            }),
        })
    );
    refused(
        r#"
        redis://host?ca=x => `ca` needs TLS; use rediss://
        redis+unix:///s?cert=x => `cert` needs TLS
        zk://host?key=x => `key` needs TLS
        redis-sentinel://host/m?ca=x => `ca` needs TLS
        redis-sentinel://host/m?cert=x&key=y => `cert` needs TLS
        rediss://host?cert=x => `cert` also needs `key`
        rediss://host?key=x => `key` also needs `cert`
        zks://host?cert=x&ca=y => `cert` also needs `key`
        rediss://host?ca= => the key `ca` has no value
        "#,
    );
}

#[test]
fn redis_socket_url() {
    let url = redis("redis+unix:///run/redis%3F.sock?db=2&namespace=x");
    assert_eq!(url.address, Address::Unix("/run/redis?.sock".into()));
    assert_eq!((url.db, url.namespace.as_deref()), (2, Some("x")));
    assert_eq!(redis("redis+unix://ada@/s").user.as_deref(), Some("ada"));
    refused(
        r#"
        redis+unix:// => the path of the socket is missing
        redis+unix:/// => the path of the socket is missing
        redis+unix:/run/s => write ///PATH
        redis+unix://run/s => write ///PATH
        redis+unix:///s?db=x => `x` is not a database number
        "#,
    );
}

#[test]
fn sentinel_url_names_the_master() {
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
    let asked = "redis-sentinel://s/m?sentinel_user=eve&sentinel_password_file=/run/pw";
    let asked = sentinel(redis(asked));
    assert_eq!(asked.user.as_deref(), Some("eve"));
    assert_eq!(asked.password_file, Some("/run/pw".into()));
}

#[test]
fn sentinels_have_their_own_tls() {
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
    for (url, expected) in [
        ("rediss-sentinel://s/m?ca=x", (ca(), ca())),
        (
            "rediss-sentinel://s/m?ca=x&sentinel_tls=false",
            (ca(), None),
        ),
        ("redis-sentinel://s/m?ca=x&sentinel_tls=true", (None, ca())),
        ("redis-sentinel://s/m?sentinel_tls=false", (None, None)),
    ] {
        assert_eq!(tls(url), expected, "{url}");
    }
}

#[test]
fn sentinel_url_without_a_master_is_refused() {
    refused(
        r#"
        redis-sentinel://s1,s2 => the name of the master is missing
        redis-sentinel://s1/ => the name of the master is missing
        redis-sentinel://s1//0 => the name of the master is missing
        redis-sentinel:///m => the host is missing
        redis-sentinel://s1,,s2/m => the host is missing
        redis-sentinel://s1/m/x => `x` is not a database number
        redis-sentinel://s1/m/0/ => `0/` is not a database number
        redis-sentinel://s1/m?sentinel_tls=1 => use true or false
        redis-sentinel://s1/m?x=1 => valid: namespace, bare, sentinel_user
        "#,
    );
}
