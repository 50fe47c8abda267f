// boot - a Node that waits in its sandbox until its program is there.
//
// Node has threads, so it cannot be forked: it is started ahead of need, as for a cold run, with
// this loaded before the program (NODE_OPTIONS).  getpriority() is ours (guest/call.h), and waits
// for the program's files and words.  What cannot be put right after so late a start is
// started afresh.  Nothing of this is left when the program runs.
'use strict';
{
  const WAIT = 0x76696101, AFRESH = 0x76696102; // these are no processes
  const HAS_WORDS = 1, SESSION = 8;
  const CONTROL_FD = 1000, WORDS_FD = 1001; // guest/go.h
  // Variables that are read when Node starts.
  const STARTERS = /^(NODE_|LD_|LC_|LANG|ICU_|UV_|SSL_|OPENSSL_|GLIBC_|MALLOC_)/;
  const fs = require('fs');
  const os = require('os');

  const hide = () => {
    delete require.cache[__filename];
    const { _pathCache: found } = module.constructor;
    for (const key of Object.keys(found)) {
      if (found[key] === __filename) delete found[key];
    }
    for (const name of Object.keys(process.env)) {
      if (/^(NODE_OPTIONS$|LD_PRELOAD$|VIAL_)/.test(name)) delete process.env[name];
    }
  };

  // Arguments, environment, name: items of a letter, a text and a NUL.
  const takeWords = () => {
    const items = fs.readFileSync(WORDS_FD, 'utf8').split('\0').slice(0, -1);
    const all = (kind) => items.filter((item) => item[0] === kind).map((item) => item.slice(1));
    const changed = all('e')
      .map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])
      .filter(([name, value]) => process.env[name] !== value);
    if (all('n').length > 0 || changed.some(([name]) => STARTERS.test(name))) {
      os.getPriority(AFRESH);
    }
    for (const [name, value] of changed) process.env[name] = value;
    process.argv.push(...all('a'));
  };

  // The session's driver in the program's place.
  const enterSession = () => {
    const { constructor: Module } = module;
    const { runMain } = Module;
    process.env.VIAL_SESSION_FD = CONTROL_FD;
    Module.runMain = () => {
      Module.runMain = runMain;
      Module.runMain(`${__dirname}/session.js`);
    };
  };

  const wait = () => {
    const told = os.getPriority(WAIT);
    if (told & HAS_WORDS) takeWords();
    // Node has looked for one when it loaded us, and would not look again.
    if (fs.existsSync('package.json')) os.getPriority(AFRESH);
    if (told & HAS_WORDS) fs.closeSync(WORDS_FD);
    if (told & SESSION) enterSession();
  };

  const fail = (error) => { // it must not go on as something else
    const text = Buffer.alloc(248);
    text.write(String(error), 0, 240);
    try { // GO_FAILED: a struct err
      fs.writeSync(CONTROL_FD, Buffer.concat([Buffer.from(Uint32Array.of(120, 256, 8, 0).buffer), text]));
    } catch { // the program was already here
      fs.writeSync(2, `vial: ${error}\n`);
    }
    process.reallyExit(125);
  };

  hide();
  if (require('worker_threads').isMainThread) { // every worker of the program's loads this, too
    try {
      wait();
    } catch (error) {
      fail(error);
    }
  }
}
