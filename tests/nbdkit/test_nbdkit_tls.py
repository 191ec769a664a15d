# SPDX-License-Identifier: GPL-2.0-only
"""Who may use an export: TLS by key and by certificate, and a socket's permissions.

These are the ways that docs/guide/NBDKIT.md advises.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nbd_server import Server, image, nbd, needs_plugin, wait_until
from said import ran

from streamsched.hosts.nbdhost import find_plugin

pytestmark = [
    needs_plugin,
    pytest.mark.skipif(
        not (shutil.which("psktool") and shutil.which("certtool")),
        reason="gnutls-bin is missing; tools/setup.sh nbdkit installs it",
    ),
]


def tool(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL)


def handed_over(
    folder: Path, disk: Path, listening: socket.socket, options: tuple[str, ...] = ()
) -> Server:
    """A server that is given its socket, as systemd does; so nobody takes its port before."""
    activated = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "$@" 3<&{listening.fileno()}'
    return Server(
        folder,
        str(disk),
        options=options,
        wrapper=("bash", "-c", activated, "bash"),
        listen=("--foreground",),
        fds=(listening.fileno(),),
    )


def works(handle: Any) -> bool:
    handle.pwrite(b"secret" + bytes(506), 0)
    return bool(handle.pread(6 + 506, 0)[:6] == b"secret") and bool(handle.get_tls_negotiated())


def test_tls_with_a_shared_key(tmp_path: Path) -> None:
    keys = tmp_path / "keys.psk"
    tool("psktool", "--username=alice", f"--pskfile={keys}")
    other = tmp_path / "other.psk"
    tool("psktool", "--username=alice", f"--pskfile={other}")
    assert keys.stat().st_mode & 0o077 == 0
    disk = image(tmp_path / "disk", 1 << 20)
    with Server(tmp_path, str(disk), options=("--tls=require", f"--tls-psk={keys}")) as server:

        def connect(psk: Path | None) -> Any:
            handle = nbd.NBD()
            if psk:
                handle.set_tls(nbd.TLS_REQUIRE)
                handle.set_tls_username("alice")
                handle.set_tls_psk_file(str(psk))
            handle.connect_unix(str(server.socket))
            return handle

        handle = connect(keys)
        assert works(handle)
        handle.shutdown()
        for wrong in (other, None):
            with pytest.raises(nbd.Error):
                connect(wrong)


def certificates(folder: Path, name: str, authority: Path, kind: str) -> None:
    """A key and a certificate of that authority, for a server or a client."""
    folder.mkdir(exist_ok=True)
    template = folder / "template"
    template.write_text(
        f'cn = "{name}"\ndns_name = "localhost"\nip_address = "127.0.0.1"\n'
        f"tls_www_{kind}\nencryption_key\nsigning_key\n"
    )
    key = folder / f"{kind}-key.pem"
    tool("certtool", "--generate-privkey", "--ecc", "--outfile", key)
    tool(
        *("certtool", "--generate-certificate", "--load-ca-certificate", authority / "ca-cert.pem"),
        *("--load-ca-privkey", authority / "ca-key.pem", "--load-privkey", key),
        *("--template", template, "--outfile", folder / f"{kind}-cert.pem"),
    )
    shutil.copy(authority / "ca-cert.pem", folder / "ca-cert.pem")


def make_authority(folder: Path) -> Path:
    folder.mkdir()
    (folder / "template").write_text('cn = "authority"\nca\ncert_signing_key\n')
    tool("certtool", "--generate-privkey", "--ecc", "--outfile", folder / "ca-key.pem")
    tool(
        *("certtool", "--generate-self-signed", "--load-privkey", folder / "ca-key.pem"),
        *("--template", folder / "template", "--outfile", folder / "ca-cert.pem"),
    )
    return folder


def test_tls_with_certificates(tmp_path: Path) -> None:
    authority = make_authority(tmp_path / "authority")
    certificates(tmp_path / "pki", "localhost", authority, "server")
    certificates(tmp_path / "client", "client", authority, "client")
    stranger = make_authority(tmp_path / "stranger-authority")
    certificates(tmp_path / "stranger", "client", stranger, "client")
    # It believes in the right server, but comes with a certificate of its own making.
    shutil.copy(authority / "ca-cert.pem", tmp_path / "stranger" / "ca-cert.pem")
    disk = image(tmp_path / "disk", 1 << 20)
    options = (
        "--tls=require",
        f"--tls-certificates={tmp_path / 'pki'}",
        "--tls-verify-peer",
    )
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port = listening.getsockname()[1]
        stack.enter_context(handed_over(tmp_path, disk, listening, options))

        def connect(folder: Path | None) -> Any:
            handle = nbd.NBD()
            if folder:
                handle.set_tls(nbd.TLS_REQUIRE)
                handle.set_tls_certificates(str(folder))
            handle.connect_tcp("localhost", str(port))
            handle.pread(512, 0)
            return handle

        handle = connect(tmp_path / "client")
        assert works(handle)
        handle.shutdown()
        for wrong in (tmp_path / "stranger", None):
            with pytest.raises(nbd.Error):
                connect(wrong)


def test_systemds_own_tool_hands_over_a_socket(tmp_path: Path) -> None:
    if not shutil.which("systemd-socket-activate"):
        pytest.skip("systemd-socket-activate is missing: install the Debian package systemd")
    disk = image(tmp_path / "disk", 1 << 20)
    path = tmp_path / "socket"
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen(
            [
                *("systemd-socket-activate", f"--listen={path}"),
                *("nbdkit", "--foreground", find_plugin(), disk, "stats=-"),
            ],
            stderr=said,
            stdin=subprocess.DEVNULL,
        )
    try:
        wait_until(
            lambda: "Listening on" in (tmp_path / "said").read_text() or process.poll() is not None,
            "it listens",
        )
        handle = nbd.NBD()
        handle.connect_unix(str(path))  # with it the server starts
        handle.pwrite(b"activated" + bytes(503), 0)
        assert handle.pread(512, 0)[:9] == b"activated"
        handle.shutdown()  # before the server ends, which would reset the connection
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    assert "write: 1 requests, 512 bytes" in (tmp_path / "said").read_text()


def test_systemd_understands_the_units(root: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is missing: install the Debian package systemd")
    units = sorted((root / "nbdkit" / "systemd").iterdir())
    assert len(units) == 2
    done = ran("systemd-analyze", "verify", "--man=no", *units)
    assert done.returncode == 0, done.stderr
    # Of other units on this machine it complains, too.
    assert "streamsched" not in done.stderr, done.stderr


def test_a_socket_that_only_its_group_may_use(tmp_path: Path) -> None:
    """As systemd makes it from nbdkit/systemd/: mode 0660, handed over to nbdkit."""
    disk = image(tmp_path / "disk", 1 << 20)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        (tmp_path / "socket").chmod(0o660)
        listening.listen()
        with handed_over(tmp_path, disk, listening) as server:
            handle = server.connect()
            assert handle.get_size() == 1 << 20
            handle.shutdown()
            if os.getuid():
                return  # only root can be somebody else
            for folder in (tmp_path, *tmp_path.parents):
                with contextlib.suppress(PermissionError):
                    folder.chmod(folder.stat().st_mode | 0o011)
            program = (
                "import socket, sys\n"
                "try:\n"
                "    socket.socket(socket.AF_UNIX).connect(sys.argv[1])\n"
                "except PermissionError:\n"
                "    sys.exit(42)\n"
            )
            for group, status in ((65534, 42), (os.getgid(), 0)):
                done = subprocess.run(
                    ["/usr/bin/python3", "-c", program, server.socket],
                    user=65534,
                    group=group,
                    extra_groups=[],
                    check=False,
                )
                assert done.returncode == status
