p ARGV, ARGV.map { |a| [a.frozen?, a.encoding] }, ARGV.frozen?, $*.equal?(ARGV)
