# numpy: solving, inverting, decomposing, through BLAS and LAPACK.
import numpy as np

a = np.array([[4.0, 1, 2], [1, 3, 0], [2, 0, 5]])
b = np.array([1.0, 2, 3])
x = np.linalg.solve(a, b)
print(x, np.allclose(a @ x, b))
print(np.round(np.linalg.inv(a), 10), round(np.linalg.det(a), 10))
values, vectors = np.linalg.eigh(a)
print(np.round(values, 10), np.allclose(vectors @ np.diag(values) @ vectors.T, a))
u, s, vt = np.linalg.svd(np.arange(12.0).reshape(4, 3))
print(np.round(s, 8), np.linalg.matrix_rank(np.arange(12.0).reshape(4, 3)))
q, r = np.linalg.qr(a)
print(np.allclose(q @ r, a), np.allclose(np.linalg.cholesky(a) @ np.linalg.cholesky(a).T, a))
print(np.round(np.linalg.lstsq(np.vander([1.0, 2, 3, 4], 2), [2.1, 3.9, 6.2, 7.8], rcond=None)[0], 10))
big = (np.arange(300 * 300) % 17).reshape(300, 300).astype(float)
print((big @ big).sum(), np.einsum("ij,ji->", big, big))
try:
    np.linalg.inv(np.ones((2, 2)))
except np.linalg.LinAlgError as error:
    print(error)
