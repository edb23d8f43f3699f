"""SIGHUP: the configuration is read again, and no container notices."""

from __future__ import annotations

import signal

from integration.rig.manifests import pod
from integration.rig.ports import free_port


def test_a_good_and_a_bad_configuration(agent):
    a = agent().start()
    a.put("web", pod("web"))
    [container] = a.wait_running("web")
    rooms, port = a.rooms(), free_port()

    a.configure({"readOnlyPort": port})
    a.process.send_signal(signal.SIGHUP)
    a.wait(lambda: _answers(a), 20, "the new read-only port answers")
    assert f"→ {port}" in a.log.read_text()
    assert a.rooms()["supervisor"] == rooms["supervisor"] and a.rooms()["pods"] != rooms["pods"]

    rooms, good = a.rooms(), a.config_file.read_text()
    a.config_file.write_text("kind: KubeletConfiguration\nmaxPods: [")
    a.process.send_signal(signal.SIGHUP)
    a.wait(lambda: "going on with the old one" in a.log.read_text(), 20, "the log says that it was refused")
    assert a.rooms() == rooms

    a.config_file.write_text(good)
    a.put("second", pod("second"))
    a.wait_running("second")
    assert a.wait_running("web") == [container]
    assert a.container_status("web")["restartCount"] == 0


def _answers(agent) -> bool:
    try:
        return bool(agent.get("/pods", port="readOnlyPort")[0] == 200)
    except OSError:
        return False
