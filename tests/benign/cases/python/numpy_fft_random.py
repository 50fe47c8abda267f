# numpy: Fourier transforms and seeded generators.
import numpy as np

t = np.arange(256) / 256
signal = np.sin(2 * np.pi * 10 * t) + 0.5 * np.cos(2 * np.pi * 40 * t)
spectrum = np.abs(np.fft.rfft(signal))
print(sorted(np.argsort(spectrum)[-2:].tolist()), spectrum[[10, 40]].round(6))
print(np.allclose(np.fft.ifft(np.fft.fft(signal)).real, signal), np.fft.fft2(np.eye(4)).real.astype(int))
rng = np.random.default_rng(12345)
print(rng.integers(0, 100, 10), rng.random(3), rng.standard_normal(3).round(12))
print(rng.permutation(10), rng.choice(["a", "b", "c"], 5, p=[0.5, 0.3, 0.2]))
old = np.random.RandomState(7)
print(old.rand(2), old.randint(0, 10, 5), old.normal(size=2).round(12))
points = rng.random((200000, 2))
print(round(4 * np.mean((points ** 2).sum(axis=1) < 1), 2))
print(np.random.default_rng().random() != np.random.default_rng().random())
