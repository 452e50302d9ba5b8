"""Kubernetes manifests of a model server: the protocol of the results that lie beside them.

A manifest holds no result. Its containers' command lines say what was served and whether the
server speculated; image, limits and node labels say on what. Two servers in one file that differ
state only what they agree on.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lib.errors import UnreadableFile
from lib.results import parsing, redaction, shell
from lib.results.findings import Beside, Findings, Flag, Key
from lib.results.images import engine_of
from lib.results.parsing import as_count, as_dict, as_list, as_text, flat
from lib.results.server_args import TENSORRT_LLM, fields_of, option_files, tensorrt_options

TOOL = "kubernetes"
TITLE = "Kubernetes manifests"
_COMMAND = ("spec", "template", "spec", "containers", "command, args")
_CONTAINER = ("spec", "template", "spec", "containers")
KEYS = (
    *(
        Key(name, _COMMAND, note=f"an option of the server's command line: {option}")
        for name, option in (
            ("target", "--model, --model-path"),
            ("target_quantization", "--quantization"),
            ("max_num_seqs", "--max-num-seqs, --max-running-requests, --max_batch_size"),
            ("prefix_caching", "--enable-prefix-caching, --disable-radix-cache"),
            ("graph_max_batch", "--max-cudagraph-capture-size, --cuda-graph-max-bs"),
            ("tensor_parallel", "--tensor-parallel-size, --tp-size"),
            ("data_parallel", "--data-parallel-size, --dp-size"),
            ("pipeline_parallel", "--pipeline-parallel-size, --pp-size"),
            ("spec_state", "off where the whole command has no speculative option"),
            ("draft_method", "--speculative-config, --speculative-algorithm"),
            ("draft_model", "--speculative-config, --speculative-draft-model-path"),
            ("num_speculative_tokens", "--speculative-config, --speculative-num-steps"),
            ("draft_tensor_parallel", "--speculative-config"),
            ("draft_max_positions", "--speculative-config"),
            ("draft_topk", "--speculative-eagle-topk"),
            ("schedule", "--speculative-config"),
            ("target_revision", "--revision"),
        )
    ),
    Key("engine", (*_CONTAINER, "image"), note="or the command's own name"),
    Key("engine_version", (*_CONTAINER, "image"), note="the tag of the engine's own image"),
    Key("build", (*_CONTAINER, "image")),
    Key(
        "gpu_count",
        (*_CONTAINER, "resources", "limits", "nvidia.com/gpu"),
        note="times pods (replicas, group size); empty under an autoscaler",
    ),
    Key("gpu", ("spec", "template", "spec", "nodeSelector"), note="the accelerator's label"),
)
LEVELS: Mapping[str, tuple[Key, ...]] = {"any version": KEYS}

_GPU_LIMITS = ("nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "gpu.intel.com/i915")
_GPU_LABELS = (
    *("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/model"),
    *("gpu.nvidia.com/class", "k8s.amazonaws.com/accelerator", "amd.com/gpu.product"),
    *("amd.com/gpu.product-name", "karpenter.k8s.aws/instance-gpu-name"),
)
_AUTOSCALERS = ("HorizontalPodAutoscaler", "ScaledObject", "VariantAutoscaling")
MOST_SERVERS = 64
_MOST_CONTAINERS = 16  # of a pod
_DEEPEST = 4  # a List of Lists


@dataclass(frozen=True)
class _Server:
    """A container that serves a model: what it states, and whether its options could be read."""

    name: str
    fields: Mapping[str, Any]


def recognise(values: Sequence[object]) -> bool:
    """Whether these are Kubernetes objects: each has `apiVersion` and `kind`."""
    objects = [as_dict(v) for v in flat(values) if v is not None]
    named = [
        isinstance(o.get("apiVersion"), str) and isinstance(o.get("kind"), str) for o in objects
    ]
    return bool(named) and all(named)


def find(name: str, values: Sequence[object], sha256: str) -> Findings:
    """No runs, but what the manifests state of those that lie beside them."""
    objects = list(_objects(values))
    configs = _configs(objects)
    scaled = any(o.get("kind") in _AUTOSCALERS for o in objects)
    found = (server for o in objects for server in _servers(o, configs, scaled))
    servers = list(islice(found, MOST_SERVERS))
    agreed, contested = _agreed(servers)
    text = f"{name}: Kubernetes manifests, no results; import the benchmark's files with them"
    flags = [Flag("sidecar", "warns", text)]
    if not servers:
        text = f"{name}: no server that this reader knows (vLLM, SGLang, TensorRT-LLM, llama.cpp)"
        flags.append(Flag("no_server", "warns", text))
    if contested:
        text = (
            f"{name}: {len(servers)} servers, so {', '.join(contested)} stay open; keep each arm's "
            "manifest in the folder of its results"
        )
        flags.append(Flag("servers_differ", "warns", text))
    keys = tuple(key for key in KEYS if key.field in agreed)
    beside = Beside(fields=agreed) if agreed else None
    why = "objects with apiVersion and kind"
    return Findings(TOOL, "any version", why, (), flags=tuple(flags), keys=keys, beside=beside)


def _objects(values: Sequence[object], depth: int = 0) -> Iterator[dict[str, Any]]:
    for value in flat(values):
        found = as_dict(value)
        if str(found.get("kind")).endswith("List") and depth < _DEEPEST:
            yield from _objects(as_list(found.get("items")), depth + 1)
        elif found:
            yield found


def _agreed(servers: Sequence[_Server]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The fields in which all servers agree, and those in which they do not."""
    names = dict.fromkeys(name for server in servers for name in server.fields)
    agreed, contested = {}, []
    for name in names:
        said = [server.fields.get(name) for server in servers]
        if said.count(said[0]) == len(said):
            agreed[name] = said[0]
        else:
            contested.append(name)
    if len(servers) > 1 and "gpu_count" in agreed:
        del agreed["gpu_count"]  # one deployment of several pods, or several deployments
        contested.append("gpu_count")
    return agreed, tuple(contested)


def _configs(objects: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The files that the ConfigMaps hold, by name."""
    return {
        str(file): text
        for found in objects
        if found.get("kind") == "ConfigMap"
        for file, text in as_dict(found.get("data")).items()
        if isinstance(text, str)
    }


def _servers(
    found: Mapping[str, Any], configs: Mapping[str, str], scaled: bool
) -> Iterator[_Server]:
    """The model servers of one object, each with the GPUs of all its pods."""
    spec = as_dict(found.get("spec"))
    name = as_text(as_dict(found.get("metadata")).get("name")) or str(found.get("kind"))
    for pod, pods in _pods(found, spec):
        if pods == 0:
            continue
        gpus = _gpus(pod)
        for container in map(as_dict, as_list(pod.get("containers"))[:_MOST_CONTAINERS]):
            for stated in _stated(container, configs):
                known = gpus is not None and pods is not None and not scaled
                count = gpus * pods if known and gpus and pods else None
                fields = {**stated, "gpu": _gpu(pod), "gpu_count": count}
                yield _Server(name, {k: v for k, v in fields.items() if v is not None})


def _pods(
    found: Mapping[str, Any], spec: Mapping[str, Any]
) -> Iterator[tuple[dict[str, Any], int | None]]:
    """The pods that start a server, with their number; None where it is not stated.

    Of a LeaderWorkerSet the leader's command serves; its group counts for the GPUs as long as
    leader and workers have equally many.
    """
    if found.get("kind") == "Pod":
        yield as_dict(spec), 1
        return
    replicas = as_count(spec.get("replicas")) if "replicas" in spec else 1
    group = as_dict(spec.get("leaderWorkerTemplate"))
    if group:
        worker = as_dict(as_dict(group.get("workerTemplate")).get("spec"))
        leader = as_dict(as_dict(group.get("leaderTemplate")).get("spec")) or worker
        size = as_count(group.get("size")) if "size" in group else 1
        alike = _gpus(leader) == _gpus(worker) or size == 1
        yield leader, replicas * size if replicas is not None and size and alike else None
        return
    template = as_dict(as_dict(spec.get("template")).get("spec"))
    if template:
        yield template, replicas


def _gpus(pod: Mapping[str, Any]) -> int | None:
    """Whole GPUs of a pod; None where no container states any."""
    counts = []
    for container in map(as_dict, as_list(pod.get("containers"))):
        resources = as_dict(container.get("resources"))
        limits = as_dict(resources.get("limits")) or as_dict(resources.get("requests"))
        counts += [as_count(limits[key]) for key in _GPU_LIMITS if key in limits]
    known = [count for count in counts if count is not None and 0 < count < 2**20]
    return sum(known) if known and len(known) == len(counts) else None


def _gpu(pod: Mapping[str, Any]) -> str | None:
    """The accelerator that the pod's node must have, as its label says it."""
    labels = dict(as_dict(pod.get("nodeSelector")))
    affinity = as_dict(as_dict(pod.get("affinity")).get("nodeAffinity"))
    required = as_dict(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    terms = [as_dict(t) for t in as_list(required.get("nodeSelectorTerms"))]
    for wish in map(as_dict, as_list(terms[0].get("matchExpressions")) if len(terms) == 1 else []):
        values = as_list(wish.get("values"))
        if wish.get("operator") == "In" and len(values) == 1:
            labels.setdefault(str(wish.get("key")), values[0])
    return next((text for key in _GPU_LABELS if (text := as_text(labels.get(key)))), None)


def _stated(container: Mapping[str, Any], configs: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """What each server that the container starts states."""
    image = as_text(container.get("image")) or ""
    by_image, version = engine_of(image)
    own = by_image if "command" not in container else None
    for argv in _commands(container):
        fields = fields_of(argv, own)
        if not fields:
            continue
        own = None  # the image's entry point is taken
        for file in option_files(argv):
            fields |= _file_of_options(fields, configs.get(file.rpartition("/")[2]))
        if version is not None and fields["engine"] == by_image:
            fields["engine_version"] = version
        fields["build"] = image or None
        yield {k: v for k, v in fields.items() if v is not None and not _is_secret(v)}


def _file_of_options(fields: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    if text is None or fields["engine"] != TENSORRT_LLM:
        return {}
    try:
        documents = parsing.parse_yaml("options", text)
    except UnreadableFile:
        return {}
    return tensorrt_options(documents.values[0])


def _is_secret(value: object) -> bool:
    return isinstance(value, str) and redaction.redact_text(value) != value


def _commands(container: Mapping[str, Any]) -> list[list[str]]:
    """The command lines of a container, variables replaced as far as it states them.

    A variable whose name says secret, or that comes from a Secret, is never replaced.
    """
    variables = {
        str(entry["name"]): str(entry["value"])
        for entry in map(as_dict, as_list(container.get("env")))
        if isinstance(entry.get("value"), (str, int, float))
        and entry.get("name")
        and not redaction.is_secret(str(entry["name"]))
    }
    words = [*_words(container.get("command")), *_words(container.get("args"))]
    for at, word in enumerate(words[:-1]):
        if re.fullmatch(r"(.*/)?(ba|z|da|a)?sh", word):
            rest = words[at + 1 :]
            script = next((i for i, w in enumerate(rest) if re.fullmatch(r"-\w*c", w)), None)
            if script is not None and script + 1 < len(rest):
                return shell.commands(rest[script + 1], variables)
    if len(words) == 1 and re.search(r"\s", words[0]):
        return shell.commands(words[0], variables)
    return [[shell.expand(word, variables) for word in words]]


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [str(v) for v in as_list(value) if isinstance(v, (str, int, float))]
