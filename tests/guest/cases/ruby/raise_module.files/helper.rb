def helper
  raise 'in helper'
end
