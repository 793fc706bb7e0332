# The settings of the scripts. The plugin fills in the places that are named for what belongs there. All names begin with
# `trainyard_`, so that no env var of the user's is overwritten.
# shellcheck shell=bash disable=SC2034

# The hosts of the instance as Flux writes them, and the one whose broker leads.
trainyard_hosts=@hosts@
trainyard_lead=@lead@

# What the command runs on: nodes, tasks on each, and GPUs of each, which is empty if Flux hands out none. The tasks are:
# @why@.
trainyard_nodes=@nodes@
trainyard_tasks=@tasks@
trainyard_gpus=@gpus@

# The ids of what each node has.
trainyard_core_ids=@core_ids@
trainyard_gpu_ids=@gpu_ids@

# How long tasks may run after the first of them has ended.
trainyard_exit_timeout=@exit_timeout@

# How many seconds a follower waits before it tries to join again.
trainyard_pause=15

# The volume that the installer fills, and what stands at fixed places in its image and in the node container.
trainyard_root=/mnt/flux
trainyard_views=/opt/views/._view
trainyard_software=/opt/software
trainyard_certificate=/curve/curve.cert
