#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A camera for the tests: an RTSP server (RFC 2326) that plays MPEG transport streams over RTP.

    rtsp_server.py PORT_FILE SECONDS FILE.ts...

Each client that plays gets the next file, over UDP or inside its own connection as it asks; then
the connection ends, as that of a camera that is switched off.  Ends after the last file, or when
nothing has happened for SECONDS.
"""

import re
import socket
import struct
import sys
import time

PACKET = 7 * 188  # of a transport stream, in one RTP packet
RATE = 200  # packets a second, at most

SDP = b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=test\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n" \
      b"m=video 0 RTP/AVP 33\r\na=control:track\r\n"  # fmt: skip


def reply(conn, seq, lines=(), body=b""):
    head = ["RTSP/1.0 200 OK", f"CSeq: {seq}", *lines]
    if body:
        head.append(f"Content-Length: {len(body)}")
    conn.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + body)


def play(path, send):
    """The file as RTP, payload type 33."""
    with open(path, "rb") as f:
        data = f.read()
    for i in range(0, len(data), PACKET):
        n = i // PACKET
        head = struct.pack(">BBHII", 0x80, 33, n & 0xFFFF, n * 90000 // RATE, 1)
        send(head + data[i : i + PACKET])
        time.sleep(1 / RATE)


def transport(conn, peer, request):
    """How the client wants its packets, and the header that says so."""
    inside = re.search(r"interleaved=(\d+)-", request)
    if inside:
        channel = int(inside[1])
        return (
            lambda p: conn.sendall(b"$" + struct.pack(">BH", channel, len(p)) + p),
            f"Transport: RTP/AVP/TCP;unicast;interleaved={channel}-{channel + 1}",
        )
    ports = re.search(r"client_port=(\d+)-(\d+)", request)
    out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    out.bind(("127.0.0.1", 0))
    own = out.getsockname()[1]
    return (
        lambda p: out.sendto(p, (peer[0], int(ports[1]))),
        f"Transport: RTP/AVP;unicast;client_port={ports[1]}-{ports[2]};server_port={own}-{own + 1}",
    )


def serve(conn, peer, path):
    """One client; True when it has seen the file."""
    text, send = "", None
    while True:
        data = conn.recv(4096)
        if not data:
            return False
        text += data.decode("latin-1")
        while "\r\n\r\n" in text:
            request, text = text.split("\r\n\r\n", 1)
            method = request.split(" ", 1)[0]
            seq = re.search(r"CSeq: *(\d+)", request, re.I)[1]
            if method == "OPTIONS":
                reply(conn, seq, ["Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN"])
            elif method == "DESCRIBE":
                reply(conn, seq, ["Content-Type: application/sdp"], SDP)
            elif method == "SETUP":
                send, line = transport(conn, peer, request)
                reply(conn, seq, [line, "Session: 1"])
            elif method == "PLAY":
                reply(conn, seq, ["Session: 1"])
                play(path, send)
                return True
            else:
                reply(conn, seq, ["Session: 1"])


def main():
    server = socket.create_server(("127.0.0.1", 0))
    server.settimeout(float(sys.argv[2]))
    with open(sys.argv[1], "w", encoding="ascii") as f:
        f.write(f"{server.getsockname()[1]}\n")
    for path in sys.argv[3:]:
        done = False
        while not done:
            try:
                conn, peer = server.accept()
            except socket.timeout:
                return
            with conn:
                try:
                    done = serve(conn, peer, path)
                except OSError:
                    pass


if __name__ == "__main__":
    main()
