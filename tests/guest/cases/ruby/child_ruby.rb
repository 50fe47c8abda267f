require 'rbconfig'
system(RbConfig.ruby, '-e', 'p ARGV, $LOADED_FEATURES.grep(/vial|boot/), ENV["RUBYOPT"], defined?(JSON)', 'x')
p $?.exitstatus
p `ls /proc/self/fd | wc -l`
IO.popen('cat', 'r+') { |io| io.write('in'); io.close_write; p io.read }
