p require('./one'), require('./one')
