"""What the programs of all frameworks have in common."""

import argparse
import os
import platform
import signal
import sys
import time
import traceback

# How often a held group looks for its file.
PAUSE = 0.2
# The steps of a program with a checkpoint, and how many of them are saved when the failing rank fails.
STEPS = 6
SAVED = 3


def arguments():
    # The first process of a container ignores SIGTERM unless it has a handler.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    sys.excepthook = end
    parser = argparse.ArgumentParser()
    parser.add_argument("--fail-rank", type=int, help="the rank that fails, after the sum")
    parser.add_argument("--hold-until", help="a file without which the group goes on summing")
    parser.add_argument("--checkpoint", help="a file with the last step; the failing rank fails only if the file is new")
    parser.add_argument("--processes", type=int, default=1, help="how many ranks a pod starts, without a launcher")
    return parser.parse_args()


def end(*error):
    """Ends the process after an error without the clean-up of the framework, which may wait for ranks that are gone."""
    traceback.print_exception(*error)
    os._exit(1)


def report(rank, size, summed):
    # One write for a line, because the processes of a pod share its log.
    os.write(1, f"rank {rank} of {size} on {platform.node()} sum {summed}\n".encode())


def wait(args, rank, allreduce):
    """Fails if this rank is to fail. If the group is held, returns once a rank sees the file."""
    if args.checkpoint:
        return train(args, rank, allreduce)
    if rank == args.fail_rank:
        fail(rank)
    if args.fail_rank is not None or args.hold_until:
        # The ranks stop in the same round, because they agree on the sum.
        while allreduce(int(bool(args.hold_until) and os.path.exists(args.hold_until))) == 0:
            time.sleep(PAUSE)


def fail(rank):
    print(f"rank {rank} fails", file=sys.stderr, flush=True)
    # Without the clean-up of the framework, like a process that is killed.
    os._exit(7)


def train(args, rank, allreduce):
    """Takes the steps that the checkpoint does not have, each with a sum over all ranks, and saves each."""
    start = 0
    if os.path.exists(args.checkpoint):
        with open(args.checkpoint) as file:
            start = int(file.read())
    for step in range(start, STEPS):
        allreduce(1)
        if rank == 0:
            save(args.checkpoint, step + 1)
        # No rank fails before the step is saved.
        allreduce(1)
        if rank == args.fail_rank and start == 0 and step + 1 == SAVED:
            fail(rank)
    if rank == 0:
        os.write(1, f"trained from step {start} to {STEPS}\n".encode())


def save(path, step):
    with open(path + ".new", "w") as file:
        file.write(str(step))
    os.replace(path + ".new", path)
