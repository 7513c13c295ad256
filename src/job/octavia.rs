//! Extracts the flow and its subject from Octavia's postings.
//!
//! Octavia names a job `FACTORY-UUID`, after the function that makes its flow and the flow's record. Each kind of
//! posting stores the subject of the flow in another place.

use std::borrow::Cow;

use serde_json::Value;
use uuid::Uuid;

use super::Job;

const UUID: usize = 36;

/// Returns the flow in the name of an Octavia job, such as `create_load_balancer`.
pub(crate) fn flow(name: &str) -> Option<&str> {
    Some(parts(name)?.0)
}

/// Returns the uuid of the flow's record, the end of an Octavia job's name.
pub(crate) fn flow_uuid(name: &str) -> Option<&str> {
    Some(parts(name)?.1)
}

fn parts(name: &str) -> Option<(&str, &str)> {
    let (factory, uuid) = name.split_at_checked(name.len().checked_sub(UUID)?)?;
    let is_uuid = Uuid::try_parse(uuid).is_ok();
    let flow = factory.strip_suffix("_flow-").filter(|_| is_uuid)?;
    let flow = flow.strip_prefix("get_").unwrap_or(flow);
    (!flow.is_empty()).then_some((flow, uuid))
}

/// Returns the load balancer's id, if the fetched posting contains it.
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

/// Returns the amphora's id, if the fetched posting contains it.
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

/// Returns a readable name for an Octavia job: its flow, and the subject if the posting names it.
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
    fn only_octavia_flow_names_are_recognised() {
        let uuid = "31211ba6-5368-40d3-aaab-065d316bae66";
        for (factory, expected) in [
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
            assert_eq!(flow(&format!("{factory}{uuid}")), expected, "{factory}");
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
