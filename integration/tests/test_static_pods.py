"""Manifests as operators treat them: backups beside them, half-written ones, capitals in the node's name."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from integration.rig.agent import Agent
from integration.rig.manifests import container, pod, says

LISTING = {"fileCheckFrequency": "1s"}


@contextmanager
def watching(look: Callable[[], object]) -> Iterator[list[object]]:
    """Collect what `look` gives, again and again, while the block runs."""
    seen: list[object] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            seen.append(look())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        done.set()
        thread.join()


def listed_twice(agent: Agent, mark: str) -> None:
    """Wait until the agent has certainly listed its manifests after now: it runs a pod that came now."""
    for turn in ("a", "b"):
        agent.put(f"{mark}-{turn}", pod(f"{mark}-{turn}"))
        agent.wait_running(f"{mark}-{turn}")
        agent.remove(f"{mark}-{turn}")
        agent.wait_gone(f"{mark}-{turn}")


def test_a_backup_beside_the_manifest(agent):
    """kubernetes/kubernetes#136962: two files claim one pod name."""
    a = agent(config=LISTING).start()
    a.put("twin", pod("twin", says("CURRENT"), terminationGracePeriodSeconds=3))
    [first] = a.wait_running("twin")
    (a.manifests / ".twin.yaml.swp").write_text(str(pod("twin", says("SWAP"))))
    (a.manifests / "archive").mkdir()
    a.put("twin", pod("twin", says("ARCH")), "archive/twin.yaml")
    listed_twice(a, "after-decoys")
    assert [c.id for c in a.cri.containers(pod=a.full_name("twin"))] == [first]

    def look() -> tuple[int, int]:
        named = [p for p in a.pods() if p["metadata"]["name"] == a.full_name("twin")]
        return len(a.cri.containers(pod=a.full_name("twin"), running=True)), len(named)

    with watching(look) as seen:
        a.put("twin", pod("twin", says("OLD")), "twin.yaml.bak")
        listed_twice(a, "with-backup")
        shown = a.cli("pods").stdout
        a.remove("twin", "twin.yaml.bak")
        listed_twice(a, "without-backup")
    assert max(running for running, _ in seen) == 1 and max(named for _, named in seen) <= 1
    [last] = a.wait_running("twin")
    assert a.output(last).startswith("CURRENT")
    assert "twin.yaml.bak" in shown and "twin.yaml" in shown, shown
    both = re.compile(r"twin\.yaml\.bak.*twin\.yaml(?!\.bak)")
    assert any(both.search(line) for line in a.log.read_text().splitlines()), "no log line names both files"


def test_a_manifest_caught_half_written(agent):
    """kubernetes/kubernetes#40331: the broken file is dropped, the others go on, and it comes back."""
    a = agent(config=LISTING).start()
    text = {word: _yaml("half", word) for word in ("V1", "V2")}
    a.put("calm", _yaml("calm", "CALM"))
    a.put("half", text["V1"])
    [calm] = a.wait_running("calm")
    a.wait_running("half")
    (a.manifests / "half.yaml").write_text(text["V1"][:120])
    a.wait_gone("half", 20)
    a.wait(lambda: a.pod("half") is None, 10, "half is gone from /pods")
    a.wait(lambda: "half.yaml" in a.log.read_text(), 10, "a log line names half.yaml")
    assert "half.yaml" in a.cli("pods").stdout
    with open(a.manifests / "half.yaml", "w") as file:
        file.write(text["V2"][:120])
        file.flush()
        listed_twice(a, "meanwhile")
        file.write(text["V2"][120:])
    [half] = a.wait_running("half")
    a.wait(lambda: a.output(half).strip() == "V2", 10, "it prints V2")
    assert [c.id for c in a.cri.containers(pod=a.full_name("calm"))] == [calm]
    assert a.container_status("calm")["restartCount"] == 0


def _yaml(name: str, word: str) -> str:
    return f"""apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: default}}
spec:
  terminationGracePeriodSeconds: 3
  containers:
  - name: c
    image: docker.io/library/busybox:latest
    imagePullPolicy: IfNotPresent
    command: [sh, -c, "trap 'exit 0' TERM; echo {word}; while :; do sleep 1; done"]
"""


def test_an_edit_replaces_the_pod_and_a_file_moved_away_and_back_starts_it_again(agent):
    a = agent().start()
    a.put("web", pod("web", says("ONE")))
    [one] = a.wait_running("web")
    a.put("web", pod("web", says("TWO")))
    a.wait(lambda: [a.output(i) for i in a.wait_running("web")] == ["TWO\n"], 30, "the edited pod runs")
    assert one not in a.wait_running("web")
    aside = a.home / "aside.yaml"
    (a.manifests / "web.yaml").rename(aside)
    a.wait_gone("web")
    aside.rename(a.manifests / "web.yaml")
    [again] = a.wait_running("web")
    a.wait(lambda: a.output(again) == "TWO\n", 10, "its output")


HOSTS = """# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
{ip}\tweb-edge-01
"""
ALIASES = """
# Entries added by HostAliases.
192.0.2.10\ta.invalid\tb.invalid
192.0.2.11\tc.invalid
"""


def test_a_node_name_in_capitals_and_the_hosts_file(agent):
    """kubernetes/kubernetes#59849."""
    assert agent(node="  ").start(wait=False).wait_exit(30) != 0
    a = agent(node=" EDGE-01 ").start()
    aliases = [{"ip": "192.0.2.10", "hostnames": ["a.invalid", "b.invalid"]},
               {"ip": "192.0.2.11", "hostnames": ["c.invalid"]}]
    long = "n" * 62 + "-x"
    a.put("web", pod("web", hostAliases=aliases))
    a.put("long", pod(long))
    a.put("web2", pod("web2", container(), hostAliases=aliases, hostNetwork=True))
    [web], [named], [host] = a.wait_running("web"), a.wait_running(long), a.wait_running("web2")
    a.wait(lambda: a.status("web").get("podIP"), 10, "an address of web")
    pods = a.pods()
    assert sorted(p["metadata"]["name"] for p in pods) == sorted(f"{n}-edge-01" for n in ("web", long, "web2"))
    assert {p["spec"]["nodeName"] for p in pods} == {"edge-01"}
    assert a.cri.exec(web, "hostname").out.strip() == "web-edge-01"
    assert a.cri.exec(named, "hostname").out.strip() == "n" * 62
    assert a.cri.exec(web, "cat", "/etc/hosts").out == HOSTS.format(ip=a.status("web")["podIP"]) + ALIASES
    with open("/etc/hosts") as own:
        expected = "# Kubernetes-managed hosts file (host network).\n" + own.read() + ALIASES
    assert a.cri.exec(host, "cat", "/etc/hosts").out == expected
