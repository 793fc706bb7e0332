"""Reads objects and writes them again by the models of the Python client, as the client does.

One object a line in; one line out for each: the object as the models write it again, or why it is no such object.
"""

import datetime
import json
import sys

from kubeflow_trainer_api import models

KINDS = {
    "TrainJob": models.TrainerV1alpha1TrainJob,
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
    "ClusterTrainingRuntime": models.TrainerV1alpha1ClusterTrainingRuntime,
}


def written(value: object) -> str:
    """Writes a time as the client's serializer does, and in UTC as Kubernetes does."""
    if isinstance(value, datetime.datetime):
        return value.isoformat().replace("+00:00", "Z")
    raise TypeError(f"no JSON: {value!r}")


def read(line: str) -> dict:
    value = json.loads(line)
    try:
        again = KINDS[value["kind"]].from_dict(value).to_dict()
        return {"object": json.loads(json.dumps(again, default=written))}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    print(json.dumps(read(line)), flush=True)
