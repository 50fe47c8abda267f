// The order of ticks, microtasks, timers and immediates.
const log = [];
const note = (what) => () => log.push(what);
setTimeout(() => {
  log.push('timeout');
  setTimeout(note('timeout in timeout'), 0);
  setImmediate(note('immediate in timeout'));
  process.nextTick(note('tick in timeout'));
  Promise.resolve().then(note('promise in timeout'));
}, 5);
Promise.resolve().then(note('promise 1')).then(note('promise 2'));
process.nextTick(note('tick 1'));
queueMicrotask(note('microtask'));
process.nextTick(note('tick 2'));
(async () => { log.push('async start'); await null; log.push('async end'); })();
log.push('sync');
let beats = 0;
const interval = setInterval(() => { if (++beats === 3) clearInterval(interval); }, 2);
const finish = () => (log.length < 13 || beats < 3 ? setTimeout(finish, 5) : console.log(log.join('\n'), beats));
setTimeout(finish, 20);
