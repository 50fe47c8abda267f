console.log(require('./package.json').name, require('thing'))
