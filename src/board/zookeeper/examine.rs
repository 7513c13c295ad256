//! Problems of a board on ZooKeeper: unreachable servers, missing rights, stray nodes.

use zookeeper_client::{Acl, Error, Permission};

use super::{
    board_session::BoardSession,
    link::nodes::{Node, READING, ReadLimit},
    strays::SidecarRead,
};
use crate::{
    board::{
        BoardError, Result,
        examine::{Access, Examined, Part},
    },
    problem::{Code, Fix, Problem},
    suggest::Suggestion,
};

const RIGHTS: [(Permission, &str, &str); 3] = [
    (Permission::READ, "read", "listing jobs"),
    (Permission::CREATE, "create", "posting and claiming jobs"),
    (Permission::DELETE, "delete", "settling and releasing jobs"),
];

const LETTERS: [(Permission, char); 5] = [
    (Permission::CREATE, 'c'),
    (Permission::DELETE, 'd'),
    (Permission::READ, 'r'),
    (Permission::WRITE, 'w'),
    (Permission::ADMIN, 'a'),
];

const MAX_NAMED_NODES: usize = 5;

impl BoardSession<'_> {
    pub(super) async fn examine_part(&self, part: Part) -> Result<Examined> {
        let mut seen = Examined::default();
        match part {
            Part::Connection(access) => {
                for problem in self.client.problems().await {
                    let summary = format!("a server of the board is unreachable: {problem}");
                    let remedy = Fix::elsewhere(Suggestion::of("systemctl restart zookeeper"));
                    seen.add(Problem::new(Code::ServerUnreachable, summary).fixed_by(remedy));
                }
                self.client.look_at_certificates(&mut seen).await;
                self.rights(access, &mut seen).await;
            }
            Part::Server => seen.unseen(
                "the settings of the servers, which ZooKeeper does not report",
                None,
            ),
            Part::Keys { .. } => {}
            Part::Strays => self.stray_nodes(&mut seen).await?,
            Part::History => self.check_history().await?,
        }
        Ok(seen)
    }

    async fn acls(&self, seen: &mut Examined) -> Option<Vec<Acl>> {
        let asked = self.session.client.get_acl(&self.paths.board);
        match self.session.ask(READING, asked).await {
            Ok(Ok((acls, _))) => return Some(acls),
            Ok(Err(Error::NoNode)) => {}
            Ok(Err(error)) => seen.unseen("rights", self.session.refusal(READING, &error)),
            Err(failure) => seen.unseen("rights", BoardError::from(failure)),
        }
        None
    }

    async fn rights(&self, access: Access, seen: &mut Examined) {
        let Some(acls) = self.acls(seen).await else {
            return;
        };
        let path = &self.paths.board;
        let user = self.client.about.user.as_ref();
        let user = user.map(|user| format!("{user}:"));
        let is_ours = |scheme: &str, id: &str| match scheme {
            "world" => true,
            "digest" => user.as_ref().is_some_and(|user| id.starts_with(user)),
            _ => false,
        };
        // Only the server knows the identity behind an address or a certificate.
        let is_plain = |acl: &Acl| matches!(acl.scheme(), "world" | "digest");
        if !acls.iter().all(is_plain) {
            seen.unseen("rights that depend on more than the user name", None);
            return;
        }
        let ours = acls.iter().filter(|acl| is_ours(acl.scheme(), acl.id()));
        let granted = ours.fold(Permission::NONE, |all, acl| all | acl.permission());
        let lacking = RIGHTS.iter().filter(|(right, ..)| !granted.has(*right));
        let is_needed = |right| access == Access::Change || right == Permission::READ;
        let lacking: Vec<_> = lacking.filter(|it| is_needed(it.0)).collect();
        if !lacking.is_empty() {
            let names: Vec<_> = lacking.iter().map(|(_, name, _)| *name).collect();
            let summary = format!("missing rights at {path}: {}", names.join(", "));
            // The command replaces all entries, so it repeats those of other users.
            let scheme = user.as_ref().map_or("world", |_| "digest");
            let is_widened = |acl: &Acl| acl.scheme() == scheme && is_ours(acl.scheme(), acl.id());
            let widened = acls.iter().map(|acl| {
                let letters = LETTERS
                    .iter()
                    .filter(|(right, _)| acl.permission().has(*right) || is_widened(acl));
                let letters: String = letters.map(|(_, letter)| *letter).collect();
                format!("{}:{}:{letters}", acl.scheme(), acl.id())
            });
            let widened = widened.collect::<Vec<_>>().join(",");
            let cli = Suggestion::of("zkCli.sh -server").with([self.client.servers()]);
            let remedy = Fix::elsewhere(match acls.iter().any(is_widened) {
                true => cli.with(["setAcl", path, &widened]),
                false => cli.with(["getAcl", path]),
            });
            let problem = Problem::new(Code::MissingRights, summary).fixed_by(remedy);
            let denied = lacking
                .iter()
                .map(|(_, name, breaks)| format!("{name}: {breaks}"));
            seen.add(denied.fold(problem, |problem, it| problem.seen("denied", it)));
        }
    }

    async fn stray_nodes(&self, seen: &mut Examined) -> Result<()> {
        let found = self.strays(SidecarRead::Names).await?;
        let records = found.records.into_iter().map(|(path, _)| path);
        let strays: Vec<_> = found.locks.into_iter().chain(records).collect();
        // Sidecars of ended jobs are gone by now.
        let is_there = |path: &str, node: Option<Node>| node.map(|_| path.to_owned());
        let room = &mut ReadLimit::default();
        let strays = self.session.read_as(&strays, room, is_there).await?;
        let mut strays: Vec<_> = strays.into_iter().flatten().collect();
        strays.sort_unstable();
        let what = "nodes that belong to no job";
        self.report_nodes(Code::StrayKeys, what, &strays, seen);
        Ok(())
    }

    pub(super) fn report_nodes(
        &self,
        code: Code,
        what: &str,
        nodes: &[String],
        seen: &mut Examined,
    ) {
        if let Some(first) = nodes.first() {
            let each = r#"for node do zkCli.sh -server "$0" delete "$node"; done"#;
            let remedy = Suggestion::of("sh -c").with([each, &self.client.servers()]);
            let remedy = Fix::elsewhere(remedy.with(nodes.iter().take(MAX_NAMED_NODES)));
            let problem = Problem::new(code, format!("{what}: {}", nodes.len()));
            seen.add(problem.fixed_by(remedy).seen("node", first));
        }
    }
}
