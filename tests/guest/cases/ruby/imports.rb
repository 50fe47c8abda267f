require 'json'
require 'set'
require 'time'
require 'digest'
puts JSON.generate([1, nil]), Set[1].inspect, Digest::MD5.hexdigest('x'), Time.at(0).utc.iso8601
require_relative 'a/b'
