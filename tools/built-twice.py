#!/usr/bin/env python3
"""Counts the external packages that cargo builds more than once for the commands of the Makefile, and fails if there are any.

A package that clippy checks and that tests build counts once for each, because the profiles require it. Nothing is built: cargo prints what it
would build, an option that it has only with RUSTC_BOOTSTRAP.
"""

import collections
import functools
import json
import os
import re
import shlex
import subprocess
import sys

TARGETS = "build demo-cluster lint test test-fast test-cluster test-reference".split()
CARGO = re.compile(r"cargo (?:build|clippy|test)\b[^;&|\n]*")


def commands():
    """Returns the cargo commands of the Makefile's targets, each with the first target that runs it."""
    found = {}
    for target in TARGETS:
        make = ["make", "--dry-run", "CARGO=cargo", target]
        text = subprocess.run(make, stdout=subprocess.PIPE, check=True, text=True).stdout
        for command in CARGO.findall(text):
            found.setdefault(command, f"make {target}")
    return found


def units(command):
    """Yields each unit of work of the command, with what tells it from others: itself and all that it depends on."""
    words = shlex.split(command.partition(" -- ")[0])
    # Clippy is a wrapper around this.
    words = ["check" if word == "clippy" else word for word in words if word != "--no-run"]
    words[0] = os.environ.get("CARGO", "cargo")
    words += ["--unit-graph", "-Zunstable-options"]
    environment = dict(os.environ, RUSTC_BOOTSTRAP="1")
    output = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True, env=environment).stdout
    graph = json.loads(output)["units"]

    @functools.cache
    def identity(index):
        unit = dict(graph[index])
        dependencies = unit.pop("dependencies")
        # `dev` and `test` build the same.
        unit["profile"] = dict(unit["profile"], name=None)
        return hash((json.dumps(unit, sort_keys=True), *sorted(identity(it["index"]) for it in dependencies)))

    for index, unit in enumerate(graph):
        yield unit, identity(index)


def main():
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    builds = collections.defaultdict(dict)
    for command, name in commands().items():
        for unit, identity in units(command):
            if "registry+" in unit["pkg_id"] and unit["mode"] != "run-custom-build":
                package = unit["pkg_id"].rsplit("#", 1)[-1]
                key = (package, unit["target"]["name"], unit["mode"])
                builds[key].setdefault(identity, (name, unit["features"]))
    twice = {key: found for key, found in builds.items() if len(found) > 1}
    for (package, target, mode), found in sorted(twice.items()):
        print(f"{package}: {target} ({mode}):")
        common = set.intersection(*(set(features) for _, features in found.values()))
        for name, features in found.values():
            own = ", ".join(sorted(set(features) - common)) or "no feature of its own"
            print(f"  {name}: {own}")
    packages = len({package for package, _, _ in builds})
    print(f"{packages} external packages, {len(twice)} of their targets built more than once")
    if twice:
        sys.exit("add the features that differ to tools/features/Cargo.toml")


if __name__ == "__main__":
    main()
