# SPDX-License-Identifier: GPL-2.0-only
"""Policies in Python: found by name or in a file, checked, and called by the simulator.

C calls the functions at the end of this file (sim/foreign.h). What goes wrong in a policy ends its
simulation with a PolicyError, which says in one sentence where and what.
"""

from __future__ import annotations

import contextlib
import inspect
import re
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

from streamsched._core import ffi, lib
from streamsched.base.errors import UsageError, unknown
from streamsched.base.files import read_whole

# A call that is not done after so many seconds is taken to loop for ever.
LIMIT_S = 10
# Every call with what it is given; the first ones must be there.
CALLS = {
    "arrived": ("request", "now_ns"),
    "choose": ("now_ns", "head_sector"),
    "dispatched": ("request", "now_ns"),
    "removed": ("request", "now_ns"),
    "completed": ("request", "now_ns"),
    "merged": ("request", "old_start", "now_ns"),
    "joins": ("request", "following"),
}
NEEDED = tuple(CALLS)[:4]
ANSWERS = "return a pending request, a time later than now_ns (an int, in ns), or None"


class PolicyError(UsageError):
    """A policy in Python does what it must not."""


class Request:
    """A request as a policy sees it: in 512-byte sectors; the host changes what grows."""

    __slots__ = (
        "_number",
        "arrival_ns",
        "data",
        "owner",
        "sectors",
        "start",
        "sync",
        "write",
    )

    def __init__(
        self,
        number: int,
        start: int,
        sectors: int,
        write: bool,
        sync: bool,
        owner: int,
        arrival_ns: int,
    ) -> None:
        self._number = number
        self.start = start
        self.sectors = sectors
        self.write = write
        self.sync = sync  # somebody waits for it
        self.owner = owner  # who sent it; 0: not known
        self.arrival_ns = arrival_ns
        self.data: Any = None  # the policy's own

    @property
    def end(self) -> int:
        """The sector behind the last."""
        return self.start + self.sectors

    def __repr__(self) -> str:
        what = "write" if self.write else "read"
        return f"<{what} of {self.sectors} sectors at {self.start}>"


class Policy(Protocol):
    """What a policy must have; completed, merged and joins (CALLS) are optional."""

    def arrived(self, request: Request, now_ns: int) -> None:
        """It is pending from now on."""

    def choose(self, now_ns: int, head_sector: int) -> Request | int | None:
        """What is to be sent; a time: nothing until then; None: nothing until the next event."""

    def dispatched(self, request: Request, now_ns: int) -> None:
        """It was sent, and is pending no longer."""

    def removed(self, request: Request, now_ns: int) -> None:
        """It is pending no longer, for it was joined with another one or taken back."""


Maker = Callable[[], Policy]  # a class

registered: dict[str, Maker] = {}
_modules: dict[str, types.ModuleType] = {}


def is_python(spec: str) -> bool:
    """Whether one of the names in @spec is that of a policy in Python."""
    return any(name.endswith(".py") or name in registered for name in spec.split(":"))


# ---- finding it ----


def _line_in(error: BaseException, file: str) -> tuple[str, int]:
    """Where @error was raised: the last line of @file, or of what was called from here."""
    lines = []
    trace = error.__traceback__
    while trace:
        lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return next((line for line in reversed(lines) if line[0] == file), lines[-1])


def _raised(error: BaseException) -> str:
    text = str(error)
    return f"raised {type(error).__name__}" + (f": {text}" if text else "")


def _load(path: str) -> types.ModuleType:
    """The module in the file @path, run once in a process; nothing is written beside it."""
    if path in _modules:
        return _modules[path]
    try:
        code = compile(read_whole(Path(path)), path, "exec")
    except SyntaxError as error:
        raise PolicyError(f"{path}: line {error.lineno}: is no Python: {error.msg}") from error
    except ValueError as error:  # no text, or with a null in it
        raise PolicyError(f"{path}: is no Python: {error}") from error
    module = types.ModuleType(re.sub(r"\W", "_", f"policy_{path}"))
    module.__file__ = path
    folder = str(Path(path).resolve().parent)
    sys.modules[module.__name__] = module  # where dataclasses and pickle look
    if folder not in sys.path:
        sys.path.append(folder)
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        # Results are printed on standard output.
        with contextlib.redirect_stdout(sys.stderr):
            exec(code, module.__dict__)
    except (Exception, SystemExit) as error:
        file, line = _line_in(error, path)
        raise PolicyError(
            f"{file}: line {line}: {_raised(error)}, when {path} was loaded; mend that line"
        ) from error
    finally:
        sys.dont_write_bytecode = writes
    _modules[path] = module
    return module


def find(spec: str) -> Maker:
    """The class of @spec, which is a registered name or FILE.py:CLASS."""
    if spec in registered:
        return registered[spec]
    path, _, name = spec.rpartition(":")
    if spec.endswith(".py"):
        raise UsageError(f'policy "{spec}": name its class too, as in {spec}:Lifo')
    module = _load(path)
    there: dict[str, Any] = {
        key: value for key, value in vars(module).items() if inspect.isclass(value)
    }
    if name in there:
        maker: Maker = there[name]
        return maker
    own = [key for key, value in there.items() if value.__module__ == module.__name__]
    if not own:
        raise UsageError(f"{path}: has no class; write one, as docs/sim/POLICY-IN-PYTHON.md has it")
    raise UsageError(f"{path}: {unknown('class', name, own)}")


def begin(spec: str) -> AtDisk:
    """A new policy as @spec has it, checked."""
    maker = find(spec)
    name = getattr(maker, "__name__", spec)
    file, line = _place(maker, spec)
    try:
        policy = maker()
    except (Exception, SystemExit) as error:
        if error.__traceback__ and error.__traceback__.tb_next:
            file, line = _line_in(error, file)
        raise PolicyError(
            f"{file}: line {line}: {name}() {_raised(error)}; it must be made without arguments"
        ) from error
    for call, arguments in CALLS.items():
        method = getattr(policy, call, None)
        written = f"{call}({', '.join(arguments)})"
        if method is None and call not in NEEDED:
            continue
        if not callable(method):
            hint = "; `removed = dispatched` will often do" if call == "removed" else ""
            raise PolicyError(f"{file}: line {line}: {name} has no method {written}{hint}")
        try:
            signature = inspect.signature(method)
        except (ValueError, TypeError):
            continue  # not written in Python
        try:
            signature.bind(*arguments)
        except TypeError:
            file, line = _place(method, spec)
            raise PolicyError(
                f"{file}: line {line}: {name}.{call}{signature} must take ({', '.join(arguments)})"
            ) from None
    return AtDisk(spec, name, policy)


def _place(thing: Any, spec: str) -> tuple[str, int]:
    """The file and the line where a class or a method begins; what is typed has none."""
    try:
        return inspect.getsourcefile(thing) or spec, inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        code = getattr(thing, "__code__", None)
        return (code.co_filename, code.co_firstlineno) if code else (spec, 1)


# ---- at work ----


class AtDisk:
    """A policy at work, and the requests that it knows of, by the simulator's number."""

    def __init__(self, spec: str, name: str, policy: Policy) -> None:
        self.spec, self.name, self.policy = spec, name, policy
        self.pending: dict[int, Request] = {}
        self.sent: dict[int, Request] = {}
        self.error: BaseException | None = None
        self.call = ""  # in which it came
        self.arrived, self.choose = policy.arrived, policy.choose
        self.dispatched, self.removed = policy.dispatched, policy.removed
        self.completed = getattr(policy, "completed", None)
        self.merged = getattr(policy, "merged", None)
        self.joins = getattr(policy, "joins", None)
        self._handle = ffi.new_handle(self)
        calls = {call: getattr(lib, f"foreign_{call}") for call in CALLS}
        if not self.completed:
            calls["completed"] = ffi.NULL
        self.foreign = ffi.new("struct sim_foreign *", {"context": self._handle, **calls})

    def refuse(self, chosen: object, now_ns: int) -> PolicyError:
        """What is wrong with an answer."""
        if isinstance(chosen, Request):
            state = "in the disk already" if chosen in self.sent.values() else "not pending"
            what = f"a request that is {state}, {chosen!r}"
        elif type(chosen) is int:
            when = "too late" if chosen > now_ns else f"not later than now_ns, {now_ns}"
            what = f"the time {chosen}, which is {when}"
        else:
            what = f"{chosen!r:.60}, which is of type {type(chosen).__name__}"
        return PolicyError(f"{self._where('choose')} returned {what}; {ANSWERS}")

    def _where(self, call: str) -> str:
        file, line = _place(getattr(self.policy, call), self.spec)
        return f"{file}: line {line}: {self.name}.{call}()"

    def raise_error(self, why: str) -> None:
        """Say why the simulation failed: by the policy, or as the simulator says in @why."""
        error = self.error
        if error is None:
            if self.pending and why.startswith("nothing left to happen"):
                raise PolicyError(
                    f"{self._where('choose')} returns no request, and {why}; with nothing in the "
                    "disk it must return a pending request, or a time at which it will"
                )
            return
        if isinstance(error, KeyboardInterrupt | PolicyError):
            raise error
        file, line = _line_in(error, _place(getattr(self.policy, self.call), self.spec)[0])
        where = f"{file}: line {line}: {self.name}.{self.call}()"
        if isinstance(error, _TooSlowError):
            raise PolicyError(
                f"{where} was not done after {LIMIT_S} s; a call must end by itself"
            ) from error
        raise PolicyError(f"{where} {_raised(error)}; mend that line") from error


class _TooSlowError(BaseException):
    """Raised in a policy; of BaseException, for it is not the policy's to catch."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Have a call of a policy end after LIMIT_S, if this is the first thread: signals are its."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    seen: types.FrameType | None = None
    ticks = 0

    def tick(_: int, frame: types.FrameType | None) -> None:
        nonlocal seen, ticks
        while frame and frame.f_code not in _CODES:
            frame = frame.f_back
        ticks = ticks + 1 if frame and frame is seen else 0
        seen = frame
        if ticks >= LIMIT_S:
            raise _TooSlowError

    before = signal.signal(signal.SIGALRM, tick)
    timer = signal.setitimer(signal.ITIMER_REAL, 1, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if before is None else before)


# ---- what C calls ----

_Call = TypeVar("_Call", bound=Callable[..., int])
_DISPATCH: int = lib.SS_DISPATCH
_WAIT: int = lib.SS_WAIT
_FOREVER: int = lib.SS_FOREVER


def _failed(_: object, error: BaseException, trace: types.TracebackType) -> None:
    """Keep what a call has raised; C is told -1."""
    frame = trace.tb_frame
    host: AtDisk = ffi.from_handle(frame.f_locals["context"])
    host.error = error.with_traceback(trace)
    host.call = frame.f_code.co_name.removeprefix("foreign_")


_called: Callable[[_Call], _Call] = ffi.def_extern(error=-1, onerror=_failed)


@_called
def foreign_arrived(
    context: Any,
    number: int,
    start: int,
    sectors: int,
    write: bool,
    sync: bool,
    owner: int,
    arrival_ns: int,
    now_ns: int,
) -> int:
    """A request has come."""
    host: AtDisk = ffi.from_handle(context)
    request = Request(number, start, sectors, write, sync, owner, arrival_ns)
    host.pending[number] = request
    host.arrived(request, now_ns)
    return 0


@_called
def foreign_choose(context: Any, now_ns: int, head_sector: int, answer: Any) -> int:
    """What is to be done."""
    host: AtDisk = ffi.from_handle(context)
    chosen = host.choose(now_ns, head_sector)
    if type(chosen) is Request:
        number = chosen._number
        if host.pending.get(number) is chosen:
            answer[0] = number
            return _DISPATCH
    elif chosen is None:
        return _WAIT  # the answer is SS_FOREVER
    elif type(chosen) is int and now_ns < chosen < _FOREVER:
        answer[0] = chosen
        return _WAIT
    raise host.refuse(chosen, now_ns)


@_called
def foreign_dispatched(context: Any, number: int, now_ns: int) -> int:
    """It goes to the disk."""
    host: AtDisk = ffi.from_handle(context)
    request = host.pending.pop(number)
    if host.completed:
        host.sent[number] = request
    host.dispatched(request, now_ns)
    return 0


@_called
def foreign_completed(context: Any, number: int, now_ns: int) -> int:
    """The disk has done it. Not called if the policy has no such method."""
    host: AtDisk = ffi.from_handle(context)
    assert host.completed
    host.completed(host.sent.pop(number), now_ns)
    return 0


@_called
def foreign_merged(context: Any, number: int, start: int, sectors: int, now_ns: int) -> int:
    """It has grown."""
    host: AtDisk = ffi.from_handle(context)
    request = host.pending[number]
    old_start, request.start, request.sectors = request.start, start, sectors
    if host.merged:
        host.merged(request, old_start, now_ns)
    return 0


@_called
def foreign_joins(context: Any, number: int, following: int, arrival_ns: int) -> int:
    """It will take in the one behind it, and is as old as the older of them."""
    host: AtDisk = ffi.from_handle(context)
    request = host.pending[number]
    request.arrival_ns = arrival_ns
    if host.joins:
        host.joins(request, host.pending[following])
    return 0


@_called
def foreign_removed(context: Any, number: int, now_ns: int) -> int:
    """It is pending no longer."""
    host: AtDisk = ffi.from_handle(context)
    host.removed(host.pending.pop(number), now_ns)
    return 0


_CODES = {globals()[f"foreign_{call}"].__code__ for call in CALLS}
