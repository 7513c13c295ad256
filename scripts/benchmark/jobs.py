"""The jobs on the test boards."""

import itertools
import json

from processes import output

#: Approximate size of a posting in bytes.
SIZE = 300

#: Pads a posting of TaskFlow on Redis to that size.
PADDING = "x" * 100

CHUNK = 1000


def details(number):
    return {"lb_id": f"{number:032x}", "padding": PADDING}


def write(path, count, command=None):
    """Writes the lines of a bulk post: plain jobs, or jobs that run a command."""
    with open(path, "w") as lines:
        for number in range(count):
            what = {"command": command} if command else details(number)
            lines.write(json.dumps({"name": f"job-{number}", "details": what}) + "\n")
    return path


def post(bench, url, count, command=None):
    path = write(bench.path("fill.jsonl"), count, command)
    bench.output("--board", url, "post", "-q", "--from", path)


def claim_half_on_redis(bench, redis, name):
    """Gives every other job an owner, like TaskFlow's claims."""
    client = redis.client
    fields = [field.decode() for field in client.hkeys(f"{name}:listings")]
    bench.output("--board", redis.url(name), "claim", fields[0], "--who", "worker-0")
    modified = client.get(f"{name}:{fields[0]}.last_modified")
    for chunk in chunks(fields[2::2]):
        with client.pipeline(transaction=False) as pipe:
            for field in chunk:
                pipe.set(f"{name}:{field}.owned", f"worker-{hash(field) % 100}")
                pipe.set(f"{name}:{field}.last_modified", modified)
            pipe.execute()


def claim_half_on_zookeeper(zookeeper, name):
    """Gives every other job a lock, like TaskFlow's claims."""
    folder = f"/{name}/jobs"
    nodes = [node for node in zookeeper.client.get_children(folder) if node.startswith("job")]
    for chunk in chunks(nodes[::2]):
        lock = json.dumps({"owner": "worker-1"}).encode()
        calls = [zookeeper.client.create_async(f"{folder}/{node}.lock", lock, ephemeral=True) for node in chunk]
        for call in calls:
            call.get()


def claim_half_on_embedded(path):
    statement = "UPDATE job SET owner = x'776f726b65722d31', modified_on = created_on WHERE sequence % 2"
    output(["sqlite3", path, statement])


def chunks(items):
    items = iter(items)
    while chunk := list(itertools.islice(items, CHUNK)):
        yield chunk
