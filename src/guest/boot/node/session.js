// session - a Node that lives on between steps (docs/SESSION-PROTOCOL.md).
//
// Between steps it waits for the channel and for nothing else: its event loop stands still, and
// what earlier steps left there (timers, sockets, promises) goes on with the next step, before
// whose code the loop turns once, so that what has become due is done.  A "cell" is over when its
// value is there (a promise is waited for) and its calls have returned; a "script" when nothing is
// left to wait for, as a file's program would be.  When nothing is left and the value still is not
// there, it never will be: an exception.
//
// An exception that nobody catches is printed, as in Node's REPL, and ends nothing; only a script
// ends with it.  SIGINT stops the code itself: also a loop without end, also one after an `await`,
// but not one that a timer or a finished read has called (Node can terminate only what runs inside
// a vm script), nor what is not JavaScript (execSync).  A step that waits is left as it is: what it
// waits for may still come, in a later step.
//
// Children do not get the channel: Node closes what it has inherited below 16 for them.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const Module = require('module');
const { Writable } = require('stream');
const { constants: { signals: { SIGINT } } } = require('os');
const { executionAsyncId } = require('async_hooks');
const { compile, IMPORT } = require('./session-code.js');
const { sayValue, sayException, tracebackOf } = require('./session-say.js');

// The program may put others in the places of these.
const { readSync, writeSync, fstatSync, openSync, read } = fs;
const { parse, stringify } = JSON;
const world = globalThis;
const { Atomics, Buffer, Map, Number, Object, Promise, console, process, setImmediate } = world;
const { reallyExit, _tickCallback: runMicrotasks } = process;

Error.stackTraceLimit = 30; // ten of which are ours
const CHUNK = 65536;
const SOURCES_MAX = 64; // steps whose text is kept for tracebacks
const VALUE_MAX = 1048576, CALLS_MAX = 1000;
const STUCK = 125; // our own failure
const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

class CallbackError extends Error {}
Object.defineProperty(CallbackError.prototype, 'name', { value: 'CallbackError' });

// ---- descriptors -----------------------------------------------------------------------------

const resting = new Int32Array(new SharedArrayBuffer(4));

// Signals interrupt both, and a child may have made a pipe that we share non-blocking.
const insist = (work) => {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (error.code === 'EAGAIN') Atomics.wait(resting, 0, 0, 1);
      else if (error.code !== 'EINTR') throw error;
    }
  }
};

const writeAll = (fd, data) => {
  for (let at = 0; at < data.length;) at += insist(() => writeSync(fd, data, at));
};

// process.stdout and stderr: what is written is in the pipe when write() returns.
class Output extends Writable {
  constructor(fd) {
    super();
    this.fd = fd;
  }

  _write(chunk, encoding, done) {
    try {
      writeAll(this.fd, chunk);
      done();
    } catch (error) {
      done(error.code === 'EPIPE' ? null : error); // nobody reads it any more
    }
  }

  _destroy(error, done) {
    done(error);
  }
}

const isOpen = (fd) => {
  try {
    fstatSync(fd);
    return true;
  } catch {
    return false;
  }
};

const openSpare = (fd) => {
  try {
    return openSync(`/proc/self/fd/${fd}`, 'a');
  } catch {
    return openSync('/dev/null', 'a');
  }
};

const outputs = { stdout: { fd: 1 }, stderr: { fd: 2 } };

const renew = (name, output) => {
  output.stream = console[`_${name}`] = new Output(output.fd);
};

const renewOutputs = () => {
  for (const [name, output] of Object.entries(outputs)) renew(name, output);
};

// A step that closed them is not to silence those after it, nor is a file to be opened in their
// place.
const mendOutputs = () => {
  while (!isOpen(0)) openSync('/dev/null', 'r');
  for (const [name, output] of Object.entries(outputs)) {
    if (!isOpen(output.fd)) openSync(`/proc/self/fd/${output.spare}`, 'a');
    if (!output.stream.writable) renew(name, output);
  }
};

const takeOutputs = () => {
  for (const [name, output] of Object.entries(outputs)) {
    output.spare = openSpare(output.fd);
    Object.defineProperty(process, name, { configurable: true, enumerable: true,
      get: () => output.stream });
  }
  renewOutputs();
};

// ---- the channel -----------------------------------------------------------------------------

class Channel {
  constructor(fd) {
    this.fd = fd;
    this.chunk = Buffer.alloc(CHUNK);
    this.parts = []; // of a message that is not complete
    this.lines = [];
    this.isListening = false;
  }

  send(message) {
    writeAll(this.fd, Buffer.from(`${stringify(message)}\n`));
  }

  // Without letting anything else happen.
  next() {
    while (this.lines.length === 0) {
      this.take(insist(() => readSync(this.fd, this.chunk, 0, CHUNK, null)));
    }
    return parse(this.lines.shift());
  }

  // While the loop turns, which it does as long as we wait here.
  listen(then) {
    if (this.isListening) return;
    this.isListening = true;
    read(this.fd, this.chunk, 0, CHUNK, null, (error, count) => {
      this.isListening = false;
      if (error?.code === 'EINTR') return this.listen(then);
      this.take(error ? 0 : count);
      return then();
    });
  }

  take(count) {
    if (count === 0) reallyExit(0); // the server has gone
    const data = this.chunk.subarray(0, count);
    let from = 0;
    for (let at; (at = data.indexOf(10, from)) >= 0; from = at + 1) {
      this.parts.push(Buffer.from(data.subarray(from, at)));
      this.lines.push(Buffer.concat(this.parts).toString());
      this.parts = [];
    }
    if (from < count) this.parts.push(Buffer.from(data.subarray(from)));
  }
}

// ---- interrupts ------------------------------------------------------------------------------

const ENTER = '__enter__';
const gate = new vm.Script(`${ENTER}()`, { filename: __filename });
const isInterrupt = (error) => error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';

// A handler that process.on() knows nothing of: a step cannot remove it, and vm need not, which
// takes long.
const makeWatcher = () => {
  const { noDeprecation } = process;
  process.noDeprecation = true; // it is said on stderr otherwise
  const { Signal } = process.binding('signal_wrap');
  process.noDeprecation = noDeprecation;
  const made = new Signal();
  made.unref();
  return made;
};
const watcher = makeWatcher();

// Node ends what runs in a vm script at a SIGINT; so this is run in one.  After it Node would die
// of the next one, so we are quick to have our handler back.
const interruptible = (work) => {
  const enter = () => {
    delete world[ENTER];
    return work();
  };
  Object.defineProperty(world, ENTER, { configurable: true, value: enter });
  try {
    return gate.runInThisContext({ breakOnSigint: true, displayErrors: false });
  } finally {
    watcher.stop();
    watcher.start(SIGINT);
  }
};

// What was stopped may have left Node's stack of async contexts with what it had put there, which
// Node would die of.  It clears that stack for an exception that nobody caught.
const UNWIND = new Error('unwind');
let mustUnwind = false;

// Better no session than one that hangs.
const guard = (work) => () => {
  try {
    work();
  } catch {
    reallyExit(STUCK);
  }
  if (!mustUnwind) return;
  mustUnwind = false;
  throw UNWIND;
};
const soon = (work) => setImmediate(guard(work));

// ---- what a step finds -----------------------------------------------------------------------

const define = (name, value, enumerable = true) => {
  const isFixed = Object.getOwnPropertyDescriptor(world, name)?.configurable === false;
  const how = { configurable: true, enumerable, writable: true, value };
  if (isFixed) world[name] = value; // a function that a step has declared
  else Object.defineProperty(world, name, how);
};

// Names are properties from the start, so that they are no accessors (as `crypto` is) and can be
// declared anew.
const declare = (fresh, kept) => {
  for (const name of [...fresh, ...kept]) {
    const was = Object.getOwnPropertyDescriptor(world, name);
    if (!was || (!was.writable && was.configurable)) define(name, undefined);
    else if (fresh.includes(name)) world[name] = undefined;
  }
};

let place = null; // the directory that `require` and `import` start from

const enterPlace = () => {
  const here = process.cwd();
  if (here === place) return;
  place = here;
  const filename = path.join(here, '[session]');
  const main = new Module('.', null);
  Object.assign(main, { filename, loaded: true, paths: Module._nodeModulePaths(here) });
  process.mainModule = main;
  const own = new Module(filename, null);
  own._compile('module.exports = (specifier, options) => import(specifier, options);', filename);
  const names = { require: Module.createRequire(filename), module: main, exports: main.exports,
    __filename: filename, __dirname: here, [IMPORT]: own.exports };
  for (const [name, value] of Object.entries(names)) define(name, value, false);
};

// ---- steps -----------------------------------------------------------------------------------

const channel = new Channel(Number(process.env.VIAL_SESSION_FD));
const sources = new Map();
const callbacks = new Map();
const calls = new Map(); // those that have not returned
const outbox = []; // those that have not been sent: not where a SIGINT could end it half way
let isInside = false; // in what can be interrupted
let lastCall = 0;
let step = null;

const keepSource = (name, code) => {
  sources.delete(name);
  sources.set(name, code);
  if (sources.size > SOURCES_MAX) sources.delete(sources.keys().next().value);
};

const call = (name, args) => new Promise((resolve, reject) => {
  if (!step) throw new Error(`${name}() called when no step runs`);
  if (step.calls >= step.calls_max) {
    throw new Error(`Exceeded max tool calls (${step.calls_max})`);
  }
  if (Buffer.byteLength(stringify(args)) > step.value_max) {
    throw new RangeError(`arguments of ${name}() are larger than ${step.value_max} bytes`);
  }
  step.calls++;
  outbox.push({ resolve, reject, message: { op: 'call', id: step.id, name, args, kwargs: {} } });
  if (!isInside) sendCalls();
});

const sendCalls = () => {
  for (const { resolve, reject, message } of outbox.splice(0)) {
    calls.set(++lastCall, { resolve, reject, id: message.id });
    channel.send({ ...message, call: lastCall });
  }
  if (calls.size > 0) channel.listen(guard(receive));
};

const setCallbacks = (names) => {
  for (const [name, callback] of callbacks) {
    if (world[name] === callback) delete world[name];
  }
  callbacks.clear();
  for (const item of names) {
    const name = item.name ?? item;
    const { [name]: callback } = { [name]: async (...args) => call(name, args) };
    callbacks.set(name, callback);
    define(name, callback);
  }
};

const settleCall = ({ op, call: number, value, type, message }) => {
  const open = calls.get(number);
  calls.delete(number);
  if (!open) return; // an interrupted step made it
  if (op === 'return') open.resolve(value);
  else if (Object.hasOwn(ERRORS, type)) open.reject(new ERRORS[type](message));
  else open.reject(new CallbackError(`${type}: ${message}`));
};

// Promise callbacks are run here, where they can be interrupted; what throws is nobody's.
const settleMicrotasks = () => {
  try {
    runMicrotasks();
  } catch (error) {
    uncaught(error);
  }
};

const settle = (which, outcome) => {
  if (which !== step || step.outcome) return; // an interrupted one comes too late
  step.outcome = outcome;
  if (step.isWaiting) soon(finishIfDone);
};

const valueOf = (value) => {
  if (value !== undefined || step.mode !== 'function') return value;
  const { result } = world;
  return step.declaresResult || result !== step.resultBefore ? result : undefined;
};

const evaluate = () => {
  const { scripts, fresh, kept, isBody, hasValue } = compile(step.code, step.name, step.mode);
  if (step.check_only) return undefined;
  declare(fresh, kept);
  step.declaresResult = fresh.includes('result');
  step.resultBefore = world.result;
  const value = scripts.map((script) => script.runInThisContext({ displayErrors: false })).pop();
  if (isBody) return value();
  return hasValue ? value : undefined;
};

const describe = () => {
  const { outcome: { value, error }, value_max: max } = step;
  if ('error' in step.outcome) return { exception: sayException(error, step.name, sources) };
  return step.mode === 'script' ? {} : sayValue(valueOf(value), max);
};

const hasOpenCalls = () => [...calls.values()].some(({ id }) => id === step.id);

const isDone = () => {
  if (!step.outcome || step.outcome.interrupted) return Boolean(step.outcome);
  const mayLast = step.mode === 'script' && !('error' in step.outcome);
  return !hasOpenCalls() && (!mayLast || Boolean(step.isDrained));
};

const stop = () => {
  outbox.length = 0;
  step.outcome = step.said = { interrupted: true };
};

// Run this part of the step.
const advance = (work) => {
  const context = executionAsyncId();
  isInside = true;
  try {
    interruptible(work);
  } catch (error) {
    if (!isInterrupt(error)) throw error;
    stop();
    renewOutputs(); // it may have been writing
  }
  isInside = false;
  mustUnwind ||= executionAsyncId() !== context;
  sendCalls();
};

const begin = () => {
  mendOutputs();
  enterPlace();
  listenToProcess();
  for (const [name, value] of Object.entries(step.globals ?? {})) define(name, value);
  if (step.callbacks) setCallbacks(step.callbacks);
  keepSource(step.name, step.code);
  const own = step;
  step.hasBegun = true;
  advance(() => {
    try {
      Promise.resolve(evaluate())
        .then((value) => settle(own, { value }), (error) => settle(own, { error }));
    } catch (error) {
      settle(own, { error });
    }
    settleMicrotasks();
    if (isDone()) step.said = describe();
  });
  step.isWaiting = true;
  finishIfDone();
};

const finishIfDone = () => {
  if (!step || !isDone()) return;
  if (!step.said) advance(() => { step.said = describe(); });
  const { id, said } = step;
  step = null;
  channel.send({ op: 'result', id, ...said });
  soon(serve);
};

const accept = (message) => {
  step = { mode: 'cell', name: `<step ${message.id}>`, calls_max: CALLS_MAX, value_max: VALUE_MAX,
    ...message, callbacks: message.callbacks, calls: 0, hasBegun: false, isWaiting: false };
  soon(begin); // the loop turns before it
};

// Messages that came while the loop turned.
const receive = () => {
  while (channel.lines.length > 0) {
    const message = channel.next();
    if (message.op === 'run') accept(message);
    else if (!step) settleCall(message);
    else {
      advance(() => {
        settleCall(message);
        settleMicrotasks();
      });
    }
  }
  sendCalls();
  finishIfDone();
  if (!step) soon(serve); // it was the answer to a call that an interrupted step had made
};

// Wait for the next step, in the order of things: what is being read comes first.
const serve = () => {
  if (step || channel.isListening) return;
  for (;;) {
    const message = channel.next();
    if (message.op === 'run') return accept(message);
    settleCall(message);
  }
};

// ---- the process -----------------------------------------------------------------------------

const print = (text) => {
  try {
    writeAll(2, Buffer.from(text));
  } catch { // a step has closed it
  }
};

function uncaught(error) {
  if (error === UNWIND) return;
  if (step?.mode !== 'script' || !step.hasBegun) {
    print(`Uncaught ${tracebackOf(error)}\n`);
  } else if (!isDone()) {
    step.outcome = { error };
    soon(finishIfDone);
  }
}

const listeners = {
  uncaughtException: uncaught,
  beforeExit: guard(() => {
    if (!step?.isWaiting) return;
    step.isDrained = true;
    settle(step, { error: new Error('the step waits for what nothing is left to bring') });
    finishIfDone();
  }),
  exit: (code) => {
    if (step) channel.send({ op: 'result', id: step.id, exit_code: code });
  },
};

watcher.onsignal = guard(() => {
  if (!step?.isWaiting) return; // it was for one that is over
  stop();
  finishIfDone();
});

// A step may have removed them.
const listenToProcess = () => {
  for (const [event, listener] of Object.entries(listeners)) {
    if (!process.listeners(event).includes(listener)) process.on(event, listener);
  }
};

delete process.env.VIAL_SESSION_FD;
process.argv.length = 1;
for (const file of Object.keys(require.cache)) delete require.cache[file];
takeOutputs();
enterPlace();
listenToProcess();
watcher.start(SIGINT);
channel.send({ op: 'ready' });
guard(serve)();
