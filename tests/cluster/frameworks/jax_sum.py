"""Sums the process IDs of a group of JAX, as plugins/jax/README.md says."""

import os

import jax
import jax.numpy as jnp

from group import arguments, report, wait

args = arguments()
jax.distributed.initialize(
    coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
    num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
    process_id=int(os.environ["JAX_PROCESS_ID"]),
)
rank = jax.process_index()
# One device of each process takes part.
psum = jax.pmap(lambda number: jax.lax.psum(number, "all"), axis_name="all")


def allreduce(number):
    return int(psum(jnp.array([number]))[0])


report(rank, jax.process_count(), allreduce(rank))
wait(args, rank, allreduce)
jax.distributed.shutdown()
