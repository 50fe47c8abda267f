import unittest
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(1, 1)
    def test_b(self): self.fail('no')
r = unittest.TestResult(); unittest.defaultTestLoader.loadTestsFromTestCase(T).run(r); print(r.testsRun, len(r.failures))
import io
unittest.main(argv=['x', 'T.test_b'], testRunner=unittest.TextTestRunner(stream=io.StringIO()))
