p $0, __FILE__, __dir__
