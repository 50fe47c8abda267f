// The file system by promises, many at once, and by streams.
const fs = require('fs/promises');
const { createReadStream } = require('fs');

(async () => {
  await fs.mkdir('many');
  await Promise.all(Array.from({ length: 50 }, (_, n) => fs.writeFile(`many/${n}`, String(n).repeat(n))));
  const sizes = await Promise.all((await fs.readdir('many')).map(async (n) => (await fs.stat(`many/${n}`)).size));
  console.log(sizes.length, sizes.reduce((a, b) => a + b));
  const handle = await fs.open('log', 'w+');
  for (const word of ['alpha', 'beta', 'gamma']) await handle.write(word + '\n');
  console.log((await handle.stat()).size);
  await handle.close();
  for await (const chunk of createReadStream('log', { highWaterMark: 7, encoding: 'utf8' })) console.log(JSON.stringify(chunk));
  const results = await Promise.allSettled([fs.readFile('log', 'utf8'), fs.rmdir('many'), fs.access('nothing')]);
  console.log(results.map((r) => r.value ?? r.reason.code));
})();
