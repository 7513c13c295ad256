//! Shared test support: environments, processes, servers and proxies.

#[macro_use]
mod macros;

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) mod databases;
pub(crate) mod env;
pub(crate) mod history;
pub(crate) mod manager;
pub(crate) mod needs;
pub(crate) mod octavia;
pub(crate) mod process;
pub(crate) mod proxy;
pub(crate) mod scenes;
pub(crate) mod schema;
pub(crate) mod servers;
pub(crate) mod tmux;

#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use self::databases::Database;
pub(crate) use self::{
    env::{
        Env, Invocation, Outcome, Running, SOON, assert_contains, column, comes_true, copy_program,
        json_lines, members, stays, texts, wait_until, words,
    },
    history::{Act, Answer, By, History, How, Sight, What},
    manager::Manager,
    needs::is_full,
    process::Tag,
    proxy::{Proxy, ProxyMode},
    scenes::{play, play_on},
    servers::{Authority, Host, Identity, Location, Peer, Server, ZooKeeper, python},
    tmux::Pane,
};
