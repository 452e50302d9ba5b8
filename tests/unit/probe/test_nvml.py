"""NVML through its real binding and a shared library that stands in for NVIDIA's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lib.probe import nvml, nvml_text
from lib.probe.result import Conditions
from tests.unit.probe.standin import H100, L4, ROOT, Machine, needs_gcc

pytestmark = needs_gcc
UUID = str(H100["uuid"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path).gpus(H100)


def test_who_a_gpu_is(machine: Machine) -> None:
    found = machine.devices()
    assert found["problem"] == ""
    (gpu,) = found["found"]
    assert gpu["memory"].pop("used_gib") == 2
    assert gpu == {
        "uuid": UUID,
        "name": "NVIDIA H100 80GB HBM3",
        "pci_bus_id": "00000000:4B:00.0",
        "driver": "580.95.05",
        "cuda": "13.0",
        "compute_capability": "9.0",
        "memory": {
            "total_gib": pytest.approx(79.647, abs=1e-3),
            "free_gib": pytest.approx(77.647, abs=1e-3),
            "unified": False,
        },
        "mig_enabled": False,
        "is_slice": False,
        "max_sm_clock_mhz": 1980,
        "max_mem_clock_mhz": 2619,
        "power_limit_w": 700,
    }
    assert found["host"]


def test_what_a_gpu_does(machine: Machine) -> None:
    machine.set(
        {"gpu0.events": 0x4 | 0x40, "gpu0.pids": 2, "gpu0.pid": 4000000, "gpu0.pid_used": 2**31}
    )
    found = machine.reading()
    assert found["memory"]["used_gib"] == 2
    assert (found["sm_clock_mhz"], found["mem_clock_mhz"]) == (1980, 2619)
    assert (found["power_w"], found["power_limit_w"]) == (412.5, 700)
    assert found["energy_j"] == pytest.approx(123456.789)
    assert (found["temperature_c"], found["utilization"]) == (51, 0.04)
    assert found["clock_events"] == ["software power cap", "hardware thermal slowdown"]
    assert found["processes"] == [
        {"pid": 4000000, "memory_gib": 2},
        {"pid": 4000001, "memory_gib": 2},
    ]
    assert found["problems"] == []


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (9, "not loaded"),
        (18, "upgraded while the old one is still loaded: reboot"),
        (4, "No permission"),
        (10, "did not answer in time"),
        (15, "lost"),
        (16, "must be reset"),
        (17, "operating system blocks"),
        (13, "update the driver"),
        (999, "unknown error"),
        (77, "error 77"),
    ],
)
def test_a_driver_that_does_not_start_is_one_sentence(
    machine: Machine, code: int, says: str
) -> None:
    found = machine.set({"fail.nvmlInitWithFlags": code}).devices()
    assert found["found"] == []
    assert says in found["problem"]
    assert found["problem"].endswith(".")
    assert "\n" not in found["problem"]
    assert machine.reading()["problems"] == [found["problem"]]
    assert machine.run(f"found = nvml.match({UUID!r})") is None


def test_no_library_names_the_likely_causes(tmp_path: Path) -> None:
    problem = Machine(tmp_path, library=False).devices()["problem"]
    for cause in ("no NVIDIA GPU", "driver is not installed", "--gpus all"):
        assert cause in problem


def test_a_broken_library_is_no_library(tmp_path: Path) -> None:
    machine = Machine(tmp_path, library=False)
    (machine.libraries / "libnvidia-ml.so.1").write_bytes(b"not a library")
    assert machine.devices()["problem"] == nvml_text.LIBRARY_MISSING


def test_without_the_binding_the_import_of_the_room_works(tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("raise ImportError('not here')")
    code = "from lib.probe import nvml; print(nvml.devices().problem); nvml.shutdown()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": f"{tmp_path}:{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == nvml_text.BINDING_MISSING


def test_a_driver_without_gpus_says_so(tmp_path: Path) -> None:
    assert Machine(tmp_path).gpus().devices()["problem"] == nvml_text.NONE_FOUND


def test_a_library_or_driver_that_comes_later_is_found(tmp_path: Path) -> None:
    machine = Machine(tmp_path, library=False).gpus(H100, **{"fail.nvmlInitWithFlags": 9})
    found = machine.run(
        "from pathlib import Path\n"
        f"lib, answers = Path({str(machine.libraries)!r}), Path({str(machine.answers)!r})\n"
        "found = [nvml.devices().problem]\n"
        f"(lib / 'libnvidia-ml.so.1').symlink_to({str(machine.built)!r})\n"
        "found.append(nvml.devices().problem)\n"
        "answers.write_text(answers.read_text().replace('fail.', 'once.'))\n"
        "found.append([g.name for g in nvml.devices().found])"
    )
    assert found == [nvml_text.LIBRARY_MISSING, nvml_text.sentence(9), [H100["name"]]]


def test_shutting_down_is_safe_to_repeat_and_readings_start_anew(machine: Machine) -> None:
    found = machine.run(
        "nvml.shutdown()\n"
        f"found = [nvml.reading({UUID!r}).power_w]\n"
        "nvml.shutdown(); nvml.shutdown()\n"
        f"found.append(nvml.reading({UUID!r}).power_w)\n"
        "import pynvml; pynvml.nvmlShutdown()\n"
        f"found.append(list(nvml.reading({UUID!r}).problems))\n"
        f"found.append(nvml.reading({UUID!r}).power_w)"
    )
    assert found == [412.5, 412.5, [nvml_text.sentence(1)], 412.5]


def test_many_threads_read_at_once(machine: Machine) -> None:
    found = machine.run(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        f"    read = list(pool.map(lambda _: nvml.reading({UUID!r}), range(64)))\n"
        "found = [len({r.power_w for r in read}), sorted({p for r in read for p in r.problems})]"
    )
    assert found == [1, []]


CALLS = {
    "nvmlDeviceGetMemoryInfo": "memory",
    "nvmlDeviceGetUtilizationRates": "utilization",
    "nvmlDeviceGetClockInfo": "sm_clock_mhz",
    "nvmlDeviceGetPowerUsage": "power_w",
    "nvmlDeviceGetEnforcedPowerLimit": "power_limit_w",
    "nvmlDeviceGetTotalEnergyConsumption": "energy_j",
    "nvmlDeviceGetTemperature": "temperature_c",
    "nvmlDeviceGetComputeRunningProcesses_v3": "processes",
    "nvmlDeviceGetCurrentClocksEventReasons": "clock_events",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_reading_that_fails_takes_no_other_with_it(machine: Machine, call: str) -> None:
    whole = machine.reading()
    found = machine.set({f"fail.{call}": 15}).reading()
    clocks = ("mem_clock_mhz", "graphics_clock_mhz") if "ClockInfo" in call else ()
    for name in whole.keys() - {CALLS[call], "problems", *clocks}:
        assert found[name] == whole[name], name
    lost = found[CALLS[call]]
    assert lost in (None, []) or set(lost.values()) == {None, False}
    (problem,) = found["problems"]
    assert problem.endswith(nvml_text.sentence(15))
    machine.set({f"fail.{call}": 3})
    assert machine.reading()["problems"] == [], "not supported is no trouble"


def test_one_lost_gpu_leaves_the_others(tmp_path: Path) -> None:
    machine = Machine(tmp_path).gpus(L4, H100, **{"fail.nvmlDeviceGetHandleByIndex_v2.gpu0": 15})
    found = machine.devices()
    assert [g["name"] for g in found["found"]] == [H100["name"]]
    assert found["problem"] == f"GPU 0: {nvml_text.sentence(15)}"
    assert machine.reading()["power_w"] == 412.5


def test_an_older_driver_answers_by_the_old_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, "OLD_DRIVER").gpus({**H100, "events": 0x208})
    found = machine.reading()
    assert found["clock_events"] == ["hardware slowdown", "board limit"]
    assert found["problems"] == []


def test_a_driver_older_than_the_binding_is_said_and_the_rest_read(tmp_path: Path) -> None:
    found = Machine(tmp_path, "BARE").gpus(H100).reading()
    assert found["processes"] is None
    assert found["power_w"] == 412.5
    assert found["problems"] == [f"processes: {nvml_text.TOO_OLD}"]


def test_a_mismatch_that_is_no_nvml_error_is_caught(machine: Machine) -> None:
    found = machine.run(
        "import pynvml\n"
        "def refuse(handle): raise pynvml.NVMLLibraryMismatchError('versions')\n"
        "pynvml.nvmlDeviceGetPowerUsage = refuse\n"
        f"read = nvml.reading({UUID!r})\n"
        "found = [read.power_w, list(read.problems), read.sm_clock_mhz]"
    )
    assert found == [None, [f"power: {nvml_text.TOO_OLD}"], 1980]


def test_unified_memory_is_the_machines_and_labelled(tmp_path: Path) -> None:
    gb10 = {k: v for k, v in H100.items() if k not in ("total", "used", "free")}
    machine = Machine(tmp_path).gpus({**gb10, "name": "NVIDIA GB10", "capability": "12.1"})
    words = dict(x.split(":") for x in Path("/proc/meminfo").read_text().splitlines()[:3])
    total = float(words["MemTotal"].split()[0]) / 2**20
    for memory in (machine.reading()["memory"], machine.devices()["found"][0]["memory"]):
        assert memory["unified"] is True
        assert memory["total_gib"] == pytest.approx(total)
        assert memory["used_gib"] + memory["free_gib"] == pytest.approx(total)
    assert machine.reading()["utilization"] == 0.04


def test_a_total_of_zero_is_not_known(tmp_path: Path) -> None:
    memory = Machine(tmp_path).gpus({**H100, "total": 0}).reading()["memory"]
    assert memory == {"total_gib": None, "used_gib": None, "free_gib": None, "unified": False}


MIG = {**H100, "mig": 1, "slices": 1}
SLICE = {
    "gpu0.slice0.name": "NVIDIA H100 80GB HBM3 MIG 1g.10gb",
    "gpu0.slice0.uuid": "MIG-33333333-aaaa-bbbb-cccc-000000000003",
    "gpu0.slice0.total": 10 * 2**30,
    "gpu0.slice0.used": 2**30,
    "gpu0.slice0.free": 9 * 2**30,
}


def test_a_slice_is_seen_where_the_board_is_closed(tmp_path: Path) -> None:
    closed = ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetUtilizationRates")
    machine = Machine(tmp_path).gpus(MIG, **SLICE, **{f"fail.{c}.gpu0": 4 for c in closed})
    board, part = machine.devices()["found"]
    assert (board["mig_enabled"], board["is_slice"]) == (True, False)
    assert (part["mig_enabled"], part["is_slice"]) == (True, True)
    assert part["memory"]["total_gib"] == 10
    assert (part["pci_bus_id"], part["compute_capability"]) == (H100["pci"], "9.0")
    found = machine.reading()
    assert found["problems"] == [f"utilisation, memory: {nvml_text.MIG_BOARD}"]
    assert found["power_w"] == 412.5
    live = machine.reading(SLICE["gpu0.slice0.uuid"])
    assert live["memory"]["used_gib"] == 1
    assert (live["power_w"], live["utilization"], live["problems"]) == (None, None, [])
    both = machine.run(
        "found = [nvml.match('33333333-aaaa-bbbb-cccc-000000000003').mig, "
        "nvml.match(None, '0000:4b:00.0').mig]"
    )
    assert both == [True, True]


@pytest.mark.parametrize(
    ("uuid", "pci"),
    [
        (UUID, None),
        (UUID.removeprefix("GPU-"), None),
        (UUID.upper().removeprefix("GPU-"), None),
        (None, "00000000:4B:00.0"),
        (None, "0000:4b:00.0"),
        (None, "4b:00.0"),
        (UUID, "0000:3b:00.0"),
    ],
)
def test_the_device_of_cuda_is_found_by_uuid_or_place(
    tmp_path: Path, uuid: str | None, pci: str | None
) -> None:
    machine = Machine(tmp_path).gpus(L4, H100)
    assert machine.run(f"found = nvml.match({uuid!r}, {pci!r}).name") == H100["name"]


@pytest.mark.parametrize(
    "asked", ["None", "''", "'GPU-0'", "None, '0000:99:00.0'", "None, '1'", "'1', '0000:4b:00.0'"]
)
def test_no_match_is_no_gpu_and_never_one_by_index(tmp_path: Path, asked: str) -> None:
    assert Machine(tmp_path).gpus(L4, H100).run(f"found = nvml.match({asked})") is None


def test_a_gpu_without_uuid_is_read_by_its_place(machine: Machine) -> None:
    machine.set({"fail.nvmlDeviceGetUUID": 3})
    assert machine.devices()["found"][0]["uuid"] == ""
    assert machine.reading("0000:4b:00.0")["power_w"] == 412.5
    assert machine.reading("GPU-0")["problems"] == [nvml_text.sentence(28)]


def test_conditions_of_a_probe(machine: Machine) -> None:
    machine.set({"gpu0.gpu_util": 26, "gpu0.events": 0x1 | 0x4})
    found = machine.run(f"found = asdict(nvml.conditions({UUID!r}, 'before'))")
    assert found == {
        "when": "before",
        "sm_clock_mhz": 1980,
        "mem_clock_mhz": 2619,
        "power_w": 412.5,
        "temperature_c": 51,
        "utilization": 0.26,
        "throttle": ["software power cap"],
        "others": 0,
    }
    assert json.dumps(found)


@pytest.mark.parametrize(
    ("utilization", "others", "busy"),
    [(0.26, 0, True), (0.10, 0, False), (0.11, None, True), (0.0, 1, True), (None, None, False)],
)
def test_busy_before_the_start(utilization: float | None, others: int | None, busy: bool) -> None:
    before = Conditions("before", utilization=utilization, others=others)
    assert nvml.is_busy(before) is busy


def test_others_are_those_that_are_not_this_process(machine: Machine) -> None:
    machine.set({"gpu0.pids": 2, "gpu0.pid_used": 2**30})
    found = machine.run(
        "import os\nfrom pathlib import Path\n"
        f"answers = Path({str(machine.answers)!r})\n"
        "def of(pid):\n"
        "    answers.write_text(answers.read_text() + f'gpu0.pid {pid}\\n')\n"
        f"    return [nvml.conditions({UUID!r}, w).others for w in ('before', 'during')]\n"
        "found = [of(os.getpid()), of(2**22 + 7)]"
    )
    assert found == [[1, 1], [2, None]], "numbered as on the host: this one cannot be told"


def test_nvidia_smi_is_not_needed(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert machine.devices()["found"][0]["uuid"] == UUID


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        (0, ()),
        (0x1, ("idle",)),
        (0x2, ("application clocks setting",)),
        (0x8 | 0x80, ("hardware slowdown", "hardware power brake")),
        (0x400, ("reliability",)),
        (0x800, ("reason 0x800",)),
    ],
)
def test_clock_event_reasons_by_name(mask: int, names: tuple[str, ...]) -> None:
    assert nvml_text.reasons(mask) == names
