//! The paths of all nodes of a board: those that TaskFlow computes, and ours.

use std::{
    fmt::{Display, Write as _},
    sync::LazyLock,
};

use percent_encoding::percent_decode_str;
use regex::Regex;
use uuid::Uuid;

use crate::{
    board::url::zookeeper::is_forbidden,
    job::{JobKey, Location, Owner},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Job,
    TrashedJob,
    /// The owner of a claim; it exists while the job is claimed.
    Lock,
    Sidecar,
    /// An entry of the history, numbered by the server.
    History,
    /// Where the job of a chosen uuid is, which keeps the uuid unique.
    Marker,
    Pause,
    Move,
    Entity,
    /// The status of a conductor, which keeps its name unique.
    ConductorName,
}

impl From<Location> for NodeKind {
    fn from(location: Location) -> Self {
        match location {
            Location::Board => Self::Job,
            Location::Trash => Self::TrashedJob,
            Location::History => Self::History,
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Paths {
    pub(super) board: String,
    trash: String,
    entities: String,
    /// The root of our own nodes; TaskFlow never looks there.
    ours: String,
}

impl Paths {
    /// Expects an absolute path without a trailing slash.
    pub(super) fn of(path: &str) -> Self {
        let (parent, base) = path.rsplit_once('/').unwrap_or(("", path));
        // TaskFlow replaces text anywhere in the path, and peers use the result.
        Self {
            board: path.to_owned(),
            trash: path.replace(base, ".trash"),
            entities: path.replace(base, ".entities"),
            ours: format!("{parent}/.jobboard/{base}"),
        }
    }

    pub(super) fn parent(&self) -> &str {
        let (parent, _) = self.board.rsplit_once('/').unwrap_or_default();
        if parent.is_empty() { "/" } else { parent }
    }

    pub(super) fn our_root(&self) -> &str {
        self.ours.rsplit_once('/').unwrap_or_default().0
    }

    /// Returns the board at a sibling node, if both would share a trash.
    pub(super) fn sibling(&self, name: &str) -> Option<Self> {
        let path = format!("{}/{name}", self.parent().trim_end_matches('/'));
        let belongs_to_server = path == "/zookeeper";
        let other = Self::of(&path);
        let is_other = !name.starts_with('.') && other.board != self.board && !belongs_to_server;
        let shares = || other.directory(Location::Trash) == self.directory(Location::Trash);
        (is_other && shares()).then_some(other)
    }

    pub(super) fn node(&self, kind: NodeKind, name: impl Display) -> String {
        let (board, trash, entities) = (&self.board, &self.trash, &self.entities);
        let ours = &self.ours;
        match kind {
            NodeKind::Job => format!("{board}/{name}"),
            NodeKind::TrashedJob => format!("{board}/{name}").replace(board, trash),
            NodeKind::Lock => format!("{board}/{name}{LOCK}"),
            NodeKind::Sidecar => format!("{ours}/jobs/{name}"),
            NodeKind::History => format!("{ours}/past/{name}"),
            NodeKind::Marker => format!("{ours}/unique/{name}"),
            NodeKind::Pause => format!("{ours}/paused/{}", escape(&name.to_string())),
            NodeKind::Move => format!("{ours}/moves/{}", escape(&name.to_string())),
            NodeKind::Entity => format!("{entities}/conductor/{}", escape(&name.to_string())),
            NodeKind::ConductorName => format!("{ours}/conductors/{}", escape(&name.to_string())),
        }
    }

    pub(super) fn directory(&self, kind: impl Into<NodeKind>) -> String {
        let mut node = self.node(kind.into(), JOB);
        node.truncate(node.rfind('/').unwrap_or(node.len()));
        node
    }

    pub(super) fn job(&self, location: Location, key: &JobKey) -> String {
        self.node(location.into(), key)
    }

    pub(super) fn lock(&self, key: &JobKey) -> String {
        self.node(NodeKind::Lock, key)
    }

    pub(super) fn side(&self, key: &JobKey) -> String {
        self.node(NodeKind::Sidecar, key)
    }

    pub(super) fn key_of(&self, location: Location, child: &str) -> Option<JobKey> {
        let key = match location {
            Location::Board | Location::History => JobKey::new(child),
            Location::Trash => self.trashed_key(child),
        };
        is_job(&key.text()).then_some(key)
    }

    fn trashed_key(&self, child: &str) -> JobKey {
        // If the path is a prefix of the job's name, TaskFlow replaced that too.
        let (board, trash) = (&self.board[1..], self.trash.trim_start_matches('/'));
        let is_replaced = |key: &JobKey| {
            let node = self.job(Location::Trash, key);
            node.strip_suffix(child)
                .is_some_and(|directory| directory.ends_with('/'))
        };
        let whole = child.strip_prefix(trash).filter(|_| !board.contains('/'));
        whole
            .map(|rest| JobKey::new(format!("{board}{rest}")))
            .filter(is_replaced)
            .unwrap_or_else(|| JobKey::new(child))
    }

    pub(super) fn length(&self) -> usize {
        let (key, uuid) = (numbered(0), Uuid::nil());
        let [lock, side] = [self.lock(&key), self.side(&key)].map(|path| path.len());
        lock + 2 * side + self.node(NodeKind::Marker, uuid).len()
    }
}

/// The beginning of a job's name; the server appends the number of a new job.
pub(super) const JOB: &str = "job";
const LOCK: &str = ".lock";

const PYTHONS_DIGITS: usize = 4300;

/// Whether TaskFlow takes a child for a job.
pub(super) fn is_job(child: &str) -> bool {
    let is_foreign = |character: char| character == '/' || is_forbidden(character);
    child.starts_with(JOB) && !child.ends_with(LOCK) && !child.contains(is_foreign)
}

pub(super) fn locked_by(child: &str) -> Option<JobKey> {
    let job = child.strip_suffix(LOCK)?;
    is_job(job).then(|| JobKey::new(job))
}

pub(super) fn number_of(key: &JobKey) -> Option<i64> {
    key.text().strip_prefix(JOB)?.parse().ok()
}

/// TaskFlow accepts any number that Python's `int` does; a name without a number aborts its listings.
pub(super) fn is_numbered(key: &JobKey) -> bool {
    static NUMBER: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"^\s*[+-]?\d+(_\d+)*\s*$").ok());
    let is_odd = |number: &str| {
        let pattern = NUMBER.as_ref();
        let digits = number.chars().filter(|character| character.is_numeric());
        digits.count() <= PYTHONS_DIGITS && pattern.is_some_and(|it| it.is_match(number))
    };
    // Nearly every name comes from the server.
    number_of(key).is_some() || key.text().strip_prefix(JOB).is_some_and(is_odd)
}

pub(super) fn numbered(number: i64) -> JobKey {
    JobKey::new(format!("{JOB}{number:010}"))
}

/// Encodes any text as one node name; the node holds the text.
pub(super) fn escape(name: &str) -> String {
    if name == "." || name == ".." {
        return name.replace('.', "%2E");
    }
    let is_plain = |character: char| !matches!(character, '%' | '/') && !is_forbidden(character);
    let mut escaped = String::with_capacity(name.len());
    for character in name.chars() {
        if is_plain(character) {
            escaped.push(character);
            continue;
        }
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

/// Reverses [`escape`].
pub(super) fn unescape(child: &str) -> String {
    percent_decode_str(child).decode_utf8_lossy().into_owned()
}

pub(super) fn conductor_of(entity: &str) -> &str {
    // The name may contain an `@`.
    entity.rsplit_once('@').map_or(entity, |(name, _)| name)
}

pub(super) fn owner_of_entity(child: &str) -> Owner {
    Owner::from_stored(conductor_of(&unescape(child)))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn conductor_name_survives_its_node_name() {
        let paths = Paths::of("/jobs");
        for name in ["c1", "a@b", "50%/%41", "..", "\u{85}ü\u{1}"] {
            let node = paths.node(NodeKind::Entity, format!("{name}@host:1"));
            let (_, child) = node.rsplit_once('/').unwrap();
            assert_eq!(owner_of_entity(child).text(), name, "{node}");
        }
    }

    /// Paths as TaskFlow computes them.
    const COMPUTED: &str = include_str!("../wire/fixtures/zk_paths.json");

    #[test]
    fn paths_equal_those_of_taskflow() {
        let computed: Value = serde_json::from_str(COMPUTED).unwrap();
        let mut tried = 0;
        for vector in computed["vectors"].as_array().unwrap() {
            let text = |name: &str| vector[name].as_str().unwrap().to_owned();
            let path = text("path");
            // URLs cannot contain the other paths.
            let is_plain = path.len() > 1 && !path.ends_with('/') && !path.contains("//");
            if !path.starts_with('/') || !is_plain {
                continue;
            }
            let paths = Paths::of(&path);
            let key = JobKey::new("job0000000007");
            assert_eq!(paths.job(Location::Board, &key), text("job_path"));
            assert_eq!(paths.job(Location::Trash, &key), text("trashed_job_path"));
            assert_eq!(
                paths.directory(NodeKind::Entity),
                text("entity_path") + "/conductor"
            );
            for location in Location::LIVE {
                let node = paths.job(location, &key);
                let child = node
                    .strip_prefix(&(paths.directory(location) + "/"))
                    .unwrap();
                assert_eq!(paths.key_of(location, child), Some(key.clone()), "{node}");
            }
            tried += 1;
        }
        assert_eq!(tried, 12);
    }

    #[test]
    fn board_path_that_prefixes_job_names_changes_the_trash_names() {
        for (path, trashed) in [
            ("/j", "/.trash/.trashob0000000007"),
            ("/job00", "/.trash/.trash00000007"),
            ("/job1", "/.trash/job0000000007"),
        ] {
            let (paths, key) = (Paths::of(path), JobKey::new("job0000000007"));
            // Another number with the same prefix.
            let late = JobKey::new("job1000000000");
            let node = paths.job(Location::Trash, &late);
            let child = node.strip_prefix("/.trash/").unwrap();
            assert_eq!(paths.key_of(Location::Trash, child), Some(late), "{path}");
            assert_eq!(paths.job(Location::Trash, &key), trashed);
            let child = trashed.strip_prefix("/.trash/").unwrap();
            assert_eq!(paths.key_of(Location::Trash, child), Some(key));
        }
    }

    #[test]
    fn every_name_has_its_own_node() {
        let paths = Paths::of("/taskflow/jobs");
        let names = [
            "a", ".", "..", "%2E", "a/b", "a%2Fb", "a\u{1}", "a%01", "\u{e000}",
        ];
        let nodes: std::collections::HashSet<_> = (names
            .iter()
            .map(|name| paths.node(NodeKind::ConductorName, name)))
        .collect();
        assert_eq!(nodes.len(), names.len());
        for node in nodes {
            let name = node
                .strip_prefix("/taskflow/.jobboard/jobs/conductors/")
                .unwrap();
            let is_plain = !name.contains(['/', '\u{1}', '\u{e000}']) && !name.starts_with('.');
            assert!(is_plain, "{node}");
        }
    }

    #[test]
    fn jobs_are_distinguished_from_other_nodes() {
        let paths = Paths::of("/taskflow/jobs");
        for (child, number) in [
            ("job0000000012", Some(12)),
            ("job12", Some(12)),
            ("job-2147483648", Some(-2_147_483_648)),
            ("jobXYZ", None),
        ] {
            let key = paths.key_of(Location::Board, child).unwrap();
            assert_eq!(number_of(&key), number, "{child}");
            assert_eq!(is_numbered(&key), number.is_some(), "{child}");
        }
        let hostile = ["job/../x", "job\u{1}", "job\u{e000}", "job\u{fff0}"];
        let others = ["job0000000012.lock", "other", ".jobboard", ""];
        for child in hostile.into_iter().chain(others) {
            assert_eq!(paths.key_of(Location::Board, child), None, "{child}");
        }
        let locked = locked_by("job0000000012.lock");
        assert_eq!(locked, Some(numbered(12)));
        assert_eq!(locked_by("job0000000012"), None);
        assert_eq!(locked_by("other.lock"), None);
        assert_eq!(numbered(-5).text(), "job-000000005");
    }
}
