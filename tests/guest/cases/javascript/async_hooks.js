const a = require('async_hooks')
console.log(a.executionAsyncId(), a.triggerAsyncId())
setTimeout(() => console.log(a.executionAsyncId() > 0), 1)
