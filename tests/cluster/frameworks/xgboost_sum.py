"""Sums the ranks of a group of XGBoost's collective, as plugins/xgboost/README.md says."""

import os

import numpy
import xgboost
from xgboost.tracker import RabitTracker

from group import arguments, report, wait

args = arguments()
task, workers = os.environ["DMLC_TASK_ID"], int(os.environ["DMLC_NUM_WORKER"])
if task == "0":
    tracker = RabitTracker(
        host_ip="0.0.0.0", n_workers=workers, port=int(os.environ["DMLC_TRACKER_PORT"])
    )
    tracker.start()
with xgboost.collective.CommunicatorContext(
    dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"],
    dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]),
    dmlc_task_id=task,
):
    rank = xgboost.collective.get_rank()

    def allreduce(number):
        summed = xgboost.collective.allreduce(numpy.array([number]), xgboost.collective.Op.SUM)
        return int(summed[0])

    report(rank, xgboost.collective.get_world_size(), allreduce(rank))
    wait(args, rank, allreduce)
if task == "0":
    tracker.wait_for()
