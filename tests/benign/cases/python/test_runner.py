# unittest and doctest, the way students hand in their work.
import doctest
import io
import unittest


def triangle(n):
    """Sum of 1..n.

    >>> triangle(4)
    10
    >>> triangle(-1)
    Traceback (most recent call last):
    ValueError: negative
    """
    if n < 0:
        raise ValueError("negative")
    return n * (n + 1) // 2


class TriangleTest(unittest.TestCase):
    def test_small(self):
        self.assertEqual([triangle(n) for n in range(4)], [0, 1, 3, 6])

    def test_refuses(self):
        with self.assertRaisesRegex(ValueError, "neg"):
            triangle(-2)

    def test_wrong(self):
        self.assertEqual(triangle(3), 7, "on purpose")

    @unittest.skip("later")
    def test_later(self):
        self.fail()


log = io.StringIO()
suite = unittest.defaultTestLoader.loadTestsFromTestCase(TriangleTest)
result = unittest.TextTestRunner(log, verbosity=2).run(suite)
print(result.testsRun, len(result.failures), len(result.skipped), result.wasSuccessful())
print([line for line in log.getvalue().splitlines() if " ... " in line or line.startswith("Assert")])
print(doctest.testmod())
