import json
json.keeper = open('data.txt', 'w')
json.keeper.write('data')
