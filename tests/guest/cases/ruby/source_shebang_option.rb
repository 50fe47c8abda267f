#!/usr/bin/ruby -w
puts $VERBOSE.inspect
x = 1
