exports.x = 1
undefinedName
