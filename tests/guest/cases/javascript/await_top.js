const x = await Promise.resolve(1)
console.log(x)
