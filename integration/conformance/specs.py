"""Running upstream's specs against a cluster with one node."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from integration.conformance import outcome
from integration.conformance.outcome import Outcome
from integration.rig import goparts
from integration.rig.cluster import Cluster
from integration.rig.console import RigError, say

_ALONE = "!Serial && !Slow && !Disruptive && !Flaky"
SETS: Mapping[str, str] = {
    "conformance": f"Conformance && (sig-node || sig-storage) && {_ALONE}",
    "node": f"(Conformance || NodeConformance) && (sig-node || sig-storage) && {_ALONE}",
    "all": f"(sig-node || sig-storage) && {_ALONE} && !/Feature:.+/ && !/FeatureGate:.+/",
}
AT_A_TIME = 20  # they mostly wait
_LONGEST = 3600  # s


def run(plane: Cluster, chosen: str, focus: str, folder: Path) -> dict[str, Outcome]:
    """Run a set of specs; what they print goes to `folder`/specs.log. Raises RigError when there is no report."""
    programs, report, log = goparts.ensure_specs(), folder / "report.json", folder / "specs.log"
    folder.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    command = [
        *(programs / "ginkgo", "run", f"--procs={AT_A_TIME}", f"--label-filter={SETS[chosen]}", f"--focus={focus}"),
        *(f"--output-dir={folder}", f"--json-report={report.name}", "--no-color", "--timeout=50m"),
        *(programs / "specs.test", "--"),
        *(f"--kubeconfig={plane.admin}", f"--kubectl-path={plane.programs / 'kubectl'}"),
        *("--provider=local", "--disable-log-dump", "--num-nodes=1"),
    ]
    say(f"the specs run, {AT_A_TIME} at a time; they print to {log}")
    with log.open("wb") as out:
        _await(subprocess.Popen([str(word) for word in command], stdout=out, stderr=out, stdin=subprocess.DEVNULL,
                                cwd=folder, env=_environment(folder), start_new_session=True))
    try:
        return outcome.read(report)
    except (OSError, ValueError) as error:
        raise RigError(f"the specs left no report ({error}):\n{log.read_text(errors='replace')[-3000:]}") from error


def _await(process: subprocess.Popen[bytes]) -> None:
    """Until it ends; whatever interrupts the waiting ends it too."""
    try:
        process.wait(_LONGEST)
    except subprocess.TimeoutExpired:
        say(f"the specs did not end within {_LONGEST} s and are killed")
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "HOME": str(folder)}
