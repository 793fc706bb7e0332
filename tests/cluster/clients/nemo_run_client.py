"""One call of NeMo Run's executor for Kubeflow, as a user of it makes it: OPTIONS CALL [ARGUMENT...].

OPTIONS are the arguments of the executor, as JSON.
"""

import json
import sys
from unittest.mock import MagicMock

# NeMo Run imports the client of another service, which these calls never reach.
for module in (
    "api.v1.types.affinity",
    "api.v1.types.common",
    "api.v1.types.dedicated_node_group",
    "api.v1.types.deployment",
    "api.v1.types.job",
    "api.v1.types.raycluster",
    "api.v1.types.replica",
    "api.v2.client",
    "cli.raycluster",
):
    sys.modules[f"leptonai.{module}"] = MagicMock()

from nemo_run import KubeflowExecutor  # noqa: E402

from outcome import tell  # noqa: E402

# How long a state is waited for, in seconds.
TIMEOUT = 180
COMMAND = ["torchrun", "train.py"]


def started(launched):
    name, state = launched
    return {"name": name, "state": state.value}


def launch(executor, name):
    """Returns when it runs, or has ended."""
    return started(
        executor.launch(name, COMMAND, wait=True, timeout=TIMEOUT, poll_interval=1)
    )


def launch_twice(executor, name):
    """The second launch finds the job of the first, deletes it, and makes it anew."""
    executor.launch(name, COMMAND)
    return launch(executor, name)


def status(executor, name):
    state = executor.status(name)
    return state and state.value


def cancel(executor, name):
    """Whether the job and its pods went."""
    return executor.cancel(name, wait=True, timeout=TIMEOUT, poll_interval=1)


CALLS = {call.__name__: call for call in (launch, launch_twice, status, cancel)}

if __name__ == "__main__":
    options, call, *arguments = sys.argv[1:]
    tell(CALLS[call](KubeflowExecutor(**json.loads(options)), *arguments))
