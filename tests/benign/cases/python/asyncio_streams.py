# asyncio servers on TCP and on a unix socket, several clients at once.
import asyncio


async def answer(reader, writer):
    while line := await reader.readline():
        writer.write(line.strip()[::-1] + b"\n")
        await writer.drain()
    writer.close()


async def ask(opening, words):
    reader, writer = await opening
    replies = []
    for word in words:
        writer.write(word.encode() + b"\n")
        replies.append((await reader.readline()).decode().strip())
    writer.close()
    await writer.wait_closed()
    return replies


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    clients = [ask(asyncio.open_connection("127.0.0.1", port), [f"client{n}", "stressed"])
               for n in range(4)]
    print(await asyncio.gather(*clients))
    server.close()
    await server.wait_closed()
    server = await asyncio.start_unix_server(answer, "async.sock")
    print(await ask(asyncio.open_unix_connection("async.sock"), ["level", "unix"]))
    server.close()


asyncio.run(main())
