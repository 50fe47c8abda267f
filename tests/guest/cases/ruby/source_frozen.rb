# frozen_string_literal: true
p 'x'.frozen?
'x' << 'y'
