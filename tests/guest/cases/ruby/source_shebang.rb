#!/usr/bin/env ruby
puts __LINE__, $VERBOSE.inspect
