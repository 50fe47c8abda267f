puts 'bom'
p __LINE__, __ENCODING__
