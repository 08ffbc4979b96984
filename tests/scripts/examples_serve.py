#!/usr/bin/env python3
"""examples_serve.py - the servers of examples/ against clients that are not ours.

Each is started on a free port, talked to over loopback, and asked to end by SIGTERM while somebody
is connected; it must end with status 0. All of that with either reactor; where the kernel or the
build has no io_uring, with epoll alone.

SPDX-License-Identifier: Apache-2.0
"""
import ctypes
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import sys
import tempfile

EXAMPLES = pathlib.Path(os.environ["PROGRAM_DIR"]).parent.parent / "examples"
EMULATOR = shlex.split(os.environ.get("EMULATOR", ""))


def command(name, *arguments):
    return [*EMULATOR, str(EXAMPLES / name), *map(str, arguments)]


def kernel_has_io_uring():
    """Whether it gives a ring to anybody who asks."""
    parameters = ctypes.create_string_buffer(120)
    ring = ctypes.CDLL(None).syscall(425, 4, parameters)  # io_uring_setup
    if ring >= 0:
        os.close(ring)
    return ring >= 0


def built_with_io_uring():
    return b"io_uring_queue_init_params" in (EXAMPLES / "echo_server").read_bytes()


class Server:
    """One that runs until the end of a block, and then ends within so many seconds."""

    def __init__(self, name, *arguments, patience=60):
        self.patience = patience
        self.process = subprocess.Popen(
            command(name, *arguments), stdout=subprocess.PIPE, text=True
        )
        self.port = int(self.process.stdout.readline().split()[1])

    def __enter__(self):
        return self

    def reactors(self):
        """Those that it has made: epoll, io_uring."""
        numbers = pathlib.Path(f"/proc/{self.process.pid}/fd").iterdir()
        links = {os.readlink(number) for number in numbers}
        known = {"anon_inode:[eventpoll]": "epoll", "anon_inode:[io_uring]": "io_uring"}
        return {known[link] for link in links & known.keys()}

    def connect(self):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=30)
        return peer, peer.makefile("r")

    def __exit__(self, *failure):
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout=self.patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert failure[0] is not None or status == 0, f"ended with status {status}"


def hear(lines, wanted):
    """Reads until that line; the end of the connection is none."""
    while (line := lines.readline()) != wanted:
        assert line, f"the connection ended before {wanted!r}"


def echo():
    with Server("echo_server", 0) as server:
        peers = [server.connect() for _ in range(20)]
        for i, (peer, lines) in enumerate(peers):
            peer.sendall(f"line {i}\n".encode())
            assert lines.readline() == f"line {i}\n"
        if not EMULATOR:  # which has descriptors of its own
            assert server.reactors() == {os.environ["WEFT_REACTOR"]}, server.reactors()
        peer, lines = peers[0]
        sent = b"x" * 100_000
        peer.sendall(sent + b"\n")
        assert lines.readline() == sent.decode() + "\n"
        out = subprocess.run(
            command("load_generator", "127.0.0.1", server.port, 5, 500),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert out.returncode == 0 and "500 requests" in out.stdout, out


def chat():
    with Server("chat_server", 0) as server:
        peers = []
        for name in ("ann", "bob", "eve"):
            peer, lines = server.connect()
            peer.sendall(f"{name}\n".encode())
            hear(lines, f"{name} is here\n")
            peers.append((peer, lines))
        peers[0][0].sendall(b"hello all\n")
        for _, lines in peers[1:]:
            hear(lines, "ann: hello all\n")
        peers[2][0].close()
        peers[2][1].close()
        hear(peers[0][1], "eve has left\n")


def forward():
    with Server("echo_server", 0) as target:
        with Server("port_forwarder", 0, "127.0.0.1", target.port) as server:
            peer, lines = server.connect()
            peer.sendall(b"there and back\n")
            assert lines.readline() == "there and back\n"
            peer.shutdown(socket.SHUT_WR)
            assert lines.readline() == ""
        # Less than the grace that servers have by themselves.
        with Server("port_forwarder", 0, "127.0.0.1", target.port, patience=9) as server:
            idle, lines = server.connect()
            idle.sendall(b"still here\n")
            assert lines.readline() == "still here\n"
    with socket.create_server(("127.0.0.1", 0)) as mute:  # never says anything
        port = mute.getsockname()[1]
        with Server("port_forwarder", 0, "127.0.0.1", port, patience=9) as server:
            idle, lines = server.connect()
            there, _ = mute.accept()
        assert lines.readline() == ""
        there.close()
    with socket.socket() as closed:  # nobody listens
        closed.bind(("127.0.0.1", 0))
        with Server("port_forwarder", 0, "127.0.0.1", closed.getsockname()[1]) as server:
            peer, lines = server.connect()
            assert lines.readline() == ""


def crawl():
    with tempfile.TemporaryDirectory() as folder:
        for i in range(50):
            path = pathlib.Path(folder) / str(i % 7) / f"{i}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("one two three\n")
        out = subprocess.run(
            command("file_crawler", folder), capture_output=True, text=True, timeout=60
        )
        assert out.stdout == "50 files, 150 words, 0 not readable\n", out


def refuse():
    """What cannot be done is said in a line, with a status of its own; nothing is aborted."""
    with socket.socket() as taken, socket.socket() as closed:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        closed.bind(("127.0.0.1", 0))  # nobody listens
        busy, refused = (one.getsockname()[1] for one in (taken, closed))
        for said, *arguments in (
            ("in use", "echo_server", busy),
            ("in use", "chat_server", busy),
            ("in use", "port_forwarder", busy, "localhost", 1),
            ("no number of a port", "echo_server", 99999),
            ("no number of a port", "echo_server", "80x"),
            ("no number of a port", "chat_server", "door"),
            ("wants a port", "port_forwarder", 1, "localhost"),
            ("refused", "load_generator", "127.0.0.1", refused, 3, 10),
            ("wants a host", "load_generator", "127.0.0.1"),
            ("at least one", "load_generator", "127.0.0.1", refused, 3, 0),
            ("1 not readable", "file_crawler", "/nobody/has/this"),
        ):
            out = subprocess.run(command(*arguments), capture_output=True, text=True, timeout=60)
            assert out.returncode in (1, 2) and said in out.stdout + out.stderr, out


def main():
    if not (EXAMPLES / "echo_server").exists():
        print("the examples were not built")
        return 77
    if "thread" in os.environ.get("SANITIZE", ""):
        print("TSan holds signals back from threads that sleep")
        return 77
    reactors = ["epoll"]
    if not built_with_io_uring():
        print("io_uring: built without it")
    elif not kernel_has_io_uring():
        print("io_uring: refused by the kernel")
    else:
        reactors.append("io_uring")
    for reactor in reactors:
        os.environ["WEFT_REACTOR"] = reactor
        for test in (echo, chat, forward):
            test()
            print(f"{test.__name__}, {reactor}: good")
    for test in (crawl, refuse):
        test()
        print(f"{test.__name__}: good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
