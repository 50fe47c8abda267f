boots = $LOADED_FEATURES.grep(/boot|vial/)
p boots, $LOADED_FEATURES.include?('enumerator.so'), $LOAD_PATH, $LOADED_FEATURES.frozen?
p defined?(DidYouMean), defined?(ErrorHighlight), defined?(Gem)
p require('json'), require('set') if false
