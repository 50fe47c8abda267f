// Promises and async functions: combinators, errors, cancellation, async iteration.
const sleep = (ms, value) => new Promise((resolve) => setTimeout(resolve, ms, value));

async function retry(task, times) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await task(attempt);
    } catch (error) {
      console.log('attempt', attempt, error.message);
      if (attempt === times) throw new Error('gave up', { cause: error });
    }
  }
}

(async () => {
  console.log(await Promise.all([sleep(20, 'slow'), sleep(1, 'fast'), 'now']));
  console.log(await Promise.race([sleep(50, 'slow'), sleep(1, 'fast')]), await Promise.any([Promise.reject(1), sleep(1, 'any')]));
  console.log(await retry(async (n) => { if (n < 3) throw new Error(`no ${n}`); return 'yes'; }, 5));
  await retry(() => { throw new TypeError('never'); }, 2).catch((e) => console.log(e.message, e.cause.name));
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 5);
  await require('timers/promises').setTimeout(10000, null, { signal: controller.signal }).catch((e) => console.log(e.name, e.code));
  async function* ticks() { for (let n = 0; n < 3; n++) { await sleep(1); yield n; } }
  for await (const n of ticks()) console.log('tick', n);
  const { on, EventEmitter } = require('events');
  const emitter = new EventEmitter();
  setTimeout(() => { emitter.emit('x', 1); emitter.emit('x', 2); emitter.emit('x', 3); }, 1);
  for await (const [value] of on(emitter, 'x')) { console.log('event', value); if (value === 3) break; }
})();
