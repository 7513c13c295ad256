//! What postings of Octavia say to people: which flow it is, and what it is about.
//!
//! Octavia names a job `FACTORY-UUID`, after the function that makes its flow and the flow's own
//! record, and says what the flow is about at another place in each kind of posting.

use std::borrow::Cow;

use serde_json::Value;

use super::Job;

const UUID: usize = 36;

/// Returns the flow that a name of a job of Octavia says, as in `create_load_balancer`; none for the
/// names of others.
pub(crate) fn flow(name: &str) -> Option<&str> {
    Some(parts(name)?.0)
}

/// Returns the uuid of the record of its flow, which the name of a job of Octavia ends with.
pub(crate) fn flow_uuid(name: &str) -> Option<&str> {
    Some(parts(name)?.1)
}

fn parts(name: &str) -> Option<(&str, &str)> {
    let (factory, uuid) = name.split_at_checked(name.len().checked_sub(UUID)?)?;
    let is_uuid = uuid.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let flow = factory.strip_suffix("_flow-").filter(|_| is_uuid)?;
    let flow = flow.strip_prefix("get_").unwrap_or(flow);
    (!flow.is_empty()).then_some((flow, uuid))
}

/// Returns the id of the load balancer that a job is about, if its posting says so and was fetched.
pub(crate) fn load_balancer(job: &Job) -> Option<Cow<'_, str>> {
    find(
        job,
        &[
            "/store/loadbalancer_id",
            "/store/loadbalancer/loadbalancer_id",
            "/store/amphora/load_balancer_id",
        ],
    )
}

/// Returns the id of the amphora that a job is about, if its posting says so and was fetched.
pub(crate) fn amphora(job: &Job) -> Option<Cow<'_, str>> {
    find(job, &["/store/amphora_id", "/store/amphora/id"])
}

fn find<'a>(job: &'a Job, places: &[&str]) -> Option<Cow<'a, str>> {
    fn find_in<'a>(details: &'a Value, places: &[&str]) -> Option<&'a str> {
        let mut found = places.iter().filter_map(|place| details.pointer(place));
        found.find_map(Value::as_str)
    }
    flow(&job.name)?;
    match job.details()? {
        Cow::Borrowed(details) => find_in(details, places).map(Cow::Borrowed),
        Cow::Owned(details) => find_in(&details, places).map(|it| it.to_owned().into()),
    }
}

/// Returns the name by which people know a job of Octavia: its flow, and what that is about as far as
/// its posting says.
pub(crate) fn title(job: &Job) -> Option<String> {
    let flow = flow(&job.name)?;
    let start = |id: &str| id.chars().take(8).collect::<String>();
    let target = match (amphora(job), load_balancer(job)) {
        (Some(amphora), _) => format!(" amphora {}", start(&amphora)),
        (None, Some(balancer)) => format!(" lb {}", start(&balancer)),
        (None, None) => String::new(),
    };
    Some(format!("{flow}{target}"))
}

#[cfg(test)]
mod tests {
    use super::flow;

    #[test]
    fn only_names_that_octavia_gives_are_read() {
        let uuid = "31211ba6-5368-40d3-aaab-065d316bae66";
        for (factory, said) in [
            (
                "get_create_load_balancer_flow-",
                Some("create_load_balancer"),
            ),
            ("cert_rotate_amphora_flow-", Some("cert_rotate_amphora")),
            ("get_failover_LB_flow-", Some("failover_LB")),
            ("get_create_load_balancer_flow", None),
            ("create_load_balancer-", None),
            ("get__flow-", None),
            ("_flow-", None),
            ("", None),
        ] {
            assert_eq!(flow(&format!("{factory}{uuid}")), said, "{factory}");
        }
        for name in [
            "get_create_load_balancer_flow-31211ba6",
            "ä_flow-",
            "",
            &"ä".repeat(36),
        ] {
            assert_eq!(flow(name), None, "{name}");
        }
        let not_hex = uuid.replace('b', "x");
        assert_eq!(flow(&format!("get_create_pool_flow-{not_hex}")), None);
    }
}
