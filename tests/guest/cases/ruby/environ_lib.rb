p $LOAD_PATH.first
require 'mine'
