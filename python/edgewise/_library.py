# SPDX-License-Identifier: Apache-2.0
"""The shared library by ctypes: its structs and functions, and failures as exceptions."""

from __future__ import annotations

import ctypes as c
import ctypes.util
import operator
import os
from typing import Any


class Error(RuntimeError):
    """What the library refused, in its own words; ``code`` is its text of the kind of failure."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message or code)
        self.code = code


class ModelOpts(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("height", c.c_int64),
        ("width", c.c_int64),
        ("channels", c.c_int64),
        ("classes", c.c_int64),
        ("batch", c.c_int64),
        ("scale", c.c_double),
        ("filters", c.POINTER(c.c_int32)),
        ("n_filters", c.c_int),
    ]


class CompileOpts(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("batch_min", c.c_int64),
        ("batch_max", c.c_int64),
        ("threads", c.c_int),
        ("tune", c.c_int),
        ("tune_cache", c.c_char_p),
        ("precision", c.c_char_p),
        ("compact", c.c_int),
        ("mean", c.c_double * 4),
        ("std", c.c_double * 4),
        ("resize", c.c_int64),
        ("classes", c.POINTER(c.c_char_p)),
        ("n_classes", c.c_int),
        ("memory_limit", c.c_int64),
    ]


class EngineInfo(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("name", c.c_char_p),
        ("program", c.c_char_p),
        ("arch", c.c_char_p),
        ("isa", c.c_char_p),
        ("precision", c.c_char_p),
        ("batch_min", c.c_int64),
        ("batch_max", c.c_int64),
        ("threads", c.c_int64),
        ("params", c.c_int64),
        ("macs", c.c_int64),
        ("flops", c.c_int64),
        ("cdl", c.c_int64),
        ("file_bytes", c.c_int64),
        ("packed_bytes", c.c_int64),
        ("activation_bytes", c.c_int64),
        ("n_inputs", c.c_int),
        ("n_outputs", c.c_int),
        ("n_classes", c.c_int),
        ("repacked", c.c_int),
    ]


class PortStruct(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("dtype", c.c_char_p),
        ("rank", c.c_int),
        ("dims", c.c_int64 * 8),
        ("channels_last", c.c_int),
    ]


class StepTime(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("op", c.c_char_p),
        ("kernel", c.c_char_p),
        ("us", c.c_double),
        ("flops", c.c_double),
    ]


class Pixels(c.Structure):
    _fields_ = [
        ("size", c.c_size_t),
        ("format", c.c_int),
        ("width", c.c_int64),
        ("height", c.c_int64),
        ("data", c.c_void_p),
        ("stride", c.c_int64),
        ("chroma", c.c_void_p),
        ("chroma_stride", c.c_int64),
    ]


_P = c.c_void_p
_OUT = c.POINTER(c.c_void_p)
_FALLIBLE = {
    "ew_model_build": [c.c_char_p, c.POINTER(ModelOpts), _OUT],
    "ew_model_init": [c.c_char_p, c.c_uint64, _P],
    "ew_onnx_load": [c.c_char_p, _P, _OUT],
    "ew_network_graph": [c.c_char_p, c.c_uint64, _OUT],
    "ew_engine_compile": [_P, c.POINTER(CompileOpts), c.c_char_p],
    "ew_engine_load": [c.c_char_p, _OUT],
    "ew_engine_info": [_P, c.POINTER(EngineInfo)],
    "ew_context_new": [_P, c.c_int, _OUT],
    "ew_context_set_batch": [_P, c.c_int64],
    "ew_context_input_port": [_P, c.c_int, c.POINTER(PortStruct)],
    "ew_context_output_port": [_P, c.c_int, c.POINTER(PortStruct)],
    "ew_context_read_image": [_P, c.c_int64, c.c_char_p],
    "ew_context_put_pixels": [_P, c.c_int64, c.POINTER(Pixels)],
    "ew_context_run": [_P],
    "ew_context_start": [_P],
    "ew_context_wait": [_P],
    "ew_context_profile": [_P, c.c_int, c.POINTER(StepTime), c.c_int, c.POINTER(c.c_int)],
}
_OTHERS = {
    "ew_version": (c.c_char_p, []),
    "ew_error_text": (c.c_char_p, [c.c_int]),
    "ew_error_message": (c.c_char_p, []),
    "ew_model_count": (c.c_int, []),
    "ew_model_name": (c.c_char_p, [c.c_int]),
    "ew_graph_free": (None, [_P]),
    "ew_engine_free": (None, [_P]),
    "ew_engine_class": (c.c_char_p, [_P, c.c_int]),
    "ew_context_free": (None, [_P]),
    "ew_context_input": (_P, [_P, c.c_int, c.POINTER(c.c_size_t)]),
    "ew_context_output": (_P, [_P, c.c_int, c.POINTER(c.c_size_t)]),
}


def _open() -> c.CDLL:
    """``EDGEWISE_LIBRARY`` names the file; else the system's libedgewise is taken."""
    path = os.environ.get("EDGEWISE_LIBRARY") or ctypes.util.find_library("edgewise")
    try:
        return c.CDLL(path or "libedgewise.so.1")
    except OSError as why:
        raise ImportError(
            f"edgewise: no shared library ({why}); install libedgewise or set EDGEWISE_LIBRARY"
        ) from why


lib = _open()
for _name, (_result, _args) in _OTHERS.items():
    getattr(lib, _name).restype, getattr(lib, _name).argtypes = _result, _args
for _name, _args in _FALLIBLE.items():
    if _name == "ew_network_graph" and not hasattr(lib, _name):
        continue  # a library that was built without training
    getattr(lib, _name).restype, getattr(lib, _name).argtypes = c.c_int, _args


def text(data: bytes) -> str:
    """What the library says; file names and names in files need not be UTF-8."""
    return data.decode(errors="backslashreplace")


def check(code: int) -> None:
    """Raises what the library says of the calling thread's last failure."""
    if code:
        raise Error(text(lib.ew_error_text(code)), text(lib.ew_error_message()))


def whole(name: str, value: Any, kind: Any = c.c_int64) -> int:
    """An integer of the C type; ctypes wraps what is out of its range."""
    n = operator.index(value)
    if kind(n).value != n:
        raise ValueError(f"{name} is {n}, out of range")
    return n


def string(data: bytes) -> bytes:
    """A string for C, which would end it at a NUL."""
    if b"\0" in data:
        raise ValueError(f"there is a NUL in {data!r}")
    return data


def file_name(path: Any) -> bytes:
    return string(os.fsencode(path))
