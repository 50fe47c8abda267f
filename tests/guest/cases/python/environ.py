import os
for item in os.environ.items():
    print(item)
os.system('env | sort')
