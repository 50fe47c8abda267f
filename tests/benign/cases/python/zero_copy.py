# What copies inside of the kernel where it can, copy_file_range, preadv and fallocate.
import os
import shutil
import socket

with open("source", "wb") as file:
    file.write(bytes(range(256)) * 200)
source = os.open("source", os.O_RDONLY)
left, right = socket.socketpair()
with open("source", "rb") as file:
    print(left.sendfile(file, 100, 500), right.recv(1000)[:4])
print(os.path.getsize(shutil.copyfile("source", "whole")), open("whole", "rb").read(3))
copy = os.open("copy", os.O_RDWR | os.O_CREAT, 0o644)
print(os.copy_file_range(source, copy, 51200, offset_src=0), os.fstat(copy).st_size)
first, second = bytearray(4), bytearray(6)
print(os.preadv(source, [first, second], 20), bytes(first), bytes(second))
print(os.writev(copy, [b"abc", b"defg"]), os.pwrite(copy, b"end", 51200))
os.posix_fallocate(copy, 0, 60000)
print(os.fstat(copy).st_size)
os.truncate(copy, 7)
os.fsync(copy)
os.lseek(copy, 0, os.SEEK_SET)
print(os.read(copy, 100))
os.posix_fadvise(source, 0, 0, os.POSIX_FADV_SEQUENTIAL)
