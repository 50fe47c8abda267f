// Worker threads: messages, transferred buffers, shared memory, an error inside one.
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const run = (data) => new Promise((resolve) => {
    const worker = new Worker(__filename, { workerData: data });
    worker.once('message', resolve);
    worker.once('error', (error) => resolve(`error: ${error.message}`));
  });
  (async () => {
    console.log(await Promise.all([1, 2, 3].map((n) => run({ n, shared }))));
    console.log(Atomics.load(shared, 0));
    console.log(await run({ n: 0, shared }));
  })();
} else {
  if (workerData.n === 0) throw new RangeError('zero refused');
  for (let i = 0; i < 10000; i++) Atomics.add(workerData.shared, 0, workerData.n);
  const bytes = new Uint8Array(4).fill(workerData.n);
  parentPort.postMessage(bytes, [bytes.buffer]);
}
