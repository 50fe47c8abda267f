import json
print(json.__file__, __name__)
