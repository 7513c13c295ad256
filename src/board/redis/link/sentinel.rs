//! The Sentinels, which know where the master is.

use std::time::Duration;

use futures_util::{StreamExt, stream::FuturesUnordered};
use redis::{Value, from_redis_value};
use tokio::time;

use super::{
    connect::{Deadline, Door, Place},
    problem::{Problem, Trouble},
};
use crate::{
    board::url::{Server, redis::Sentinel},
    reading::regular_file,
    secret::Secret,
};

/// How long a Sentinel is waited for before the next one is asked as well.
const HEAD_START: Duration = Duration::from_millis(300);

/// Returns the first server that a Sentinel names and that is not among those that were tried.
///
/// They are asked in their order; one that does not answer holds the others up only briefly.
/// `None` if all that they name was tried.
pub(in crate::board::redis) async fn master(
    sentinel: &Sentinel,
    tried: &[Server],
    deadline: Deadline,
) -> Result<Option<Server>, Trouble> {
    let password = password(sentinel)?;
    let mut waiting = sentinel.servers.iter().map(|server| Door {
        place: Place::Tcp(server.clone()),
        tls: sentinel.tls.clone(),
        user: sentinel.user.clone(),
        password: password.clone(),
    });
    let ask = |door: Door| async move { ask(&door, &sentinel.master, deadline).await };
    let mut asked: FuturesUnordered<_> = waiting.next().map(ask).into_iter().collect();
    let mut troubles = Vec::new();
    let mut is_known = false;
    while !asked.is_empty() {
        let answer = time::timeout(HEAD_START, asked.next()).await;
        match answer {
            Ok(Some(Ok(server))) if !tried.contains(&server) => return Ok(Some(server)),
            Ok(Some(Ok(_))) => is_known = true,
            Ok(Some(Err(trouble))) => troubles.push(trouble),
            Ok(None) | Err(_) => {}
        }
        asked.extend(waiting.next().map(ask));
    }
    if is_known {
        return Ok(None);
    }
    Err(most_telling(troubles, sentinel))
}

/// Of several Sentinels that were of no use, returns what the most talkative one had to say.
fn most_telling(mut troubles: Vec<Trouble>, sentinel: &Sentinel) -> Trouble {
    let has_spoken = |trouble: &Trouble| {
        let problem = trouble.problem();
        !matches!(
            problem,
            Problem::RefusedConnection | Problem::Silent(_) | Problem::SilentInTls(_)
        )
    };
    if let Some(index) = troubles.iter().position(has_spoken) {
        return troubles.swap_remove(index);
    }
    let texts: Vec<String> = troubles.iter().map(Trouble::to_string).collect();
    let whom = format!("the master {}", sentinel.master);
    Trouble::new(whom, Problem::NoWay(texts.join(", ")))
}

async fn ask(door: &Door, master: &str, deadline: Deadline) -> Result<Server, Trouble> {
    let mut stream = door.connect(deadline).await?;
    let mut question = door.login();
    question
        .cmd("SENTINEL")
        .arg("get-master-addr-by-name")
        .arg(master);
    let answers = door.exchange(&mut stream, &question, deadline).await?;
    let answer = door.next(&mut door.check_login(answers)?)?;
    match answer {
        Value::Nil => Err(door.trouble(Problem::UnknownMaster(master.to_owned()))),
        Value::ServerError(error) => Err(match door.meaning(&error) {
            trouble if matches!(trouble.problem(), Problem::Said(_)) => {
                door.trouble(Problem::NotSentinel)
            }
            trouble => trouble,
        }),
        answer => match from_redis_value::<(String, u16)>(answer) {
            Ok((host, port)) => Ok(Server { host, port }),
            Err(_) => Err(door.trouble(Problem::Strange)),
        },
    }
}

fn password(sentinel: &Sentinel) -> Result<Option<Secret>, Trouble> {
    let Some(path) = &sentinel.password_file else {
        return Ok(None);
    };
    // Others go on meanwhile, and would wait with us for a pipe.
    let read = regular_file(path).and_then(|bytes| Secret::read(&bytes[..]));
    read.map(Some).map_err(|error| {
        let problem = Problem::File(crate::board::net::failure::reason(&error));
        Trouble::new(path.display(), problem)
    })
}
