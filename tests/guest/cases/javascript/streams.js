for (const s of [process.stdin, process.stdout, process.stderr]) console.log(s.constructor.name, s.fd, s.isTTY, s.writable, s.readable, s.writableHighWaterMark, s.readableHighWaterMark)
