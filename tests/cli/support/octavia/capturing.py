"""Writes down one posting of each flow, as it is on a board on ZooKeeper, with what the logbook says of it."""

import json

import postings
import rows

# These have a TLS listener, with made-up keys; the others would repeat them.
WITH_TLS = {
    "create_load_balancer",
    "cascade_delete_load_balancer",
    "create_listener",
    "update_listener",
    "delete_listener",
    "create_pool",
    "create_l7policy",
}


def capture(into):
    client = postings.api_driver().client.worker.jobboard_driver._ensure_client()
    for flow in sorted(postings.FLOWS):
        postings.post(flow, rows.load_balancer(tls=flow in WITH_TLS))
    # Octavia itself makes no amphorae without load balancers any more; there may be such all the same.
    postings.post("failover_amphora", rows.spare())
    lines = []
    for told, path in zip(postings.everything_posted(), postings.paths):
        del told["details"]
        stored = client.get(path)[0].decode()
        told["posting"] = json.loads(stored)
        # So that the very bytes can be had from it.
        assert json.dumps(told["posting"]) == stored
        lines.append(json.dumps(told))
    with open(into, "w") as file:
        file.write("[\n" + ",\n".join(lines) + "\n]\n")
