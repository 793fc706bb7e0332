# What the scripts are told about the instance. The plugin fills in the places that are named for what belongs there.
# shellcheck shell=bash disable=SC2034

# The hosts of the instance as Flux writes them, and the one whose broker leads.
hosts=@hosts@
lead=@lead@

# What the command runs on: nodes, tasks on each (@why@), and GPUs of each, which is empty
# where Flux hands out none.
nodes=@nodes@
tasks=@tasks@
gpus=@gpus@

# The ids of what each node has.
core_ids=@core_ids@
gpu_ids=@gpu_ids@

# How often a follower tries to join, and how many seconds it waits before the next time.
tries=60
pause=15

# The volume that the installer fills, and what stands at fixed places in its image and in the node container.
root=/mnt/flux
views=/opt/views/._view
software=/opt/software
certificate=/curve/curve.cert
