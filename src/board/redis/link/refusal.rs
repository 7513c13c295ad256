//! The meaning of Redis error replies.

use redis::ServerError;

use crate::board::net::cause::ServerCause;

/// The most characters that are shown of a message.
const MAX_DETAIL_CHARS: usize = 500;

/// Codes that scripts on servers older than 7 wrap into an `ERR` of their own.
const WRAPPED: [&str; 7] = [
    "READONLY",
    "OOM",
    "WRONGTYPE",
    "MISCONF",
    "MASTERDOWN",
    "NOREPLICAS",
    "NOPERM",
];

pub(crate) const CLUSTER: ServerCause = ServerCause::unusable(
    "Redis Cluster cannot store a board: TaskFlow's scripts use keys in several slots",
    "use a Redis server that is not part of a cluster",
);

/// `user` is our login name; the message never repeats data that we sent.
pub(crate) fn meaning(error: &ServerError, user: Option<&str>) -> ServerCause {
    cause_of(error.code(), error.details().unwrap_or_default(), user)
}

pub(crate) fn meaning_in_script(text: &str, user: Option<&str>) -> ServerCause {
    // Before Redis 7 it begins with a place in the script.
    match text.split_once(' ') {
        Some((code, details)) if code.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            cause_of(code, details, user)
        }
        _ => cause_of("ERR", text, user),
    }
}

fn cause_of(code: &str, details: &str, user: Option<&str>) -> ServerCause {
    match unwrapped(code, details) {
        "LOADING" => ServerCause::Loading,
        "BUSY" => ServerCause::Busy,
        "MASTERDOWN" => ServerCause::LostMaster,
        "CLUSTERDOWN" => ServerCause::ClusterDown,
        "NOREPLICAS" => ServerCause::TooFewReplicas,
        "MOVED" | "ASK" | "CROSSSLOT" | "TRYAGAIN" => CLUSTER,
        "NOAUTH" => ServerCause::NoPassword,
        "DENIED" => ServerCause::ProtectedMode,
        "NOPERM" => forbidden(details, user),
        "READONLY" => ServerCause::Replica,
        "OOM" => ServerCause::OutOfMemory,
        "MISCONF" => ServerCause::CannotSave,
        "WRONGTYPE" => ServerCause::WrongType(String::new()),
        // Our own scripts' codes.
        "NOCOUNT" => ServerCause::NoCounter(one_line("", details)),
        "TOOMANY" => ServerCause::HighCounter(one_line("", details)),
        "ERR" if details.starts_with("max number of clients") => ServerCause::TooManyClients,
        "ERR" if details.contains("The user executing the script") => forbidden(details, user),
        code => ServerCause::Message(one_line(code, details)),
    }
}

/// Omits the server's message: a server that does not know the command repeats the password in it.
pub(crate) fn meaning_of_login(error: &ServerError, user: Option<&str>) -> ServerCause {
    let details = error.details().unwrap_or_default();
    let is_wrong = error.code() == "WRONGPASS" || details.starts_with("invalid password");
    match (error.code(), user) {
        (_, Some(user)) if is_wrong => ServerCause::WrongUser(user.to_owned()),
        (_, None) if is_wrong => ServerCause::WrongPassword,
        ("ERR", _) if details.contains("without any password configured") => {
            ServerCause::NeedlessPassword
        }
        ("ERR", _) if details.contains("no password is set") => ServerCause::NeedlessPassword,
        ("ERR", Some(_)) if details.starts_with("wrong number of arguments") => {
            ServerCause::NoUsers
        }
        ("ERR", _) if details.starts_with("max number of clients") => ServerCause::TooManyClients,
        ("DENIED", _) => ServerCause::ProtectedMode,
        ("LOADING", _) => ServerCause::Loading,
        ("BUSY", _) => ServerCause::Busy,
        (code, _) => ServerCause::AccessDeniedBecause(code.to_owned()),
    }
}

fn unwrapped<'a>(code: &'a str, details: &str) -> &'a str {
    let wrapped = WRAPPED.into_iter().find(|code| {
        let mut words = details.split(' ');
        details.contains("@user_script") && words.any(|word| word.trim_start_matches('-') == *code)
    });
    match code {
        "ERR" => wrapped.unwrap_or("ERR"),
        code => code,
    }
}

fn forbidden(details: &str, user: Option<&str>) -> ServerCause {
    let user = user.unwrap_or("default").to_owned();
    let quoted = details.split('\'').nth(1);
    if let Some(command) = quoted.filter(|_| details.contains("permissions to run")) {
        let command = command.to_owned();
        return ServerCause::ForbiddenCommand { user, command };
    }
    let of = [("channel", "channels"), ("key", "keys")];
    let of = of.into_iter().find(|(word, _)| details.contains(word));
    let what = of.map_or("commands", |(_, what)| what);
    ServerCause::Forbidden { user, what }
}

/// Formats a server message without the script trace that Redis adds.
fn one_line(code: &str, details: &str) -> String {
    let details = details.split(" script: ").next().unwrap_or_default();
    let details = details.trim().trim_end_matches(['.', ',']);
    let end = details.char_indices().nth(MAX_DETAIL_CHARS);
    let details = end.map_or(details, |(at, _)| &details[..at]);
    format!("{code} {details}").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use redis::{Value, parse_redis_value};

    use super::*;

    fn error(text: &str) -> ServerError {
        match parse_redis_value(format!("-{text}\r\n").as_bytes()) {
            Ok(Value::ServerError(error)) => error,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn replies_of_all_server_versions_are_understood() {
        for (text, expected) in [
            (
                "LOADING Redis is loading the dataset in memory",
                ServerCause::Loading,
            ),
            (
                "BUSY Redis is busy running a script. You can only call",
                ServerCause::Busy,
            ),
            ("CLUSTERDOWN Hash slot not served", ServerCause::ClusterDown),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                ServerCause::CannotSave,
            ),
            ("MOVED 3999 127.0.0.1:6381", CLUSTER),
            (
                "ERR Error running script (call to f_0c): @user_script: 1: -OOM command not \
                 allowed when used memory > 'maxmemory'.",
                ServerCause::OutOfMemory,
            ),
            (
                "ERR Error running script (call to f_0c): @user_script:1: WRONGTYPE Operation",
                ServerCause::WrongType(String::new()),
            ),
            (
                "READONLY You can't write against a read only replica. script: 0c, on @user_script:1.",
                ServerCause::Replica,
            ),
            (
                "ERR Wrong number of args calling Redis command from script script: 0c, on x.",
                ServerCause::Message(
                    "ERR Wrong number of args calling Redis command from script".into(),
                ),
            ),
            (
                "ERR Error running script (call to f_0c): @user_script:46: @user_script: 46: The user \
                 executing the script can't run this command or subcommand",
                ServerCause::Forbidden {
                    user: "default".to_owned(),
                    what: "commands",
                },
            ),
            ("EXECABORT", ServerCause::Message("EXECABORT".into())),
        ] {
            assert_eq!(meaning(&error(text), None), expected, "{text}");
        }
    }

    #[test]
    fn login_failures_of_all_versions_are_understood() {
        let user = Some("alice");
        for (text, user, expected) in [
            ("ERR invalid password", None, ServerCause::WrongPassword),
            (
                "WRONGPASS invalid username-password pair",
                None,
                ServerCause::WrongPassword,
            ),
            (
                "ERR Client sent AUTH, but no password is set",
                None,
                ServerCause::NeedlessPassword,
            ),
            (
                "ERR wrong number of arguments for 'auth' command",
                user,
                ServerCause::NoUsers,
            ),
            (
                "WRONGPASS pair",
                user,
                ServerCause::WrongUser("alice".into()),
            ),
            (
                "ERR unknown command `AUTH`, with args beginning with: `hunter2`",
                None,
                ServerCause::AccessDeniedBecause("ERR".into()),
            ),
        ] {
            assert_eq!(meaning_of_login(&error(text), user), expected, "{text}");
        }
    }
}
