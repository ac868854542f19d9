# SPDX-License-Identifier: Apache-2.0
"""The commands that take minutes and write files, through the program: train, quantize, results.

Options are those of the command, with '_' for '-': ``train("lenet5", data="mnist", batch=16)`` is
``edgewise train lenet5 --data mnist --batch 16``.  True is a flag, False its ``--no-`` form, a list
becomes one value with commas.  What is returned is the command's JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Dict, List, Union

from ._library import Error

Path = Union[str, "os.PathLike[str]"]


def _program() -> str:
    """``EDGEWISE_PROGRAM`` names it; else it is looked for in PATH."""
    found = os.environ.get("EDGEWISE_PROGRAM") or shutil.which("edgewise")
    if not found:
        raise Error("not found", "the program edgewise is not in PATH; set EDGEWISE_PROGRAM")
    return found


def _words(options: Dict[str, Any]) -> List[str]:
    words: List[str] = []
    for name, value in options.items():
        flag = name.rstrip("_").replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, (list, tuple)):
            words += [f"--{flag}", ",".join(str(v) for v in value)]
        elif isinstance(value, (bytes, os.PathLike)):
            words += [f"--{flag}", os.fsdecode(value)]
        else:
            words += [f"--{flag}", str(value)]
    return words


def call(verb: str, *arguments: Path, **options: Any) -> Any:
    """Any command of the program with ``--json``; its progress goes to standard error.

    None where the command prints nothing, as ``report`` into a file.
    Raises ``Error`` with the command's own words.  Status 3 (some jobs skipped) raises too.
    """
    words = [_program(), verb, "--json", *_words(options), "--", *(os.fspath(a) for a in arguments)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          encoding="utf-8", errors="backslashreplace")  # whatever the locale is
    if done.returncode != 0:
        said = [line[len("edgewise: "):] for line in done.stderr.splitlines() if line.startswith("edgewise: ")]
        raise Error(f"exit {done.returncode}", said[-1] if said else done.stderr.strip())
    return json.loads(done.stdout) if done.stdout else None


def train(network: Path, *, data: Path, **options: Any) -> Dict[str, Any]:
    """Trains a network of the zoo or a file on a data set; returns the result of the run.

    ``output`` names the run's folder, where ``best.ckpt`` is a network for ``quantize`` and the others.
    """
    return dict(call("train", network, data=data, **options))


def quantize(network: Path, output: Path, *, calib: Path, **options: Any) -> Dict[str, Any]:
    """Writes a trained network in int8; returns layers, and accuracy and times before and after."""
    return dict(call("quantize", network, output=output, calib=calib, **options))


def results(db: Path = "edgewise.db", **options: Any) -> List[Dict[str, Any]]:
    """The runs of a results database as rows; ``where`` is a condition on their fields, as ``batch > 1``."""
    return list(call("results", db=db, **options))
