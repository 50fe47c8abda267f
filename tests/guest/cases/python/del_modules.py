import one
import two
print('main done')
