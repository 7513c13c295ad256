//! Fuzzed URLs: an accepted URL prints as one, without its password.

use super::*;
use crate::untrusted::{Answer, Bounds, Corpus, Tried, refused, same};

/// The password in the corpus.
const PASSWORD: &str = "hunter2";

const URLS: [&str; 14] = [
    "sqlite:/srv/jobs.db?sync=full",
    "sqlite:jobs 100%.db",
    "redis://localhost",
    "redis://ada:hunter2@h1:6380/3?namespace=a%3Ab",
    "rediss://:hunter2@[::1]:6379/0?ca=/etc/ca.pem&cert=c.pem&key=k.pem",
    "redis+unix:///run/redis%20a.sock?db=2&bare=true",
    "redis-sentinel://s1,s2:26380/mymaster/1?sentinel_user=u&sentinel_password_file=/p",
    "rediss-sentinel://ada:hunter2@s1/my%2Fmaster?sentinel_tls=false",
    "zk://h1,h2:2182/taskflow/jobs?chroot=/a&session=30s",
    "zks://ada:hunter2@h1/jobs?acl=creator",
    "zk://[::1]:2181",
    "REDIS://HOST_1.example/?namespace=",
    "redis://a%40b:hunter2@h/",
    "zk://h/\u{e9}/b%20c",
];

fn without_password(mut url: BoardUrl) -> BoardUrl {
    match &mut url {
        BoardUrl::Embedded(_) => {}
        BoardUrl::Redis(url) => url.password = None,
        BoardUrl::ZooKeeper(url) => url.password = None,
    }
    url
}

fn prints_what_was_read(text: &str) -> Tried {
    let url: BoardUrl = match text.parse() {
        Ok(url) => url,
        Err(invalid) => return refused(&invalid),
    };
    let printed = url.to_string();
    let has_it = (url.password()).is_some_and(|it| it.expose().contains(PASSWORD));
    let is_shown = has_it && printed.contains(PASSWORD) && text.matches(PASSWORD).count() < 2;
    same("the password is shown", &is_shown, &false)?;
    let again: BoardUrl = printed
        .parse()
        .map_err(|invalid: InvalidUrl| format!("{printed} is refused: {invalid}"))?;
    same("printed again", &printed, &again.to_string())?;
    same("read again", &without_password(url), &again)?;
    Ok(Answer::Read)
}

#[test]
fn untrusted_urls_are_printed_as_they_were_read() {
    Corpus::of(Bounds::TYPED, URLS).hold_for_text(prints_what_was_read);
}
