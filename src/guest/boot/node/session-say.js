// session-say - values and exceptions as they go over the channel.
//
// Looking at an object may call what the program wrote (getters, proxies, inspect.custom): it may
// throw, and it may take for ever, so all of this is called where it can be interrupted.
'use strict';
const { inspect, types: { isNativeError } } = require('util');

const DEPTH_MAX = 100;
const SHORT_MAX = 1000; // of JSON that has its text beside it
const TEXT_MAX = 65536; // of a message or a traceback
const FRAME = /^\s*at (?:(.*) \()?(.*?):(\d+):(\d+)\)?$/;
const NODES = /^ +at .*\(?node:/;
const LONE_SURROGATE = /\p{Surrogate}/u;
const { stringify } = JSON;
const { Array, Buffer, Error, Math, Number, Object, Reflect, Set, String } = globalThis;

const cutText = (text, max) => (text.length > max ? `${text.slice(0, max)}...` : text);

// ---- values ----------------------------------------------------------------------------------

class NotExact extends Error {}

const isPlain = (value) => {
  const prototype = Object.getPrototypeOf(value);
  if (Array.isArray(value)) return prototype === Array.prototype;
  return prototype === Object.prototype || prototype === null;
};

// Throws unless JSON says exactly this.
const checkExact = (value, above) => {
  if (value === null || typeof value === 'boolean') return;
  if (typeof value === 'string' && !LONE_SURROGATE.test(value)) return;
  if (typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)) return;
  if (typeof value !== 'object' || above.has(value) || !isPlain(value)) throw new NotExact();
  if (above.size >= DEPTH_MAX) throw new NotExact();
  const keys = Reflect.ownKeys(value).filter((key) => !(Array.isArray(value) && key === 'length'));
  if (Array.isArray(value) && keys.length !== value.length) throw new NotExact();
  above.add(value);
  for (const key of keys) {
    const { get, enumerable } = Object.getOwnPropertyDescriptor(value, key);
    if (typeof key === 'symbol' || get || !enumerable) throw new NotExact();
    if (LONE_SURROGATE.test(key)) throw new NotExact();
    checkExact(value[key], above);
  }
  above.delete(value);
};

const toExactJson = (value) => {
  try {
    checkExact(value, new Set());
    return stringify(value);
  } catch { // it is too deep, or has a proxy in it
    return null;
  }
};

const typeOf = (value) => {
  if (value === null || typeof value !== 'object') return typeof value;
  try {
    const { name } = value.constructor;
    return typeof name === 'string' && name ? name : 'Object';
  } catch {
    return 'Object';
  }
};

const toText = (value) => {
  try {
    return inspect(value, { depth: 4 });
  } catch {
    return `[${typeOf(value)}: cannot be inspected]`;
  }
};

// Members of a result: `value`, and `cut` if it was.
const sayValue = (value, max) => {
  if (value === undefined) return {};
  const json = toExactJson(value);
  if (json !== null && Buffer.byteLength(json) <= max) {
    const said = { json: value, type: typeOf(value) };
    return { value: json.length <= SHORT_MAX ? { ...said, text: toText(value) } : said };
  }
  const text = toText(value);
  const short = cutText(text, Math.floor(max / 6)); // a character may be \u1234
  const said = { value: { text: short, type: typeOf(value) } };
  return json !== null || short !== text ? { ...said, cut: true } : said;
};

// ---- exceptions ------------------------------------------------------------------------------

const read = (error, name) => {
  try {
    return error[name];
  } catch {
    return undefined;
  }
};

const isError = (value) => isNativeError(value) || value instanceof Error;

const nameOf = (error) => {
  const name = read(error, 'name');
  return typeof name === 'string' && name !== '' && name !== 'Error' ? name : typeOf(error);
};

// The stack without us, and without what Node has between the step and us.
const ownStack = (error) => {
  const stack = read(error, 'stack');
  if (typeof stack !== 'string') return `${nameOf(error)}: ${read(error, 'message')}`;
  const lines = stack.split('\n');
  const ours = lines.flatMap((line, at) => (line.includes(`${__dirname}/session`) ? [at] : []));
  if (ours.length === 0) return stack;
  let from = ours[0], to = ours[ours.length - 1] + 1;
  while (NODES.test(lines[from - 1])) from--;
  while (NODES.test(lines[to])) to++;
  return [...lines.slice(0, from), ...lines.slice(to)].join('\n');
};

const framesOf = (stack, sources) => stack.split('\n').flatMap((text) => {
  const [, name, path, line] = FRAME.exec(text) ?? [];
  if (!path || path.startsWith('node:')) return [];
  const file = path.replace(/^async /, '');
  const source = sources.get(file)?.split('\n')[line - 1]?.trim() ?? null;
  return [{ file, line: Number(line), name: name ?? '<anonymous>', source }];
}).reverse();

// V8 begins the stack of a SyntaxError with where it is.
const lineOf = (stack, frames, file) => {
  const [first] = stack.split('\n');
  if (first.startsWith(`${file}:`)) return Number(first.slice(file.length + 1)) || null;
  return frames.filter((frame) => frame.file === file).pop()?.line ?? null;
};

// `file` is the step's name, `sources` the texts of the last ones.
const sayException = (error, file, sources, depth = 0) => {
  if (!isError(error)) {
    const text = cutText(toText(error), TEXT_MAX);
    return { type: typeOf(error), message: text, traceback: `Uncaught ${text}`, line: null,
      frames: [] };
  }
  const stack = ownStack(error);
  const frames = framesOf(stack, sources);
  const said = { type: nameOf(error), message: cutText(String(read(error, 'message')), TEXT_MAX),
    traceback: cutText(stack, TEXT_MAX), line: lineOf(stack, frames, file), frames };
  const cause = read(error, 'cause');
  if (cause === undefined || depth > 8) return said;
  const { traceback, ...rest } = sayException(cause, file, sources, depth + 1);
  return { ...said, cause: rest };
};

const tracebackOf = (error) => (isError(error) ? ownStack(error) : toText(error));

module.exports = { sayValue, sayException, tracebackOf };
