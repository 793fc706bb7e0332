#!/bin/bash
# Copies Flux out of the image that it is built into, to the volume that the node container shares. Everything else is the
# entrypoint's, which runs as the user who needs it.
set -euo pipefail

trainyard_here=${BASH_SOURCE[0]%/*}
# shellcheck source=plugins/flux/scripts/settings.sh
source "$trainyard_here/settings.sh"

trainyard_fail() {
    printf 'flux: %s\n' "$*" >&2
    exit 1
}

trainyard_view=
for trainyard_found in "$trainyard_views"/*/; do
    [[ -d $trainyard_found ]] || continue
    [[ -z $trainyard_view ]] ||
        trainyard_fail "the image has more than one Flux view below $trainyard_views: $trainyard_view and $trainyard_found"
    trainyard_view=$trainyard_found
done
[[ -n $trainyard_view ]] ||
    trainyard_fail "the image has no Flux view below $trainyard_views: FLUX_VIEW_IMAGE names one that has"

# A container that starts again begins anew. Folders that can't be written to, as Spack makes them, keep what is in them from
# every user but root.
for trainyard_name in view software; do
    trainyard_copy=$trainyard_root/$trainyard_name
    [[ ! -d $trainyard_copy ]] || chmod -R u+w "$trainyard_copy"
    rm -rf "$trainyard_copy"
    mkdir -p "$trainyard_copy"
done
cp -R "$trainyard_view." "$trainyard_root/view/"
cp -R "$trainyard_software/." "$trainyard_root/software/"

# Flux's commands in Python ask for `python3`, which has to be the one of the view.
[[ ! -d $trainyard_root/view/bin ]] || chmod u+w "$trainyard_root/view/bin"
for trainyard_found in "$trainyard_root"/view/bin/python3.*; do
    trainyard_name=${trainyard_found##*/}
    [[ -f $trainyard_found && $trainyard_name =~ ^python3\.[0-9]+$ ]] || continue
    ln -sfn "$trainyard_name" "$trainyard_root/view/bin/python3"
    ln -sfn "$trainyard_name" "$trainyard_root/view/bin/python"
done
