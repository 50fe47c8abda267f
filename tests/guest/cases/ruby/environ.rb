ENV.each { |pair| p pair }
system('env | sort')
p ENV['A'].encoding, ENV['A'].frozen?
