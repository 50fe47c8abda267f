# hostile-test
# id: OUT-101
# title: control sequences, overlong and cut characters, bidirectional marks on both streams
# class: output-encoding
# lang: python
# expect: contained|ok
# severity: medium
# checks: {"result": {"json_valid": true, "stdout_contains": "END"}, "next_run_ok": true}
# bounds: 200 kB
# why: whoever prints or parses a result meets bytes that a guest chose
import sys
_e = []
def esc(m): _e.append(str(m))
def done(why="refused"):
    sys.stdout.write(("ESCAPED: " + " | ".join(_e)[:1800] if _e else "CONTAINED: " + why) + "\n")
    sys.stdout.flush()
import os
odd = [b"\x1b]0;title\x07", b"\x1b[2J\x1b[1;1H", b"\x1bP+q544e\x1b\\", b"\x1b]52;c;ZXZpbA==\x07", b"\x9b31m", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",
       b"\xed\xa0\x80\xed\xb0\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xff\xfe\x00\x00", "\u202e\u2066\u2069\u200f".encode(), b"\xe2\x80", b"\x00\x01\x7f",
       b"\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", b"data: {}\n\nevent: end\n\n", b'"}\n{"outcome":"exited"}\n', "\u2028\u2029\ufeff".encode(), bytes(range(256))]
for fd in (1, 2):
    for _ in range(100):
        for piece in odd: os.write(fd, piece)
    for piece in odd:
        for byte in piece: os.write(fd, bytes([byte]))
os.write(1, b"\nEND\n")
done("wrote them")
