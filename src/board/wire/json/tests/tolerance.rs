//! Nodes read by TaskFlow 6.5, and its results.

use super::{TOLERANCE, bytes_of, list, read};
use crate::{board::wire::posting::Posting, tests::rows};

/// Records that TaskFlow rejects, and their problems.
const REFUSED: &str = "
    priority unknown => unknown priority `X` (valid: VERY_HIGH, HIGH, NORMAL, LOW, VERY_LOW)
    no uuid => the record has no `uuid`
    no name => the record has no `name`
    BOM => the record begins with a byte order mark
    empty object => the record is an empty map, which TaskFlow treats as a removed job
    list root => the record is a list, not a map
    empty data => the record is empty
    not json => the record is truncated
    not utf-8 => the record contains a string that is not UTF-8
";

/// Nodes that TaskFlow cannot handle, since their names have no number.
const NAMED_OTHERWISE: [&str; 2] = ["node jobx", "node other"];

fn is_as_listed(posting: &Posting, listed: &serde_json::Value) {
    assert_eq!(posting.name, listed["name"]);
    assert_eq!(posting.uuid, listed["uuid"]);
    assert_eq!(posting.priority.name(), listed["priority"]);
    assert_eq!(posting.details, Some(listed["details"].clone().into()));
    assert_eq!(posting.problem, None);
}

#[test]
fn exactly_the_jobs_that_taskflow_lists_are_read() {
    let refusals = rows(REFUSED);
    let (mut listed, mut refused) = (0, 0);
    for vector in list(TOLERANCE, "vectors") {
        let case = vector["case"].as_str().unwrap();
        let result = read(&bytes_of(&vector));
        let returned = &vector["iterjobs_ensure_fresh"]["returns"];
        match returned.as_array().and_then(|jobs| jobs.first()) {
            Some(job) => {
                listed += 1;
                is_as_listed(&result.unwrap(), job);
            }
            None if NAMED_OTHERWISE.contains(&case) => {
                assert_eq!(result.unwrap().name, "hand");
            }
            None => {
                refused += 1;
                let problem = result.unwrap_err().to_string();
                assert!(refusals.contains(&[case, &problem]), "{case}: {problem}");
            }
        }
    }
    assert_eq!((listed, refused), (10, refusals.len()));
}
