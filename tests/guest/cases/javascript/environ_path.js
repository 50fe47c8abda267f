require('mine')
