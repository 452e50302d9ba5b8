from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

from lib.results.images import engine_of
from lib.results.reading import Reading, read
from lib.run import SpecState

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
HERE = FIXTURES / "kubernetes"
CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no shared corpus beside the project")


def of(path: Path) -> Reading:
    return read(path.name, path.read_bytes())


def reading(*objects: object) -> Reading:
    return read("m.yaml", yaml.safe_dump_all(objects).encode())


def stated(*objects: object) -> dict[str, Any]:
    beside = reading(*objects).beside
    return dict(beside.fields) if beside else {}


def codes(found: Reading) -> list[str]:
    return [flag.code for flag in found.flags]


@pytest.fixture
def deployment() -> dict[str, Any]:
    loaded: dict[str, Any] = next(yaml.safe_load_all((HERE / "eagle3.yaml").read_text()))
    return loaded


def container(deployment: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = deployment["spec"]["template"]["spec"]["containers"][0]
    return found


def test_a_deployment() -> None:
    found = of(HERE / "eagle3.yaml")
    assert (found.runs, codes(found)) == ((), ["sidecar"])
    assert found.beside is not None
    assert found.beside.tools == (), "any tool's runs beside it"
    assert found.beside.fields == {
        "engine": "vLLM",
        "engine_version": "0.11.0",
        "build": "vllm/vllm-openai:v0.11.0",
        "target": "example/target-8b",
        "tensor_parallel": 4,
        "max_num_seqs": 128,
        "prefix_caching": True,
        "spec_state": SpecState.ON,
        "draft_method": "eagle3",
        "draft_model": "example/draft",
        "num_speculative_tokens": 4,
        "gpu": "nvidia-h100-80gb",
        "gpu_count": 8,
    }


def test_a_script_in_a_group_of_pods() -> None:
    beside = of(HERE / "script.yaml").beside
    assert beside is not None
    assert beside.fields["draft_method"] == "eagle3", "not the one of the comment"
    assert (beside.fields["num_speculative_tokens"], beside.fields["draft_topk"]) == (3, 1)
    assert (beside.fields["gpu"], beside.fields["gpu_count"]) == ("NVIDIA-H200", 16)
    assert (beside.fields["engine"], beside.fields["engine_version"]) == ("SGLang", "0.5.3")
    assert beside.fields["prefix_caching"] is False
    assert beside.fields["target"] == "example/target-70b"


def test_options_in_a_config_map() -> None:
    beside = of(HERE / "trtllm.yaml").beside
    assert beside is not None
    assert beside.fields["engine"] == "TensorRT-LLM"
    assert (beside.fields["draft_method"], beside.fields["num_speculative_tokens"]) == ("eagle3", 3)
    assert (beside.fields["max_num_seqs"], beside.fields["gpu_count"]) == (64, 2)


def test_options_in_a_file_elsewhere_leave_speculation_open() -> None:
    _, pod = yaml.safe_load_all((HERE / "trtllm.yaml").read_text())
    assert "spec_state" not in stated(pod)


def test_secrets_are_nowhere() -> None:
    found = of(HERE / "eagle3.yaml")
    assert "a-secret-of-ours" not in repr(found.beside) + repr(found.flags)
    assert found.kept is not None
    kept = pa.CompressedInputStream(pa.BufferReader(found.kept), "zstd").read()
    assert b"a-secret-of-ours" not in kept
    assert b"example/target-8b" in kept, "the rest is kept"


def test_a_secret_variable_is_never_replaced(deployment: dict[str, Any]) -> None:
    container(deployment)["args"][0] = "$(HF_TOKEN)"
    assert "target" not in stated(deployment)


def test_no_speculative_option_is_off(deployment: dict[str, Any]) -> None:
    args = container(deployment)["args"]
    at = args.index("--speculative-config")
    del args[at : at + 2]
    assert stated(deployment)["spec_state"] is SpecState.OFF
    args.append("$(EXTRA_ARGS)")
    assert "spec_state" not in stated(deployment), "the option may hide in there"


@pytest.mark.parametrize(
    ("change", "gpus"),
    [
        ({"replicas": 3}, 12),
        ({"replicas": None}, None),
        ({"replicas": "two"}, None),
    ],
)
def test_gpus_of_all_replicas(
    deployment: dict[str, Any], change: dict[str, Any], gpus: int | None
) -> None:
    deployment["spec"] |= change
    assert stated(deployment).get("gpu_count") == gpus


def test_a_deployment_at_rest_serves_nothing(deployment: dict[str, Any]) -> None:
    deployment["spec"]["replicas"] = 0
    assert codes(reading(deployment)) == ["sidecar", "no_server"]


def test_an_autoscaler_leaves_the_count_open(deployment: dict[str, Any]) -> None:
    scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {}}
    assert "gpu_count" not in stated(deployment, scaler)


def test_two_arms_in_one_file_state_what_they_share(deployment: dict[str, Any]) -> None:
    other = yaml.safe_load(yaml.safe_dump(deployment))
    args = container(other)["args"]
    del args[args.index("--speculative-config") : args.index("--speculative-config") + 2]
    found = reading(deployment, other)
    fields = found.beside.fields if found.beside else {}
    assert fields["target"] == "example/target-8b"
    assert not {"spec_state", "draft_method", "draft_model", "gpu_count"} & fields.keys()
    (flag,) = (f for f in found.flags if f.code == "servers_differ")
    assert "2 servers, so spec_state" in flag.message


def test_an_image_with_its_own_entry_point(deployment: dict[str, Any]) -> None:
    del container(deployment)["command"]
    container(deployment)["args"][0] = "--model=$(MODEL)"
    assert stated(deployment)["target"] == "example/target-8b"
    container(deployment)["image"] = "example/sidecar:1"
    assert stated(deployment) == {}, "no engine is named anywhere"


def test_a_list_of_objects(deployment: dict[str, Any]) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [deployment]}
    assert stated(listed)["num_speculative_tokens"] == 4


def test_manifests_without_a_server_say_so() -> None:
    found = reading({"apiVersion": "v1", "kind": "Service", "spec": {}})
    assert (codes(found), found.beside) == (["sidecar", "no_server"], None)


@pytest.mark.parametrize(
    ("image", "engine", "version"),
    [
        ("vllm/vllm-openai:v0.11.0", "vLLM", "0.11.0"),
        ("vllm/vllm-openai", "vLLM", None),
        ("vllm/vllm-openai:latest", "vLLM", None),
        ("host:5000/vllm/vllm-openai:v0.12.1.post1@sha256:ab", "vLLM", "0.12.1.post1"),
        ("host:5000/vllm/vllm-openai", "vLLM", None),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.4.0", "vLLM", None),
        ("lmsysorg/sglang:v0.5.3-cu126", "SGLang", "0.5.3"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.0.0rc4", "TensorRT-LLM", "1.0.0rc4"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda-b5711", "llama.cpp", "b5711"),
        ("nginx:1.27", None, None),
        ("", None, None),
    ],
)
def test_images(image: str, engine: str | None, version: str | None) -> None:
    assert engine_of(image) == (engine, version)


@needs_corpus
def test_the_pair_of_the_corpus() -> None:
    off, on = (
        of(CORPUS / "inference-perf" / arm / "manifests.yaml").beside
        for arm in ("kubecon-vllm", "kubecon-vllm_eagle")
    )
    assert off is not None
    assert on is not None
    assert off.fields["spec_state"] is SpecState.OFF
    assert (on.fields["draft_method"], on.fields["num_speculative_tokens"]) == ("eagle3", 4)
    assert on.fields["draft_tensor_parallel"] == 1
    for fields in (off.fields, on.fields):
        assert (fields["engine"], fields["engine_version"]) == ("vLLM", "0.11.0")
        assert (fields["gpu"], fields["gpu_count"]) == ("nvidia-h100-80gb", 1)
        assert fields["max_num_seqs"] == 128
    assert off.fields["prefix_caching"] is False
    assert "prefix_caching" not in on.fields, "the default is not stated"
