//! Finding the master through Sentinels.

use std::time::Duration;

use futures_util::{StreamExt, future::join_all, stream::FuturesUnordered};
use redis::{Value, from_redis_value};
use tokio::time;

use super::endpoint::{Endpoint, ServerPlace};
use crate::{
    board::{
        error::reason,
        net::{
            cause::{ServerCause, ServerProblem},
            connect::Deadline,
        },
        url::{Server, redis::Sentinel},
    },
    bounded_read::regular_file,
    secret::Secret,
};

/// How long to wait for a Sentinel before also asking the next.
const HEAD_START: Duration = Duration::from_millis(300);

const MAX_MASTER_BYTES: usize = 255;

/// Asks Sentinels in their order; a silent one delays the others only briefly. `None` if all servers that they name
/// are in `tried`.
pub(crate) async fn master(
    sentinel: &Sentinel,
    tried: &[Server],
    deadline: Deadline,
) -> Result<Option<Server>, ServerProblem> {
    let password = password(sentinel)?;
    let endpoint = |server| endpoint(sentinel, server, password.as_ref());
    let mut waiting = sentinel.servers.iter().map(endpoint);
    let ask = |endpoint: Endpoint| async move { ask(&endpoint, &sentinel.master, deadline).await };
    let mut asked: FuturesUnordered<_> = waiting.next().map(ask).into_iter().collect();
    let mut problems = Vec::new();
    let mut is_known = false;
    while !asked.is_empty() {
        let answer = time::timeout(HEAD_START, asked.next()).await;
        match answer {
            Ok(Some(Ok(server))) if !tried.contains(&server) => return Ok(Some(server)),
            Ok(Some(Ok(_))) => is_known = true,
            Ok(Some(Err(problem))) => problems.push(problem),
            Ok(None) | Err(_) => {}
        }
        asked.extend(waiting.next().map(ask));
    }
    if is_known {
        return Ok(None);
    }
    Err(most_informative(problems, sentinel))
}

/// Asks each Sentinel whether enough of them are there to replace a failed master; returns those that deny it or do
/// not reply, with the reason.
pub(crate) async fn objections(
    sentinel: &Sentinel,
    deadline: Deadline,
) -> Result<Vec<(Server, String)>, ServerProblem> {
    let password = password(sentinel)?;
    let asked = sentinel.servers.iter().map(async |server| {
        let endpoint = endpoint(sentinel, server, password.as_ref());
        let words = ["CKQUORUM", &sentinel.master];
        let objection = match request(&endpoint, words, deadline).await {
            Ok(Value::ServerError(error)) => error.details().unwrap_or("NOQUORUM").to_owned(),
            Ok(_) => return None,
            Err(problem) => problem.to_string(),
        };
        Some((server.clone(), objection))
    });
    let objections = join_all(asked).await;
    Ok(objections.into_iter().flatten().collect())
}

fn endpoint(sentinel: &Sentinel, server: &Server, password: Option<&Secret>) -> Endpoint {
    Endpoint {
        place: ServerPlace::Tcp(server.clone()),
        tls: sentinel.tls.clone(),
        user: sentinel.user.clone(),
        password: password.cloned(),
        most: MAX_MASTER_BYTES,
    }
}

fn most_informative(mut problems: Vec<ServerProblem>, sentinel: &Sentinel) -> ServerProblem {
    let has_replied = |problem: &ServerProblem| {
        use ServerCause::{RefusedConnection, Silent, SilentInTls};
        !matches!(
            problem.cause(),
            RefusedConnection | Silent(_) | SilentInTls(_)
        )
    };
    if let Some(index) = problems.iter().position(has_replied) {
        return problems.swap_remove(index);
    }
    let texts: Vec<_> = problems.iter().map(ServerProblem::to_string).collect();
    let whom = format!("the master {}", sentinel.master);
    ServerProblem::new(whom, ServerCause::Unreachable(texts.join(", ")))
}

async fn ask(
    endpoint: &Endpoint,
    master: &str,
    deadline: Deadline,
) -> Result<Server, ServerProblem> {
    let answer = request(endpoint, ["get-master-addr-by-name", master], deadline).await?;
    match answer {
        Value::Nil => Err(endpoint.problem(ServerCause::UnknownMaster(master.to_owned()))),
        Value::ServerError(error) => Err(match endpoint.meaning(&error) {
            problem if matches!(problem.cause(), ServerCause::Message(_)) => {
                endpoint.problem(ServerCause::NotSentinel)
            }
            problem => problem,
        }),
        answer => match from_redis_value::<(String, u16)>(answer) {
            Ok((host, port)) => Ok(Server { host, port }),
            Err(_) => Err(endpoint.problem(ServerCause::UnexpectedReply)),
        },
    }
}

async fn request(
    endpoint: &Endpoint,
    words: [&str; 2],
    deadline: Deadline,
) -> Result<Value, ServerProblem> {
    let mut stream = endpoint.connect(deadline).await?;
    let mut question = endpoint.login();
    question.cmd("SENTINEL").arg(&words);
    let answers = endpoint.exchange(&mut stream, &question, deadline).await?;
    endpoint.next(&mut endpoint.check_login(answers)?)
}

fn password(sentinel: &Sentinel) -> Result<Option<Secret>, ServerProblem> {
    if sentinel.password.is_some() {
        return Ok(sentinel.password.clone());
    }
    let Some(path) = &sentinel.password_file else {
        return Ok(None);
    };
    // Reading a pipe would block the other tasks.
    let read = regular_file(path).and_then(|bytes| Secret::read(&bytes[..]));
    read.map(Some).map_err(|error| {
        let cause = ServerCause::File(reason(&error));
        ServerProblem::new(path.display(), cause)
    })
}
