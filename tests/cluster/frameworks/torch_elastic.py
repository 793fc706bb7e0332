"""Trains with a group of PyTorch that changes: torchrun forms it again when a node is lost or comes back."""

import os
import time

import torch
import torch.distributed as dist

from group import PAUSE, arguments, report

args = arguments()
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
checkpoint = f"{args.hold_until}.step"


def allreduce(number):
    summed = torch.tensor([number])
    dist.all_reduce(summed)
    return int(summed.item())


def saved():
    if not os.path.exists(checkpoint):
        return 0
    with open(checkpoint) as file:
        return int(file.read())


def save(step):
    with open(f"{checkpoint}.new", "w") as file:
        file.write(str(step))
    os.replace(f"{checkpoint}.new", checkpoint)


report(rank, size, allreduce(rank))
step = saved()
if rank == 0:
    os.write(1, f"group of {size} begins with step {step}\n".encode())
# The ranks stop in the same step, because they agree on the sum.
while allreduce(int(os.path.exists(args.hold_until))) == 0:
    step += 1
    if rank == 0:
        save(step)
    time.sleep(PAUSE)
dist.destroy_process_group()
