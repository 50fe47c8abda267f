# numpy: saving, loading, mapping, and text files.
import io
import os

import numpy as np

data = np.arange(10000, dtype=np.int32).reshape(100, 100)
np.save("data.npy", data)
print(os.path.getsize("data.npy"), np.array_equal(np.load("data.npy"), data))
mapped = np.load("data.npy", mmap_mode="r+")
mapped[0, 0] = 77
mapped.flush()
print(np.load("data.npy")[0, :3])
np.savez_compressed("many.npz", a=data, b=np.array(["x", "y"]))
with np.load("many.npz") as many:
    print(sorted(many.files), many["b"])
scratch = np.memmap("scratch.bin", dtype="float64", mode="w+", shape=(50, 20))
scratch[:] = np.pi
scratch.flush()
print(os.path.getsize("scratch.bin"), np.fromfile("scratch.bin")[:2])
np.savetxt("table.txt", np.array([[1.5, 2], [3, 4.25]]), fmt="%.3f", header="x y")
print(open("table.txt").read(), np.loadtxt("table.txt").sum())
print(np.genfromtxt(io.StringIO("1,2\n3,\n"), delimiter=","))
