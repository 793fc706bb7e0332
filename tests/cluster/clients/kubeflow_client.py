"""One call of the Kubeflow SDK, as a user of it makes it: NAMESPACE CALL [ARGUMENT...]."""

import sys

from kubeflow.common.types import KubernetesBackendConfig
from kubeflow.trainer import (
    CustomTrainer,
    HuggingFaceDatasetInitializer,
    Initializer,
    TrainerClient,
)

from outcome import tell

# How long a status is waited for, in seconds.
TIMEOUT = 180


def train_model(steps):
    import os

    print(f"node {os.environ['PET_NODE_RANK']} trains {steps} steps")


def trainer(nodes):
    return CustomTrainer(
        func=train_model,
        func_args={"steps": 3},
        num_nodes=int(nodes),
        resources_per_node={"cpu": 2, "gpu": 4},
        env={"GREETING": "hello"},
    )


def runtimes(client):
    return [
        {
            "name": runtime.name,
            "framework": runtime.trainer.framework,
            "image": runtime.trainer.image,
            "nodes": runtime.trainer.num_nodes,
        }
        for runtime in client.list_runtimes()
    ]


def train(client, runtime, nodes):
    return client.train(runtime=client.get_runtime(runtime), trainer=trainer(nodes))


def train_on_dataset(client, runtime, uri):
    initializer = Initializer(dataset=HuggingFaceDatasetInitializer(storage_uri=uri))
    return client.train(runtime=runtime, initializer=initializer, trainer=trainer(1))


def job(found):
    return {
        "name": found.name,
        "status": found.status,
        "nodes": found.num_nodes,
        "runtime": found.runtime.name,
        "steps": [
            {
                "name": step.name,
                "status": step.status,
                "pod": step.pod_name,
                "device": step.device,
                "devices": step.device_count,
            }
            for step in sorted(found.steps, key=lambda step: step.name)
        ],
    }


def get(client, name):
    return job(client.get_job(name))


def wait(client, name, status):
    return job(
        client.wait_for_job_status(name, {status}, timeout=TIMEOUT, polling_interval=1)
    )


def events(client, name):
    return [
        {
            "kind": event.involved_object_kind,
            "name": event.involved_object_name,
            "reason": event.reason,
            "message": event.message,
        }
        for event in client.get_job_events(name)
    ]


def list_jobs(client):
    return [job(found) for found in client.list_jobs()]


def delete(client, name):
    client.delete_job(name)


CALLS = {
    call.__name__: call
    for call in (
        runtimes,
        train,
        train_on_dataset,
        get,
        wait,
        events,
        list_jobs,
        delete,
    )
}

if __name__ == "__main__":
    namespace, call, *arguments = sys.argv[1:]
    client = TrainerClient(KubernetesBackendConfig(namespace=namespace))
    tell(CALLS[call](client, *arguments))
