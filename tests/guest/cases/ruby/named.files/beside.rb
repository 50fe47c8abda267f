p __FILE__
