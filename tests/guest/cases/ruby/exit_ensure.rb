begin
  exit 4
ensure
  puts 'ensure'
end
