p __FILE__, __dir__
