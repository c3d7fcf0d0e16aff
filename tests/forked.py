"""Programs in processes of their own that begin with the package loaded.

One process loads it, which takes a second or two, and is forked for each program: what tests look at begins after that.
A program ends as any other: by its last line, an error, ``sys.exit`` or a signal. Where processes with threads cannot
be forked, every program loads what it needs.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

HERE = str(Path(__file__).parent)
# For programs in which of all that is loaded only numba stays, and keeps compiled code in the folder that is the first
# argument: the package begins anew, as it does with NUMBA_CACHE_DIR.
ANEW = """
import sys
import numba

numba.config.CACHE_DIR = sys.argv.pop(1)
for name in [name for name in sys.modules if name.startswith("rankernel")]:
    del sys.modules[name]
"""
FIRST = """
import gc, json, os, socket, sys, types, warnings
import rankernel.cli.app
import rankernel as rk

rk.Mallows(0.3).gram([[0, 1], [1, 0]])
gc.freeze()  # a fork that looks through all of it at its end would copy it
link = socket.socket(fileno=int(sys.argv[1]))
link.send(b"ready")
while True:
    asked, streams, *_ = socket.recv_fds(link, 2**12, 4)
    if not asked:
        sys.exit()
    asked = json.loads(asked)
    if "wait" in asked:
        link.send(str(os.waitstatus_to_exitcode(os.waitpid(asked["wait"], 0)[1])).encode())
        continue
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads; those of linear algebra are ready for it
        child = os.fork()
    if not child:
        break
    for stream in streams:
        os.close(stream)
    link.send(str(child).encode())
link.close()
for place, stream in enumerate(streams[1:]):
    os.dup2(stream, place)
    os.close(stream)
sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", buffering=1, errors="backslashreplace")
os.chdir(asked["folder"])
sys.argv = ["-c", *asked["arguments"]]
sys.path.insert(0, asked["here"])
with open(streams[0]) as program:
    program = program.read()
sys.modules["__main__"] = types.ModuleType("__main__")
exec(compile(program, "<program>", "exec"), vars(sys.modules["__main__"]))
"""


class Runner:
    """Something that starts programs with pipes to and from them, as ``subprocess.Popen`` does."""

    def run(self, program, *arguments):
        """Run a program; return its exit code, what it printed and what it complained of."""
        started = self.start(program, *arguments)
        printed, complained = started.communicate()
        return started.returncode, printed, complained

    def watch(self, program, *arguments, until=None):
        """Start a program that complains to a terminal; return it and what is seen there, until its end or a word."""
        ours, theirs = os.openpty()
        started = self.start(program, *arguments, stderr=theirs)
        os.close(theirs)
        seen = b""
        while until is None or until not in seen:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            seen += part
        os.close(ours)
        return started, seen

    def close(self):
        """End what was begun for all programs."""


class Unloaded(Runner):
    """Starts an interpreter for each program."""

    def start(self, program, *arguments, stderr=subprocess.PIPE):
        """Start a program."""
        command = [sys.executable, "-c", dedent(program), *map(str, arguments)]
        places = os.pathsep.join([HERE, *filter(None, [os.environ.get("PYTHONPATH")])])
        pipe = subprocess.PIPE
        environment = os.environ | {"PYTHONPATH": places}
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, text=True, env=environment)


class Loaded(Runner):
    """A process that has the package loaded and waits for programs."""

    def __init__(self):
        self.link, theirs = socket.socketpair()
        command = [sys.executable, "-c", FIRST, str(theirs.fileno())]
        self.process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        theirs.close()
        assert self.link.recv(5) == b"ready"

    def start(self, program, *arguments, stderr=subprocess.PIPE):
        """Start a program."""
        return Program(self, program, arguments, stderr)

    def close(self):
        """End the process."""
        self.link.close()
        assert self.process.wait() == 0


class Program:
    """A program that runs in a fork."""

    def __init__(self, loaded, program, arguments, stderr):
        self.loaded, self.returncode = loaded, None
        text, given, printed, complained = (os.pipe() for _ in range(4))
        theirs = [text[0], given[0], printed[1], complained[1] if stderr == subprocess.PIPE else stderr]
        asked = {"arguments": [*map(str, arguments)], "folder": os.getcwd(), "here": HERE}
        socket.send_fds(loaded.link, [json.dumps(asked).encode()], theirs)
        for end in (text[0], given[0], printed[1], complained[1]):
            os.close(end)
        with open(text[1], "w") as file:
            file.write(dedent(program))
        self.stdin, self.stdout, self.stderr = (
            open(given[1], "w"),  # noqa: SIM115
            open(printed[0]),  # noqa: SIM115
            open(complained[0]),  # noqa: SIM115
        )
        self.pid = int(loaded.link.recv(20))

    def send_signal(self, sign):
        """Send a signal to a program that was not waited for."""
        if self.returncode is None:
            os.kill(self.pid, sign)

    def communicate(self, timeout=600):
        """Wait for the end; return what was printed and complained of, a few lines. Kill what takes too long."""
        if not self.stdin.closed:
            self.stdin.close()
        self.loaded.link.send(json.dumps({"wait": self.pid}).encode())
        self.loaded.link.settimeout(timeout)
        try:
            said = self.loaded.link.recv(20)
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            self.loaded.link.settimeout(None)
            said = self.loaded.link.recv(20)
        self.loaded.link.settimeout(None)
        self.returncode = int(said)
        with self.stdout, self.stderr:
            return self.stdout.read(), self.stderr.read()
