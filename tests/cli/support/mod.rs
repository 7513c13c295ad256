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
