console.log(__filename, __dirname, module.id, module.filename, module.loaded, module.children, module.paths, require.main === module, module.parent)
console.log(Object.keys(require.cache), Object.keys(module.constructor._pathCache))
console.log(Object.keys(globalThis), this === module.exports)
