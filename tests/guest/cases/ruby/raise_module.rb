require_relative 'helper'
helper
