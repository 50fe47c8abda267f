require('no-such-module')
