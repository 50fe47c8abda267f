// boot - a Node that waits in its sandbox until its program is there.
//
// Node cannot be forked once it has threads, so it is started ahead of need, as for a cold run, with
// this loaded before the program (NODE_OPTIONS).  It takes the records of guest/go.h from the
// control socket, as guest/go.c does, and leaves nothing of itself behind.
'use strict';
{
  const fs = require('fs');
  const path = require('path');
  const CONTROL = 1000;
  const STAMP = 1000000000; // of files that were given, see engine/workspace.h

  const take = (len) => {
    const bytes = Buffer.allocUnsafe(len);
    for (let at = 0; at < len;) {
      const n = fs.readSync(CONTROL, bytes, at, len - at, null);
      if (n === 0) process.reallyExit(125); // not needed after all
      at += n;
    }
    return bytes;
  };

  const write = (name, contents) => {
    const parts = name.toString('latin1').split('/');
    if (parts.some((part) => part === '' || part === '.' || part === '..')) {
      throw new Error('bad file name');
    }
    const dir = path.dirname(name.toString());
    if (dir !== '.') fs.mkdirSync(dir, { recursive: true });
    const { O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW } = fs.constants;
    const fd = fs.openSync(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644);
    for (let at = 0; at < contents.length;) at += fs.writeSync(fd, contents, at);
    fs.futimesSync(fd, STAMP, STAMP);
    fs.closeSync(fd);
  };

  const receive = () => {
    for (;;) {
      const head = take(8);
      const kind = String.fromCharCode(head.readUInt32LE(0));
      const body = take(head.readUInt32LE(4));
      if (kind === 'r') return;
      if (kind === 'f') {
        const end = body.indexOf(0);
        write(body.subarray(0, end), body.subarray(end + 1));
      } else if (kind === 'a') {
        process.argv.push(body.toString());
      } else if (kind === 'e') {
        const text = body.toString();
        const equals = text.indexOf('=');
        process.env[text.slice(0, equals)] = text.slice(equals + 1);
      }
    }
  };

  delete process.env.NODE_OPTIONS;
  delete process.env.VIAL_PRELOAD;
  delete require.cache[__filename];
  receive();
  fs.closeSync(CONTROL); // what the program starts has no use for it
}
