# struct, array and memoryview: packing by hand, both byte orders.
import array
import io
import struct

RECORD = struct.Struct(">4sHIdq?")
packed = RECORD.pack(b"VIAL", 7, 1 << 31, 2.5, -3, True)
print(RECORD.size, packed.hex(), RECORD.unpack(packed))
print(struct.pack("<i", -2).hex(), struct.pack("@P", 0).hex(), struct.calcsize("@cq"), struct.pack("e", 1.5).hex())
stream = io.BytesIO(b"".join(struct.pack("<Hf", n, n / 3) for n in range(4)))
print([struct.unpack("<Hf", chunk) for chunk in iter(lambda: stream.read(6), b"")])
numbers = array.array("I", range(10))
view = memoryview(numbers)
view[2:4] = array.array("I", [200, 300])
print(numbers.tolist(), view.cast("B")[8:12].tolist(), view.nbytes)
numbers.byteswap()
print(numbers[1])
with open("records", "wb") as file:
    numbers.tofile(file)
again = array.array("I")
with open("records", "rb") as file:
    again.fromfile(file, 10)
print(again == numbers)
try:
    struct.pack("b", 200)
except struct.error as error:
    print(error)
print(int.from_bytes(b"\x01\x00", "little"), (1000).to_bytes(4, "big"), bytes.fromhex("de ad be ef"))
