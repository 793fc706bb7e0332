#!/bin/bash
# Copies Flux out of the image that it is built into, to the volume that the node container shares. Everything else is the
# entrypoint's, which runs as the user who needs it.
set -euo pipefail

here=${BASH_SOURCE[0]%/*}
# shellcheck source=plugins/flux/scripts/settings.sh
source "$here/settings.sh"

fail() {
    printf 'flux: %s\n' "$*" >&2
    exit 1
}

view=
for found in "$views"/*/; do
    [[ -d $found ]] || continue
    [[ -z $view ]] || fail "the image has more than one Flux view below $views: $view and $found"
    view=$found
done
[[ -n $view ]] || fail "the image has no Flux view below $views: FLUX_VIEW_IMAGE names one that has"

# A container that starts again begins anew.
rm -rf "$root/view" "$root/software"
mkdir -p "$root/view" "$root/software"
cp -R "$view." "$root/view/"
cp -R "$software/." "$root/software/"

# Flux's commands in Python ask for `python3`, which has to be the one of the view.
for found in "$root"/view/bin/python3.*; do
    name=${found##*/}
    [[ -f $found && $name =~ ^python3\.[0-9]+$ ]] || continue
    ln -sfn "$name" "$root/view/bin/python3"
    ln -sfn "$name" "$root/view/bin/python"
done
