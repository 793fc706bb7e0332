#!/bin/bash
# Joins this pod to the Flux instance of the TrainJob. On the lead broker, Flux runs the command that the arguments are, on all nodes;
# its exit status is the container's. A follower ends when the instance does.
set -euo pipefail

# Before anything else: a shell that is the first process of its container gets no signal that it has no trap for.
trainyard_child=
trainyard_stopped=
trap 'trainyard_stopped=1; [[ -z $trainyard_child ]] || kill -TERM "$trainyard_child" 2>/dev/null || true' TERM INT

trainyard_here=${BASH_SOURCE[0]%/*}
# shellcheck source=plugins/flux/scripts/settings.sh
source "$trainyard_here/settings.sh"

trainyard_say() {
    printf 'flux: %s\n' "$*" >&2
}

# Ends here if the container was asked to stop.
trainyard_go_on() {
    [[ -z $trainyard_stopped ]] || exit 143
}

# Runs a command, hands on to it what asks the container to stop, and leaves its status.
trainyard_follow() {
    trainyard_go_on
    # With job control, the command has the signals and the input of this shell, and ignores none.
    set -m
    "$@" &
    trainyard_child=$!
    set +m
    # A signal that came before there was a child to hand it to.
    [[ -z $trainyard_stopped ]] || kill -TERM "$trainyard_child" 2>/dev/null || true
    while
        trainyard_status=0
        wait "$trainyard_child" || trainyard_status=$?
        kill -0 "$trainyard_child" 2>/dev/null
    do
        # A signal ended the wait, and not the command.
        :
    done
    trainyard_child=
}

trainyard_view=$trainyard_root/view
trainyard_config=$trainyard_root/config
trainyard_state=$trainyard_config/var/lib/flux

# Behind the image's own folders: a program that both have is the image's.
export PATH=$PATH:$trainyard_view/bin
export FLUX_RC_EXTRA=$trainyard_view/etc/flux/rc1.d${FLUX_RC_EXTRA:+:$FLUX_RC_EXTRA}
for trainyard_found in "$trainyard_view"/lib/python3.*/; do
    [[ -d ${trainyard_found}site-packages ]] || continue
    export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}${trainyard_found}site-packages
done

# What the view's programs link to. A container that starts again has it already; or it has a part of it, in files and folders
# that only root could write to.
if [[ ! -e $trainyard_root/software-is-copied ]]; then
    for trainyard_found in "$trainyard_software"/* "$trainyard_software"/.[!.]*; do
        [[ -L $trainyard_found || ! -e $trainyard_found ]] || chmod -R u+w "$trainyard_found"
    done
    trainyard_follow cp -Rf "$trainyard_root/software/." "$trainyard_software/"
    ((trainyard_status == 0)) || exit "$trainyard_status"
    : >"$trainyard_root/software-is-copied"
fi

# A container that starts again joins a new instance: what the last one left would be taken up by it.
rm -rf "$trainyard_config"
mkdir -p "$trainyard_config"/etc/{curve,flux/config,flux/system/cron.d} "$trainyard_config/run/flux" "$trainyard_state"
cp "$trainyard_here/broker.toml" "$trainyard_config/etc/flux/config/broker.toml"
printf '%s\n' "$trainyard_hosts" >"$trainyard_config/etc/flux/system/hostlist"

if [[ ! -r $trainyard_certificate ]]; then
    trainyard_say "user $(id -u) can't read $trainyard_certificate: set runAsUser in the runtime's securityContext, so that the pod gets a group that can"
    exit 1
fi
# Flux refuses a certificate that others can read.
cp "$trainyard_certificate" "$trainyard_config/etc/curve/curve.cert"
chmod 600 "$trainyard_config/etc/curve/curve.cert"

# For people: `. /mnt/flux/flux-view.sh; flux proxy $fluxsocket bash`, and Fluxion in place of the simple scheduler.
{
    printf 'export PATH=%q\n' "$PATH"
    printf 'export PYTHONPATH=%q\n' "${PYTHONPATH:-}"
    printf 'export LD_LIBRARY_PATH=%q\n' "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$trainyard_view/lib"
    printf 'export fluxsocket=%q\n' "local://$trainyard_config/run/flux/local"
} >"$trainyard_root/flux-view.sh"
printf '%s\n' 'flux module remove sched-simple' 'flux module load sched-fluxion-resource' \
    'flux module load sched-fluxion-qmanager' >"$trainyard_root/load-fluxion.sh"

# Flux's cores are a count, and not those that the kubelet gives the container: a task is bound to none of them.
trainyard_encode=(flux R encode "--hosts=$trainyard_hosts" "--cores=$trainyard_core_ids")
trainyard_run=(
    flux run "--nodes=$trainyard_nodes" "--tasks-per-node=$trainyard_tasks"
    -o cpu-affinity=off -o "exit-timeout=$trainyard_exit_timeout"
)
if [[ -n $trainyard_gpus ]]; then
    trainyard_encode+=("--gpus=$trainyard_gpu_ids")
    trainyard_run+=("--gpus-per-node=$trainyard_gpus")
fi
"${trainyard_encode[@]}" >"$trainyard_config/etc/flux/system/R"

trainyard_start=(
    flux start -o --config "$trainyard_config/etc/flux/config"
    "-Scron.directory=$trainyard_config/etc/flux/system/cron.d" -Stbon.fanout=256
    "-Srundir=$trainyard_config/run/flux" "-Sstatedir=$trainyard_state"
    "-Slocal-uri=local://$trainyard_config/run/flux/local"
    -Slog-stderr-level=0 -Slog-stderr-mode=local
)

if [[ $(uname -n) == "$trainyard_lead" ]]; then
    trainyard_follow "${trainyard_start[@]}" "${trainyard_run[@]}" "$@"
    exit "$trainyard_status"
fi

# The lead can be hours behind, while its image is pulled or its machine is added. If it fails, the Job ends, and this container with it.
for ((trainyard_try = 1; ; trainyard_try++)); do
    trainyard_follow "${trainyard_start[@]}"
    if ((trainyard_status == 0)) || [[ -n $trainyard_stopped ]]; then
        # A broker that is stopped ends with 0, like one whose instance has ended. After an eviction, the pod has to fail.
        ((trainyard_status != 0)) || trainyard_go_on
        exit "$trainyard_status"
    fi
    trainyard_say "the broker ended with status $trainyard_status: no instance at $trainyard_lead; try $((trainyard_try + 1)) follows in $trainyard_pause s"
    trainyard_follow sleep "$trainyard_pause"
done
