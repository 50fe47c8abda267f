p $0, __FILE__, __dir__, ARGV, __FILE__ == $0
require_relative 'beside'
raise 'x'
