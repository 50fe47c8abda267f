throw { a: 1 }
