"""What NVML's errors and bitmasks mean, in plain sentences."""

LIBRARY_MISSING = (
    "No GPU is visible here: the NVIDIA library libnvidia-ml.so.1 is not found. Likely causes: "
    "this machine has no NVIDIA GPU, its driver is not installed (nvidia-smi would tell), or the "
    "container was started without GPUs (docker run --gpus all)."
)
BINDING_MISSING = "The package nvidia-ml-py is not installed: pip install nvidia-ml-py."
TOO_OLD = (
    "The NVIDIA driver lacks a function that is asked for: update the driver, or install the "
    "nvidia-ml-py of the driver's version."
)
NONE_FOUND = (
    "The NVIDIA driver answers but shows no GPU: check nvidia-smi -L, and in a container "
    "NVIDIA_VISIBLE_DEVICES or --gpus."
)
MIG_BOARD = (
    "This board is split by MIG and only its slices may be read from here: that is normal; "
    "run on the host, or as root, for the whole board."
)

UNINITIALIZED, NOT_SUPPORTED, NO_PERMISSION = 1, 3, 4
LIBRARY_NOT_FOUND, FUNCTION_NOT_FOUND, GPU_NOT_FOUND, UNKNOWN = 12, 13, 28, 999
_BY_CODE = {
    UNINITIALIZED: "NVML was shut down in between: try again.",
    2: "The NVIDIA driver does not take the question as asked: update the driver or nvidia-ml-py.",
    NOT_SUPPORTED: "This GPU does not offer it.",
    NO_PERMISSION: "No permission to read the GPU: run as a user that may open /dev/nvidia*, or "
    "give the container access to the device (docker run --gpus all).",
    6: "The NVIDIA driver does not find it on this GPU.",
    9: "The NVIDIA driver is installed but not loaded: sudo modprobe nvidia, or reboot.",
    10: "The NVIDIA driver did not answer in time, so the GPU may hang: try again, then reboot.",
    LIBRARY_NOT_FOUND: LIBRARY_MISSING,
    FUNCTION_NOT_FOUND: TOO_OLD,
    15: "The GPU has fallen off the bus or is otherwise lost: reboot; dmesg shows its Xid error.",
    16: "The GPU must be reset: stop what runs on it, then sudo nvidia-smi --gpu-reset, or reboot.",
    17: "The operating system blocks access to the GPU: check cgroups and the container's devices.",
    18: "The NVIDIA driver was upgraded while the old one is still loaded: reboot; a container "
    "must be started anew after that.",
    GPU_NOT_FOUND: "The NVIDIA driver does not find this GPU (any more): check nvidia-smi -L.",
    UNKNOWN: "The NVIDIA driver reports an unknown error: try again; dmesg may tell more; a reboot "
    "usually clears it.",
}

IDLE = "idle"
_REASONS = (
    IDLE,
    "application clocks setting",
    "software power cap",
    "hardware slowdown",
    "sync boost",
    "software thermal slowdown",
    "hardware thermal slowdown",
    "hardware power brake",
    "display clock setting",
    "board limit",
    "reliability",
)


def sentence(code: int) -> str:
    """One plain sentence for an NVML return code, with its way out."""
    return _BY_CODE.get(
        code, f"The NVIDIA driver reports error {code}: try again; nvidia-smi may tell more."
    )


def reasons(mask: int) -> tuple[str, ...]:
    """Names of the clock event reasons in a bitmask of NVML, by rising bit."""
    bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
    return tuple(_REASONS[b] if b < len(_REASONS) else f"reason {1 << b:#x}" for b in bits)
