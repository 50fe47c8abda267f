puts ARGF.read
p ARGV
