// Buffers, typed arrays, text codecs, and bytes on stdout that are no text.
const buffer = Buffer.from('příliš €', 'utf8');
console.log(buffer, buffer.length, buffer.toString('hex'), buffer.toString('base64url'), buffer.toString('latin1').length);
buffer.writeUInt32BE(0xdeadbeef, 0);
console.log(buffer.readInt16LE(0), buffer.readDoubleBE(1), Buffer.concat([buffer.subarray(0, 2), Buffer.from([1, 2])]));
console.log(Buffer.compare(Buffer.from('a'), Buffer.from('b')), buffer.indexOf(0xbe), Buffer.from('ff00', 'hex').swap16());
const view = new DataView(new ArrayBuffer(16));
view.setFloat64(0, Math.PI);
view.setBigInt64(8, -5n, true);
console.log(new Uint8Array(view.buffer), new Float32Array([1.1, 2.2]).map((x) => x * 2));
console.log(new TextDecoder('utf-16le').decode(new Uint8Array([65, 0, 66, 0])), new TextEncoder().encode('€'), new TextDecoder('windows-1250').decode(new Uint8Array([0x9e])));
console.log(Uint8Array.from([3, 1, 2]).sort(), structuredClone({ a: new Date(0), b: new Map([[1, 2]]) }));
process.stdout.write(Buffer.from([0, 255, 254, 128, 10]));
