"""Sums the ranks of a group of XGBoost's collective, with the processes and task IDs of plugins/xgboost/README.md."""

import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import numpy
import xgboost
from xgboost.tracker import RabitTracker

from group import arguments, end, report, wait


def work(args, process):
    task = os.environ["DMLC_TASK_ID"]
    if process > 0:
        task = f"{task}-{process}"
    with xgboost.collective.CommunicatorContext(
        dmlc_tracker_uri=os.environ["DMLC_TRACKER_URI"],
        dmlc_tracker_port=int(os.environ["DMLC_TRACKER_PORT"]),
        dmlc_task_id=task,
    ):
        rank = xgboost.collective.get_rank()
        report(rank, xgboost.collective.get_world_size(), allreduce(rank))
        wait(args, rank, allreduce)


def allreduce(number):
    summed = xgboost.collective.allreduce(numpy.array([number]), xgboost.collective.Op.SUM)
    return int(summed[0])


def main():
    args = arguments()
    tracker = None
    if os.environ["DMLC_TASK_ID"] == "0":
        tracker = RabitTracker(
            host_ip="0.0.0.0",
            n_workers=int(os.environ["DMLC_NUM_WORKER"]),
            port=int(os.environ["DMLC_TRACKER_PORT"]),
        )
        tracker.start()
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        processes = [pool.submit(work, args, process) for process in range(args.processes)]
        try:
            for process in as_completed(processes):
                process.result()
        except Exception as error:
            # The pool would wait for processes that wait for the one that failed.
            end(type(error), error, error.__traceback__)
    if tracker is not None:
        tracker.wait_for()


if __name__ == "__main__":
    main()
