"""Sums the ranks of a group of PyTorch, which torchrun forms with the env vars of Trainyard."""

import torch
import torch.distributed as dist

from group import arguments, report, wait

args = arguments()
dist.init_process_group("gloo")
rank = dist.get_rank()


def allreduce(number):
    summed = torch.tensor([number])
    dist.all_reduce(summed)
    return int(summed.item())


report(rank, dist.get_world_size(), allreduce(rank))
wait(args, rank, allreduce)
dist.destroy_process_group()
