#!/usr/bin/env python3
"""Counts the external packages that cargo builds more than once for the commands of the Makefile, and fails if there are any.

Two builds of one target are two files with different hashes in their names. A package that clippy checks and that tests build counts once
for each, because the profiles require it. Missing builds are built first; if the commands have already run, this takes seconds.
"""

import collections
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


def artifacts(command):
    """Yields cargo's message for each artifact that the command needs."""
    words, _, for_program = command.partition(" -- ")
    words = [*shlex.split(words), "--message-format=json"]
    if words[1] == "test":
        words += [] if "--no-run" in words else ["--no-run"]
    elif for_program:
        # Flags of clippy: with other flags, it would check our own crates again.
        words += ["--", *shlex.split(for_program)]
    words[0] = os.environ.get("CARGO", "cargo")
    output = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in output.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact":
            yield message


def kind_of(message):
    """Returns the kind of build: checking a library writes only metadata."""
    is_checked = all(name.endswith(".rmeta") for name in message["filenames"])
    return "check" if is_checked else "build"


def main():
    os.chdir(os.path.join(os.path.dirname(__file__), ".."))
    builds = collections.defaultdict(dict)
    for command, name in commands().items():
        for message in artifacts(command):
            target = message["target"]
            if "registry+" in message["package_id"]:
                package = message["package_id"].rsplit("#", 1)[-1]
                key = (package, target["name"], kind_of(message))
                files = tuple(sorted(message["filenames"]))
                builds[key].setdefault(files, (name, message["features"]))
    twice = {key: found for key, found in builds.items() if len(found) > 1}
    for (package, target, kind), found in sorted(twice.items()):
        print(f"{package}: {target} ({kind}):")
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
