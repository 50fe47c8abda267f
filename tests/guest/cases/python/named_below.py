import sys
print(sys.argv, __file__, sys.path[0])
import beside
