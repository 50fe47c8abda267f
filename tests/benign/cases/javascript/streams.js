// Streams: transforms, back-pressure, async iteration, web streams, errors.
const { Duplex, PassThrough, Readable, Transform, Writable } = require('stream');
const { pipeline } = require('stream/promises');

const upper = () => new Transform({ transform(chunk, _, done) { done(null, chunk.toString().toUpperCase()); } });
const collect = (parts) => new Writable({ highWaterMark: 4, write(chunk, _, done) { parts.push(chunk.toString()); setImmediate(done); } });

(async () => {
  const parts = [];
  await pipeline(Readable.from(['one ', 'two ', 'three']), upper(), new PassThrough(), collect(parts));
  console.log(parts.join(''));
  async function* count(limit) { for (let n = 0; n < limit; n++) yield `${n};`; }
  const numbers = [];
  await pipeline(count(5), async function* (source) { for await (const x of source) yield `<${x}>`; }, collect(numbers));
  console.log(numbers);
  await pipeline(Readable.from(['x']), new Transform({ transform(c, e, done) { done(new Error('broken')); } }), collect([]))
    .catch((error) => console.log('caught', error.message));
  const [a, b] = new ReadableStream({ start(c) { c.enqueue('web'); c.close(); } }).tee();
  for (const stream of [a, b]) for await (const chunk of stream) console.log(chunk);
  console.log(await Duplex.from(['p', 'q']).map((x) => x + x).toArray());
})();
