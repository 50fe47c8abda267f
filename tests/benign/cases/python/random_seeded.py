# Seeded randomness is the same everywhere; unseeded differs from call to call.
import random
import uuid

rng = random.Random(20240229)
print([rng.randrange(1000) for _ in range(8)], rng.random())
deck = list(range(12))
rng.shuffle(deck)
print(deck, rng.sample("abcdefghij", 4), rng.choices([1, 2, 3], weights=[5, 3, 1], k=10))
print([round(rng.gauss(0, 1), 12) for _ in range(3)], rng.getrandbits(100))
state = rng.getstate()
first = rng.random()
rng.setstate(state)
print(first == rng.random())
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), uuid.uuid3(uuid.NAMESPACE_URL, "x"))
print(uuid.uuid4() != uuid.uuid4(), uuid.uuid4().version, random.SystemRandom().random() < 1)
print(random.random() != random.random())
