import random
print(random.mine)
