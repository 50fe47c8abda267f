#
puts __LINE__
