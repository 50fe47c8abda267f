#!/bin/sh
echo no
#!ruby
puts 'found'
