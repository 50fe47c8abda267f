import random
print(random.mine)
import tempfile
