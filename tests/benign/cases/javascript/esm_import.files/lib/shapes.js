exports.area = (radius) => Math.PI * radius ** 2;
