"""HTTP as bytes: whole, in pieces, and wrong."""
import pytest

from vial._http1 import Lines, ProtocolError, Response, encode_head, encode_headers

PLAIN = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n")


def take(data, step):
    response = Response("POST")
    body = b""
    for start in range(0, len(data), step):
        body += b"".join(response.feed(data[start:start + step]))
    return response, body


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_bodies_in_pieces(step):
    response, body = take(PLAIN, step)
    assert (response.status, body, response.done, response.keeps_alive) == (200, b"hello", True, True)
    response, body = take(CHUNKED, step)
    assert (body, response.done, response.keeps_alive) == (b"abc0123456789abcdef", True, True)


def test_interim_answers_are_skipped():
    response, body = take(b"HTTP/1.1 100 Continue\r\n\r\n" + PLAIN, 4)
    assert (response.status, body) == (200, b"hello")


def test_until_the_end():
    response, body = take(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab", 3)
    assert body == b"ab" and not response.done and not response.keeps_alive
    response.finish()
    assert response.done


@pytest.mark.parametrize("data", [
    b"FTP 200\r\n\r\n", b"HTTP/1.1 xx\r\n\r\n", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"x" * (1 << 17)])
def test_what_is_not_http(data):
    with pytest.raises(ProtocolError):
        take(data, 1000)


def test_an_answer_that_breaks_off():
    response, _ = take(PLAIN[:-1], 10)
    with pytest.raises(ProtocolError):
        response.finish()


def test_lines():
    lines = Lines()
    assert lines.feed(b"a\nb") == [b"a"]
    assert lines.feed(b"c\n\n") == [b"bc"]


def test_a_request():
    common = encode_headers({"Host": "h"})
    assert encode_head("GET", "/x", common, "text/a", None) == \
        b"GET /x HTTP/1.1\r\nHost: h\r\nAccept: text/a\r\n\r\n"
    assert encode_head("POST", "/x", common, "text/a", 0).endswith(
        b"\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n")
