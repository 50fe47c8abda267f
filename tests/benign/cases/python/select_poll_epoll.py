# The three ways to wait on descriptors, and the selectors module on top.
import os
import select
import selectors
import socket

reader, writer = os.pipe()
print(select.select([reader], [writer], [], 0)[0:2] == ([], [writer]))
os.write(writer, b"x")
print(select.select([reader], [], [], 1)[0] == [reader])
poll = select.poll()
poll.register(reader, select.POLLIN)
print(poll.poll(0) == [(reader, select.POLLIN)])
os.read(reader, 1)
print(poll.poll(5))
with select.epoll() as epoll:
    epoll.register(reader, select.EPOLLIN | select.EPOLLET)
    os.write(writer, b"y")
    print(epoll.poll(1) == [(reader, select.EPOLLIN)], epoll.poll(0))
    os.close(writer)
    print(epoll.poll(1)[0][1] & select.EPOLLHUP != 0)
with selectors.DefaultSelector() as selector:
    pairs = [socket.socketpair() for _ in range(5)]
    for number, (_, right) in enumerate(pairs):
        selector.register(right, selectors.EVENT_READ, number)
    pairs[3][0].send(b"three")
    pairs[1][0].send(b"one")
    ready = sorted(key.data for key, _ in selector.select(1))
    print(type(selector).__name__, ready, [pairs[n][1].recv(10) for n in ready])
