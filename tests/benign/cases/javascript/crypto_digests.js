// Digests, keyed hashes, ciphers, signatures and key derivation.
const crypto = require('crypto');

const data = 'the quick brown fox '.repeat(100);
for (const name of ['md5', 'sha1', 'sha256', 'sha512', 'sha3-256']) {
  console.log(name, crypto.createHash(name).update(data).digest('hex').slice(0, 40));
}
console.log(crypto.createHmac('sha256', 'key').update(data).digest('base64'));
console.log(crypto.pbkdf2Sync('password', 'salt', 1000, 16, 'sha256').toString('hex'), crypto.scryptSync('p', 's', 16).toString('hex'));
const key = Buffer.alloc(32, 7);
const cipher = crypto.createCipheriv('aes-256-gcm', key, Buffer.alloc(12));
const packed = Buffer.concat([cipher.update(data), cipher.final()]);
const open = crypto.createDecipheriv('aes-256-gcm', key, Buffer.alloc(12)).setAuthTag(cipher.getAuthTag());
console.log(packed.subarray(0, 8).toString('hex'), open.update(packed).length + open.final().length);
const { publicKey, privateKey } = crypto.generateKeyPairSync('ed25519');
const signature = crypto.sign(null, Buffer.from(data), privateKey);
console.log(signature.length, crypto.verify(null, Buffer.from(data), publicKey, signature), crypto.verify(null, Buffer.from('x'), publicKey, signature));
console.log(crypto.randomBytes(16).length, crypto.randomUUID().length, crypto.timingSafeEqual(Buffer.from('a'), Buffer.from('a')));
crypto.webcrypto.subtle.digest('SHA-256', Buffer.from('abc')).then((d) => console.log(Buffer.from(d).toString('hex')));
