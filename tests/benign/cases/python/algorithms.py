# Plain computing: matrices, sieve, sorting, life, knapsack, edit distance.
def multiply(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def determinant(matrix):
    rows, sign, result = [row[:] for row in matrix], 1, 1
    for i in range(len(rows)):
        pivot = next((r for r in range(i, len(rows)) if rows[r][i]), None)
        if pivot is None:
            return 0
        if pivot != i:
            rows[i], rows[pivot], sign = rows[pivot], rows[i], -sign
        result *= rows[i][i]
        for r in range(i + 1, len(rows)):
            factor = rows[r][i] / rows[i][i]
            rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i])]
    return sign * result


def life(cells):
    around = {}
    for x, y in cells:
        for dx in (-1, 0, 1):
            for dy in (-1, 0, 1):
                if dx or dy:
                    around[x + dx, y + dy] = around.get((x + dx, y + dy), 0) + 1
    return {cell for cell, n in around.items() if n == 3 or (n == 2 and cell in cells)}


def distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


def queens(n, row=0, columns=0, left=0, right=0):
    if row == n:
        return 1
    free, count = ~(columns | left | right) & ((1 << n) - 1), 0
    while free:
        bit = free & -free
        free ^= bit
        count += queens(n, row + 1, columns | bit, (left | bit) << 1, (right | bit) >> 1)
    return count


matrix = [[(i * j + i + 1) % 7 for j in range(12)] for i in range(12)]
print(multiply(matrix, matrix)[3], determinant([[2, 1, 3], [0, 4, 1], [5, 2, 2]]))
sieve = bytearray([1]) * 100000
for n in range(2, 317):
    if sieve[n]:
        sieve[n * n::n] = bytes(len(range(n * n, 100000, n)))
print(sum(sieve) - 2)
glider = {(1, 0), (2, 1), (0, 2), (1, 2), (2, 2)}
for _ in range(40):
    glider = life(glider)
print(sorted(glider))
print(distance("kitten sitting", "sitting kitten"), queens(8))
print(sorted("pear fig apple kiwi".split(), key=lambda w: (len(w), w)))
