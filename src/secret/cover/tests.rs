//! Masked and plain texts, side by side.

use serde_json::json;

use super::*;
use crate::tests::rows;

#[test]
fn secrets_are_masked_at_any_depth() {
    let shown = covered(&json!({
        "user": "ada",
        "db_password": "x",
        "store": {"tls": [{"private_key": "y"}, "-----BEGIN RSA PRIVATE KEY-----\nz"]},
        "token": null,
        "DB_PASS": "p1ain",
        "url": "mysql://ada:p1ain@h/x",
        "command": ["curl", "--token", "p1ain", "--api-key=p1ain", "h"],
        "compass": "north",
    }));
    assert_eq!(shown["compass"], "north");
    assert_eq!(shown["command"][4], "h");
    let text = shown.to_string();
    for secret in ["\"x\"", "\"y\"", "BEGIN", "p1ain"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(shown["user"], "ada");
    assert_eq!(shown["token"], Value::Null);
}

#[test]
fn words_of_a_command_are_masked_by_the_words_before_them() {
    for command in [
        json!(["curl", "-u", "user:p1ain", "http://h"]),
        json!(["curl", "--user", "bob:p1ain two", "h"]),
        json!([
            "/usr/bin/curl",
            "-b",
            "sid=p1ain",
            "-u",
            "ada:p\"1ain p1ain",
            "h"
        ]),
        json!([
            "curl",
            "-u",
            "ada:p1ain",
            "-d",
            "{\"password\":\"x\",\"a\":\"b\"}"
        ]),
        json!(["mysql", "-uroot", "-pp1ain\"p1ain", "shop"]),
        json!(["sshpass", "-v", "-p", "p1ain", "ssh", "h"]),
        json!(["sshpass", "-pp1ain", "ssh", "-p", "22", "h"]),
        json!(["redis-cli", "-a", "p1ain", "PING"]),
    ] {
        let shown = covered(&command);
        let text = shown.to_string();
        assert!(!text.contains("p1ain"), "{text}");
        assert_eq!(shown[0], command[0]);
    }
    for plain in [
        json!(["sudo", "-u", "ada:x", 7, "git", "-b", "x"]),
        json!(["docker", "run", "--user", "1000:1000", "img"]),
        json!(["sshpass", "-V", "ssh", "-p", "22", "h"]),
        json!([
            "sh",
            "-c",
            "mysqldump db > f\ncp -pr f /backup\ncurl h && git -b main"
        ]),
    ] {
        assert_eq!(covered(&plain), plain);
    }
    let script = json!(["sh", "-c", "export DB_PASS=x\nmysql -h db < dump.sql"]);
    let shown = "export DB_PASS=********\nmysql -h db < dump.sql";
    assert_eq!(covered(&script)[2], shown);
}

const COVERED: &str = r#"
    no such file: x\n => no such file: x\n
    --db-password=x y => --db-password=******** y
    Password: x\nz: y\n => Password: ********\nz: y\n
    token:\nx => token:\nx
    > Authorization: Bearer abcdefghijklmnop12345 (x) => > Authorization: Bearer ******** (x)
    authorization: basic YWRhOng= => authorization: basic ********
    the bearer of it => the bearer of it
    Zm9v\nYmFy\n-----END RSA PRIVATE KEY-----\ndone\n => ********\ndone\n
    curl -sS -u ada:x http://h => curl -sS -u ada:******** http://h
    sudo -u ada id => sudo -u ada id
    DB_PASS=x MYSQL_PWD=y PWD=/ => DB_PASS=******** MYSQL_PWD=******** PWD=/
    curl -b sid=x h; tar -b x => curl -b ******** h; tar -b x
    redis-cli -a x PING => redis-cli -a ******** PING
    http://h/?sig=x&b=1 => http://h/?sig=********&b=1
    -passin pass:x y => -passin pass:******** y
    X-Auth-Key: x => X-Auth-Key: ********
    {"client_key":"x"} => {"client_key":********}
    the primary key: 7 => the primary key: 7
    --user=ada:x --user ada:x => --user=ada:******** --user ada:********
    curl -u 'ada:x y z' h => curl -u 'ada:********' h
    Command '['curl', '-u', 'ada:x', '--password', 'y']' failed => Command '['curl', '-u', 'ada:********', '--password', ********]' failed
    > Cookie: sid=x; t=y\nhttp://h?a=b => > Cookie: ********\nhttp://h?a=b
    -H 'Set-Cookie: sid=x; Path=/' h => -H 'Set-Cookie: ********' h
    curl --cookie sid=x h => curl --cookie ******** h
    curl --cookie='sid=x; t=y' h => curl --cookie=******** h
    sshpass -p x ssh -p 22 h => sshpass -p ******** ssh -p 22 h
    /usr/bin/sshpass -v -px ssh h => /usr/bin/sshpass -v -p******** ssh h
    ['sshpass', '-p', 'x', 'ssh'] => ['sshpass', '-p', ********, 'ssh']
    mysql --password x --host h => mysql --password ******** --host h
    mysql -uroot -px h => mysql -uroot -p******** h
    cat: /etc/passwd: Permission denied => cat: /etc/passwd: Permission denied
    db_passwd: x => db_passwd: ********
    mysql --password 'x y' h => mysql --password ******** h
    {"password": "x y", "a": 1} => {"password": ********, "a": 1}
    --db-password => --db-password
    Your new password is now hunter2. The token was 'x y'. => Your new password is now ******** The token was ********.
    the password is wrong => the password is wrong
    got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmF0dXJl, not eyJ.a => got ********, not eyJ.a
    eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ. x => ******** x
    at redis://a:x@h:1/0 now => at redis://a:********@h:1/0 now
    a\n-----BEGIN KEY-----\nx\n-----END KEY-----\nb => a\n********\nb
"#;

#[test]
fn secrets_are_masked_in_command_output() {
    for [text, safe] in rows(COVERED) {
        assert_eq!(covered_text(text), safe);
    }
}

#[test]
fn only_the_password_of_a_url_is_covered() {
    let table = "
        at redis://a:x@h:1/0 now => at redis://a:********@h:1/0 now
        zk://ada:x/y@h1,h2/jobs => zk://ada:********@h1,h2/jobs
        --password-file: no such file => --password-file: no such file
        rediss://db:6380/0?ca=/etc/tls@prod/ca.pem => rediss://db:6380/0?ca=/etc/tls@prod/ca.pem
        redis://localhost:6379?namespace=a@b => redis://localhost:6379?namespace=a@b
        zk://h1:2181,h2:2181/a@b => zk://h1:2181,h2:2181/a@b
    ";
    for [text, safe] in rows(table) {
        assert_eq!(covered_urls(text), safe);
    }
}
