# Foreign functions: calls into libc and libm, structures, callbacks from C into Python.
import ctypes
import ctypes.util

libc = ctypes.CDLL("libc.so.6", use_errno=True)
libm = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
libm.pow.restype, libm.pow.argtypes = ctypes.c_double, [ctypes.c_double] * 2
print(libm.pow(2, 0.5), libc.abs(-5), libc.strlen(b"seven77"))


class Point(ctypes.Structure):
    _fields_ = [("x", ctypes.c_int), ("y", ctypes.c_double), ("name", ctypes.c_char * 8)]


point = Point(1, 2.5, b"origin")
print(ctypes.sizeof(point), point.name, bytes(point)[:4])
COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
numbers = (ctypes.c_int * 6)(5, -1, 9, 0, 33, 7)
libc.qsort(numbers, 6, ctypes.sizeof(ctypes.c_int), COMPARE(lambda a, b: a[0] - b[0]))
print(list(numbers))
buffer = ctypes.create_string_buffer(64)
libc.snprintf(buffer, 64, b"%s has %d", b"vial", 42)
print(buffer.value)
print(libc.open(b"/no/such/file", 0), ctypes.get_errno())
