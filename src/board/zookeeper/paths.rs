//! The names of all nodes that a board has on a server, as TaskFlow computes them and ours.

use crate::job::{JobKey, Shelf};

/// Names the nodes of one board.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    board: String,
    trash: String,
    entities: String,
    /// Where we keep what TaskFlow has no place for; its readers never look there.
    ours: String,
}

impl Paths {
    /// Names the nodes of the board at an absolute path without a slash at its end.
    pub(super) fn of(path: &str) -> Self {
        let (parent, base) = path.rsplit_once('/').unwrap_or(("", path));
        // TaskFlow replaces text, wherever in the path it is; peers look where that leads.
        Self {
            board: path.to_owned(),
            trash: path.replace(base, ".trash"),
            entities: path.replace(base, ".entities"),
            ours: format!("{parent}/.jobboard/{base}"),
        }
    }

    /// The node that all jobs are children of.
    pub(super) fn board(&self) -> &str {
        &self.board
    }

    /// What the number of a new job is appended to.
    pub(super) fn new_job(&self) -> String {
        format!("{}/{JOB}", self.board)
    }

    /// The node of a job on a shelf.
    pub(super) fn job(&self, shelf: Shelf, key: &JobKey) -> String {
        let path = format!("{}/{key}", self.board);
        match shelf {
            Shelf::Board => path,
            Shelf::Trash => path.replace(&self.board, &self.trash),
        }
    }

    /// The node that says who holds a job; it is there while somebody does.
    pub(super) fn lock(&self, key: &JobKey) -> String {
        format!("{}/{key}{LOCK}", self.board)
    }

    /// The node whose children are the jobs of a shelf.
    pub(super) fn folder(&self, shelf: Shelf) -> String {
        let any = self.job(shelf, &JobKey::new(JOB));
        any.rsplit_once('/')
            .map_or(any.clone(), |(folder, _)| folder.to_owned())
    }

    /// Returns the job that a child of a shelf's folder is, if it is one.
    pub(super) fn key_of(&self, shelf: Shelf, child: &str) -> Option<JobKey> {
        let key = match shelf {
            Shelf::Board => JobKey::new(child),
            Shelf::Trash => self.trashed_key(child),
        };
        is_job(key.as_str()).then_some(key)
    }

    fn trashed_key(&self, child: &str) -> JobKey {
        // Where the path is the beginning of every job's own name, that was replaced as well.
        let (board, trash) = (&self.board[1..], self.trash.trim_start_matches('/'));
        let is_replaced = !board.contains('/') && JOB_NODE.starts_with(board);
        match child.strip_prefix(trash).filter(|_| is_replaced) {
            Some(rest) => JobKey::new(format!("{board}{rest}")),
            None => JobKey::new(child),
        }
    }

    /// The folder of the records beside jobs.
    pub(super) fn sides(&self) -> String {
        format!("{}/jobs", self.ours)
    }

    pub(super) fn side(&self, key: &JobKey) -> String {
        format!("{}/jobs/{key}", self.ours)
    }

    /// The folder of the markers that keep uuids unique which somebody has chosen.
    pub(super) fn markers(&self) -> String {
        format!("{}/unique", self.ours)
    }

    pub(super) fn marker(&self, uuid: &str) -> String {
        format!("{}/unique/{uuid}", self.ours)
    }

    /// The folder in which conductors enter themselves.
    pub(super) fn entities(&self) -> String {
        format!("{}/conductor", self.entities)
    }

    pub(super) fn entity(&self, name: &str) -> String {
        format!("{}/conductor/{}", self.entities, escape(name))
    }

    /// The folder of the nodes that keep the names of conductors unique.
    pub(super) fn names(&self) -> String {
        format!("{}/conductors", self.ours)
    }

    pub(super) fn name(&self, name: &str) -> String {
        format!("{}/conductors/{}", self.ours, escape(name))
    }
}

/// What the node of every job begins with.
const JOB: &str = "job";
/// The beginning of the nodes of all jobs that have a number of ten digits.
const JOB_NODE: &str = "job0000000000";
const LOCK: &str = ".lock";

/// Whether a child is a job, as TaskFlow tells.
fn is_job(child: &str) -> bool {
    let is_foreign = |character: char| character == '/' || character.is_control();
    child.starts_with(JOB) && !child.ends_with(LOCK) && !child.contains(is_foreign)
}

/// Returns the job whose lock a child is.
pub(super) fn locked_by(child: &str) -> Option<JobKey> {
    let job = child.strip_suffix(LOCK)?;
    is_job(job).then(|| JobKey::new(job))
}

/// Returns the number that the node of a job has, if it is one.
pub(super) fn number_of(key: &JobKey) -> Option<i64> {
    key.as_str().strip_prefix(JOB)?.parse().ok()
}

/// Returns the job of a number, as the server names it.
pub(super) fn numbered(number: i64) -> JobKey {
    JobKey::new(format!("{JOB}{number:010}"))
}

/// Makes one node's name of any text; the text is in the node.
fn escape(name: &str) -> String {
    name.replace('%', "%25").replace('/', "%2F")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// What TaskFlow made of some paths.
    const COMPUTED: &str = include_str!("../wire/fixtures/zk_paths.json");

    #[test]
    fn nodes_are_where_taskflow_looks_for_them() {
        let computed: Value = serde_json::from_str(COMPUTED).unwrap();
        let mut tried = 0;
        for vector in computed["vectors"].as_array().unwrap() {
            let text = |name: &str| vector[name].as_str().unwrap().to_owned();
            let path = text("path");
            // The others are no paths that a URL could have.
            let is_plain = path.len() > 1 && !path.ends_with('/') && !path.contains("//");
            if !path.starts_with('/') || !is_plain {
                continue;
            }
            let paths = Paths::of(&path);
            let key = JobKey::new("job0000000007");
            assert_eq!(paths.job(Shelf::Board, &key), text("job_path"));
            assert_eq!(paths.job(Shelf::Trash, &key), text("trashed_job_path"));
            assert_eq!(paths.entities(), text("entity_path") + "/conductor");
            for shelf in [Shelf::Board, Shelf::Trash] {
                let node = paths.job(shelf, &key);
                let child = node.strip_prefix(&(paths.folder(shelf) + "/")).unwrap();
                assert_eq!(paths.key_of(shelf, child), Some(key.clone()), "{node}");
            }
            tried += 1;
        }
        assert_eq!(tried, 12);
    }

    #[test]
    fn a_path_that_begins_every_job_changes_the_names_in_the_trash() {
        for (path, trashed) in [
            ("/j", "/.trash/.trashob0000000007"),
            ("/job00", "/.trash/.trash00000007"),
            ("/job1", "/.trash/job0000000007"),
        ] {
            let (paths, key) = (Paths::of(path), JobKey::new("job0000000007"));
            assert_eq!(paths.job(Shelf::Trash, &key), trashed);
            let child = trashed.strip_prefix("/.trash/").unwrap();
            assert_eq!(paths.key_of(Shelf::Trash, child), Some(key));
        }
    }

    #[test]
    fn jobs_are_told_from_what_is_beside_them() {
        let paths = Paths::of("/taskflow/jobs");
        for (child, number) in [
            ("job0000000012", Some(12)),
            ("job12", Some(12)),
            ("job-2147483648", Some(-2_147_483_648)),
            ("jobXYZ", None),
        ] {
            let key = paths.key_of(Shelf::Board, child).unwrap();
            assert_eq!(number_of(&key), number, "{child}");
        }
        for child in ["job0000000012.lock", "other", ".jobboard", ""] {
            assert_eq!(paths.key_of(Shelf::Board, child), None, "{child}");
        }
        let locked = locked_by("job0000000012.lock");
        assert_eq!(locked, Some(numbered(12)));
        assert_eq!(locked_by("job0000000012"), None);
        assert_eq!(locked_by("other.lock"), None);
        assert_eq!(numbered(-5).as_str(), "job-000000005");
    }
}
