//! URLs of boards on ZooKeeper.

use super::*;

#[test]
fn zookeeper_url_with_all_parts() {
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
    let url = zookeeper("zks://h?acl=creator&cert=c&key=k");
    assert_eq!(url.acl, Acl::Creator);
}

#[test]
fn invalid_zookeeper_urls_are_refused() {
    refused(
        r#"
        zk:// => the host is missing
        zk:///taskflow/jobs => the host is missing
        zk://h1,/x => the host is missing
        zk://h/jobs/ => the path `/jobs/` ends with `/`
        zk://h// => ends with `/`
        zk://h/a//b => an empty part between two `/`
        zk://h/a/../b => contains `.` or `..`
        zk://h/a%00b => a character that ZooKeeper forbids
        zk://h/a?chroot=x => the path `x` does not begin with `/`
        zk://h/a?chroot=/x/ => the path `/x/` ends with `/`
        zk://h?session=10 => `session` is invalid: `10` has no unit
        zk://h?session=0s => `session=0s` is invalid
        zk://h?session=25d => `session=25d` is invalid
        zk://h?acl=none => use world or creator
        zk://h?acl=creator => needs a user
        zks://h?acl=creator => needs a user
        zk://:pw@h => needs a user with the password
        zk://h?namespace=x => (valid: chroot, session, acl)
        zks://h?x=y => (valid: chroot, session, acl, ca, cert, key)
        "#,
    );
}
