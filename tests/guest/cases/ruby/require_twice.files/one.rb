puts 'one'
