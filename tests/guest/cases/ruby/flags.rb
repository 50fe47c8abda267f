p $VERBOSE, $DEBUG, $-w, $-d, $-i, $-l, $-p, $-a, $;, $,, $/, $\, $., $_, $~, $!, $@, $?, $SAFE.inspect
p RUBY_VERSION, RUBY_PLATFORM, RUBY_ENGINE, Warning[:deprecated], Warning[:experimental], GC.stress, GC.disable, Thread.abort_on_exception, Thread.report_on_exception
p Signal.list.keys.reject { |s| %w[EXIT KILL STOP VTALRM].include?(s) }.map { |s| [s, (Signal.trap(s, 'DEFAULT') rescue $!.message)] }
