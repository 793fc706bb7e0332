#!/bin/bash
# Joins this pod to the Flux instance of the TrainJob. On the lead broker, Flux runs the command that the arguments are, on all nodes;
# its exit status is the container's. A follower ends when the instance does.
set -euo pipefail

here=${BASH_SOURCE[0]%/*}
# shellcheck source=plugins/flux/scripts/settings.sh
source "$here/settings.sh"

say() {
    printf 'flux: %s\n' "$*" >&2
}

view=$root/view
config=$root/config
state=$config/var/lib/flux

# Behind the image's own folders: a program that both have is the image's.
export PATH=$PATH:$view/bin
export FLUX_RC_EXTRA=$view/etc/flux/rc1.d
for found in "$view"/lib/python3.*/; do
    [[ -d ${found}site-packages ]] || continue
    export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}${found}site-packages
done

# What the view's programs link to.
cp -R "$root/software/." "$software/"

# A container that starts again joins a new instance: what the last one left would be taken up by it.
rm -rf "$config"
mkdir -p "$config"/etc/{curve,flux/config,flux/system/cron.d} "$config/run/flux" "$state"
cp "$here/broker.toml" "$config/etc/flux/config/broker.toml"
printf '%s\n' "$hosts" >"$config/etc/flux/system/hostlist"

if [[ ! -r $certificate ]]; then
    say "user $(id -u) can't read $certificate: set runAsUser in the runtime's securityContext, so that the pod gets a group that can"
    exit 1
fi
# Flux refuses a certificate that others can read.
cp "$certificate" "$config/etc/curve/curve.cert"
chmod 600 "$config/etc/curve/curve.cert"

# For people: `. /mnt/flux/flux-view.sh; flux proxy $fluxsocket bash`, and Fluxion in place of the simple scheduler.
{
    printf 'export PATH=%q\n' "$PATH"
    printf 'export PYTHONPATH=%q\n' "${PYTHONPATH:-}"
    printf 'export LD_LIBRARY_PATH=%q\n' "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$view/lib"
    printf 'export fluxsocket=%q\n' "local://$config/run/flux/local"
} >"$root/flux-view.sh"
printf '%s\n' 'flux module remove sched-simple' 'flux module load sched-fluxion-resource' \
    'flux module load sched-fluxion-qmanager' >"$root/load-fluxion.sh"

encode=(flux R encode "--hosts=$hosts" "--cores=$core_ids")
run=(flux run "--nodes=$nodes" "--tasks-per-node=$tasks")
if [[ -n $gpus ]]; then
    encode+=("--gpus=$gpu_ids")
    run+=("--gpus-per-node=$gpus")
fi
"${encode[@]}" >"$config/etc/flux/system/R"

start=(
    flux start -o --config "$config/etc/flux/config"
    "-Scron.directory=$config/etc/flux/system/cron.d" -Stbon.fanout=256
    "-Srundir=$config/run/flux" "-Sstatedir=$state" "-Slocal-uri=local://$config/run/flux/local"
    -Slog-stderr-level=0 -Slog-stderr-mode=local
)

if [[ $(uname -n) == "$lead" ]]; then
    # In place of this shell, so that the status is Flux's, and signals reach it.
    exec "${start[@]}" "${run[@]}" "$@"
fi

# The shell stays between the kubelet and the broker, to try again: it hands on what asks it to stop.
child=
stopped=
trap 'stopped=1; [[ -z $child ]] || kill -TERM "$child" 2>/dev/null || true' TERM INT

# Runs a command that a signal can stop, and leaves its status.
follow() {
    "$@" &
    child=$!
    status=0
    wait "$child" || status=$?
    if [[ -n $stopped ]]; then
        wait "$child" || status=$?
        exit "$status"
    fi
}

for ((try = 1; ; try++)); do
    follow "${start[@]}"
    if ((status == 0)); then
        exit 0
    fi
    if ((try >= tries)); then
        say "the broker ended with status $status, $try times: no instance at $lead"
        exit "$status"
    fi
    say "the broker ended with status $status; try $((try + 1)) of $tries follows in $pause s"
    follow sleep "$pause"
done
