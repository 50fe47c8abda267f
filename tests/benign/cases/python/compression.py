# zlib, gzip, bz2 and lzma: in one go, by pieces, in files.
import bz2
import gzip
import lzma
import zlib

text = b"".join(b"%d bottles on the wall, take one down, " % n for n in range(3000))
for module in (zlib, gzip, bz2, lzma):
    packed = module.compress(text)
    print(module.__name__, module.decompress(packed) == text, len(packed) < len(text) // 4)
print(zlib.crc32(text), zlib.adler32(text))
squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
packed = b"".join(squeeze.compress(text[i:i + 1000]) for i in range(0, len(text), 1000))
packed += squeeze.flush()
print(len(packed), zlib.decompress(packed, -15) == text)
with gzip.open("text.gz", "wt", encoding="utf-8") as file:
    file.write("příliš žluťoučký\n" * 100)
with gzip.open("text.gz", "rt", encoding="utf-8") as file:
    print(sum(1 for _ in file))
unpack = lzma.LZMADecompressor()
packed = lzma.compress(text, preset=6)
print(len(unpack.decompress(packed[:1000])) + len(unpack.decompress(packed[1000:])), unpack.eof)
try:
    zlib.decompress(b"not compressed at all")
except zlib.error as error:
    print(error)
