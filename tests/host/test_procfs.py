import os
from pathlib import Path

from kubelet_mp.host import procfs


def test_huge_pages_by_size(tmp_path: Path):
    for name, count in (("hugepages-2048kB", "3"), ("hugepages-1048576kB", "0"), ("other", "9")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "nr_hugepages").write_text(count + "\n")
    assert procfs.huge_pages(str(tmp_path)) == {1 << 30: 0, 2 << 20: 6 << 20}
    assert procfs.huge_pages(str(tmp_path / "absent")) == {}


def test_the_lower_of_the_two_process_limits(tmp_path: Path):
    kernel = tmp_path / "sys/kernel"
    kernel.mkdir(parents=True)
    assert procfs.max_pids(str(tmp_path)) == 32768
    (kernel / "pid_max").write_text("4194304\n")
    (kernel / "threads-max").write_text("1000\n")
    assert procfs.max_pids(str(tmp_path)) == 1000


def test_identity_from_files(tmp_path: Path):
    (tmp_path / "etc").mkdir()
    (tmp_path / "proc/sys/kernel/random").mkdir(parents=True)
    (tmp_path / "etc/machine-id").write_text("abc\n")
    (tmp_path / "etc/os-release").write_text('NAME=x\nPRETTY_NAME="Some Linux 1"\n')
    (tmp_path / "proc/sys/kernel/random/boot_id").write_text("b-1\n")
    found = procfs.identity(str(tmp_path))
    assert (found.machine_id, found.system_uuid, found.boot_id) == ("abc", "abc", "b-1")
    assert found.os_image == "Some Linux 1" and found.kernel_version


def test_identity_without_files(tmp_path: Path):
    found = procfs.identity(str(tmp_path))
    assert (found.machine_id, found.os_image) == ("", "Linux")


def test_the_machine_itself(tmp_path: Path):
    found = procfs.machine()
    assert found.cpus >= 1 and found.memory > 1 << 20 and found.max_pids > 100
    status = os.statvfs(tmp_path)
    assert procfs.filesystem_size(str(tmp_path)) <= status.f_blocks * status.f_frsize
