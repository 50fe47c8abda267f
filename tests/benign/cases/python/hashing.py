# Digests, keyed hashes, key derivation, constant-time comparison.
import hashlib
import hmac
import secrets

data = b"the quick brown fox " * 500
for name in ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s"):
    print(name, hashlib.new(name, data).hexdigest()[:32])
print(hashlib.shake_128(data).hexdigest(20), hashlib.blake2b(data, key=b"key", digest_size=10).hexdigest())
print(hmac.new(b"key", data, "sha256").hexdigest())
print(hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 2000).hex())
print(hashlib.scrypt(b"password", salt=b"salt", n=1024, r=8, p=1, dklen=16).hex())
with open("big", "wb") as file:
    file.write(data * 50)
with open("big", "rb") as file:
    print(hashlib.file_digest(file, "sha256").hexdigest())
print(hmac.compare_digest(b"same", b"same"), len(secrets.token_bytes(32)), secrets.token_hex(4) != secrets.token_hex(4))
print(hashlib.sha256(b"hashed").hexdigest())
