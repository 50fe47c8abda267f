// Compression at once, as a stream, and damaged.
const zlib = require('zlib');
const { pipeline, Readable, Writable } = require('stream');

const text = Array.from({ length: 2000 }, (_, n) => `${n} bottles, `).join('');
for (const [pack, unpack] of [['gzipSync', 'gunzipSync'], ['deflateRawSync', 'inflateRawSync'], ['brotliCompressSync', 'brotliDecompressSync']]) {
  const packed = zlib[pack](text);
  console.log(pack, packed.length < text.length / 3, zlib[unpack](packed).toString() === text);
}
try {
  zlib.gunzipSync(Buffer.from('not gzip'));
} catch (error) {
  console.log(error.code, error.message);
}
let size = 0;
const counter = new Writable({ write(chunk, _, done) { size += chunk.length; done(); } });
pipeline(Readable.from(text.match(/.{1,500}/gs)), zlib.createGzip(), zlib.createGunzip(), counter, (error) => {
  console.log(error ?? 'piped', size === text.length);
});
