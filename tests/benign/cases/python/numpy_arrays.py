# numpy: broadcasting, masks, strides, ufuncs, structured types, printing.
import numpy as np

grid = np.arange(24).reshape(2, 3, 4)
print(grid[:, ::2, 1:3], grid.transpose(2, 0, 1).strides)
print(grid.sum(axis=(0, 2)), grid[grid % 5 == 0], np.where(grid > 20, grid, -1)[1])
print(np.add.outer([1, 2, 3], [10, 20]), np.cumsum([1, 2, 3]), np.diff([1, 4, 9, 16]))
people = np.array([("Ada", 36, 1.7), ("Bob", 25, 1.82)], dtype=[("name", "U10"), ("age", "i4"), ("m", "f8")])
print(np.sort(people, order="age")["name"], people["m"].mean())
print(np.unique([3, 1, 2, 3, 1], return_counts=True), np.searchsorted([1, 3, 5], 4))
print(np.linspace(0, 1, 5), np.concatenate([np.zeros(2), np.ones(3)]), np.float32(1) / 3)
print(np.array([1, 2, 3], dtype=np.uint8) - np.uint8(2), np.bitwise_xor.reduce(np.arange(100)))
with np.errstate(divide="ignore", invalid="ignore"):
    print(np.array([1.0, 0, -1]) / 0)
print(np.datetime64("2024-02-28") + np.arange(3), np.histogram([1, 2, 2, 5, 9], bins=4))
print(np.arange(2000))
print(np.polyfit([0, 1, 2, 3], [1, 3, 7, 13], 2).round(8), np.interp(2.5, [1, 2, 3], [10, 20, 40]))
try:
    np.ones((2, 3)) + np.ones((4,))
except ValueError as error:
    print(error)
