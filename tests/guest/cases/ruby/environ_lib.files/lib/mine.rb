puts 'mine'
