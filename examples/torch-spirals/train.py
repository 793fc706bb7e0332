"""Trains a small network to tell three spirals apart, with one process for each rank of torchrun, on CPUs."""

import math
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CLASSES = 3
POINTS = 1200
EPOCHS = 40
# The fraction of unseen points that a trained network classifies correctly.
LEARNED = 0.95


def spirals(points, generator):
    """Returns noisy points on spirals, and the spiral of each point."""
    label = torch.randint(CLASSES, (points,), generator=generator)
    radius = torch.rand(points, generator=generator)
    noise = 0.1 * torch.randn(points, generator=generator)
    angle = 2 * math.pi * (radius + label / CLASSES) + noise
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


def mean(value):
    """Returns the mean of a number over all ranks."""
    total = torch.tensor(float(value))
    dist.all_reduce(total)
    return (total / dist.get_world_size()).item()


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    # Each rank has points of its own; DDP starts all of them with the parameters of rank 0.
    generator = torch.Generator().manual_seed(rank)
    inputs, labels = spirals(POINTS, generator)
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(2, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, CLASSES))
    model = DistributedDataParallel(network)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(1, EPOCHS + 1):
        losses = []
        for batch in torch.randperm(POINTS, generator=generator).split(100):
            loss = nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
            optimizer.zero_grad()
            # DDP averages the gradients over all ranks.
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        loss = mean(sum(losses) / len(losses))
        if rank == 0 and (epoch == 1 or epoch % 5 == 0):
            print(f"epoch {epoch:2} of {EPOCHS}: loss {loss:.3f} over {dist.get_world_size()} ranks", flush=True)
    unseen, expected = spirals(POINTS, generator)
    with torch.no_grad():
        accuracy = mean((network(unseen).argmax(dim=1) == expected).float().mean())
    dist.destroy_process_group()
    if rank == 0:
        print(f"{accuracy:.1%} of unseen points are classified correctly", flush=True)
    if accuracy < LEARNED:
        sys.exit(f"the network has not learned: {accuracy:.1%} is less than {LEARNED:.0%}")


main()
