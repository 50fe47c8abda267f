$LOAD_PATH.unshift('lib')
require 'json'
p defined?(MINE)
