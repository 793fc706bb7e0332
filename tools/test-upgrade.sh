#!/usr/bin/env bash
# Runs TrainJobs of each policy in each state under an earlier release and this one, in turn. The earlier one is the commit BEFORE: by
# default the newest tag, or if there is none, the last commit that is a day older.
set -euo pipefail
cd "$(dirname "$0")/.."
day=$((24 * 60 * 60))
before=${BEFORE:-$(git describe --tags --abbrev=0 HEAD^ 2>/dev/null ||
    git rev-list --max-count=1 --min-age=$(($(git log -1 --format=%ct) - day)) HEAD)}
commit=$(git rev-parse --short=12 "$before^{commit}")
earlier=$PWD/target/earlier/$commit
if [[ ! -x $earlier/trainyard ]]; then
    scratch=$(mktemp -d)
    trap 'git worktree remove --force "$scratch/source"; rm -rf "$scratch"' EXIT
    git worktree add --quiet --detach "$scratch/source" "$commit"
    # The same folder for every commit, so that dependencies are built once.
    CARGO_TARGET_DIR=$PWD/target/earlier/build ${CARGO:-cargo} build --locked --workspace --bin trainyard --manifest-path "$scratch/source/Cargo.toml"
    mkdir -p "$earlier"
    cp target/earlier/build/debug/trainyard "$earlier/"
fi
echo "the earlier release is $before ($(git log -1 --format='%h of %cs' "$commit"))"
TRAINYARD_EARLIER=$earlier/trainyard ${CARGO:-cargo} test --locked --workspace --test cluster -- handover \
    train_jobs_move_over_and_back::each_policy_in_each_state_with_an_earlier_release
