# boot - makes an ordinary Ruby a zygote, and each fork of it an ordinary Ruby again.
#
# RUBYOPT requires it.  Ruby has its program open by then, and when everything is loaded it sets
# that file's encoding and reads on.  That call is the last that can be ours, and it is: there
# fork() is called, which is not libc's (guest/preload.c).  In the zygote it never returns;
# in a guest, inside its sandbox, it does.  The guest puts right what differs from a fresh
# start, waits for its program, has the file opened again, and is gone.
#
# What cannot be put right is started afresh, in the same sandbox: also every run of a Ruby that
# is not known to read its program in this way.
lambda do
  # getpriority() is ours as well (guest/call.h): these are no priorities.
  prepare, wait, afresh, rehearsed = 0x76696100, 0x76696101, 0x76696102, 0x76696105
  has_words, session, rehearsal = 1, 8, 16
  control_fd, words_fd = 1000, 1001 # guest/go.h
  common = %w[bigdecimal date digest erb fileutils forwardable json open3 optparse ostruct pp
              securerandom set shellwords socket stringio strscan tempfile time timeout tmpdir uri
              zlib]
  # Variables that are read when an interpreter or a library starts: a run that sets one is not warm.
  starters = /\A(RUBY|GEM_|BUNDLE|LD_|LC_|LANG|GLIBC_|MALLOC_|OPENSSL_)/n
  name, cwd = $0.dup, Dir.pwd
  driver = nil # of sessions: compiled here, since each guest would have to

  # Take our traces away.  Returns the libraries that this environment wants loaded.
  hide = lambda do
    wanted = ENV["VIAL_PRELOAD"].to_s.split(",")
    ENV.keys.grep(/\A(LD_PRELOAD\z|RUBYOPT\z|VIAL_)/).each { |variable| ENV.delete(variable) }
    wanted
  end

  require_all = lambda do |libraries|
    libraries.each do |library|
      require library
    rescue LoadError, StandardError => why
      $stderr.puts "preload #{library}: #{why.message}" unless common.include?(library)
    end
  end

  # Its objects where they will stay: what is young is moved and marked in every guest.
  settle = lambda do
    if Process.respond_to?(:warmup)
      Process.warmup
    else
      4.times { GC.start }
    end
  end

  # Arguments, environment, name: items of a letter, a text and a NUL.
  take_words = lambda do |words|
    items = words.read.split("\0")
    args, pairs, names = %w[a e n].map do |kind|
      items.select { |item| item[0] == kind }.map { |item| item[1..] }
    end
    changed = pairs.map { |pair| pair.split("=", 2) }
                   .reject { |variable, value| ENV[variable]&.b == value }
    if names.any? || changed.any? { |variable, _| starters.match?(variable) }
      Process.getpriority(afresh, 0)
    end
    changed.each { |variable, value| ENV[variable] = value }
    ARGV.concat(args.map { |arg| arg.force_encoding(Encoding.find("locale")).freeze })
  end

  # A library of the program's own may be meant where one is loaded.
  hides_none = lambda do |loaded|
    others = Dir.glob("**/*.{rb,so}") - [name]
    others.none? { |path| loaded.include?(File.basename(path, ".*")) }
  end

  # Whether what was sent would run in a fresh interpreter as it will in this one.
  is_ordinary = lambda do |loaded|
    return false if Dir.pwd != cwd || !File.file?(name)

    first = File.binread(name, 256).to_s[/.*/]
    return false if first.start_with?("#!") && (!first.include?("ruby") || first.include?(" -"))

    hides_none.call(loaded)
  end

  generators = [] # whose seeds would be every guest's; Ruby's own is new after each fork

  # A channel on which two steps wait: one as any, and the end of the rehearsal.
  rehearse = lambda do
    server, inside = UNIXSocket.pair
    ["def greet(name)\n  \"hello, \#{name}\"\nend\nputs greet('you')\ngreet('me')",
     "Process.getpriority(#{rehearsed}, 0)"].each.with_index(1) do |code, id|
      server.puts(JSON.generate({ op: "run", id:, code: }))
    end
    [server, inside].each { |socket| socket.autoclose = false }
    inside.fileno
  end

  # The channel of the session it is to serve, or nil.
  become_guest = lambda do |file, loaded|
    ENV.delete("VIAL_RECEIVES")
    generators.each { |generator| generator.send(:initialize) }
    told = Process.getpriority(wait, 0)
    words = IO.for_fd(words_fd, "rb") if told & has_words != 0
    take_words.call(words) if words
    is_session = told & session != 0
    as_fresh = is_session ? driver && hides_none.call(loaded) : file && is_ordinary.call(loaded)
    Process.getpriority(afresh, 0) unless as_fresh
    words&.close
    is_session ? file&.close : file.reopen(name, "r")
    return unless is_session

    told & rehearsal != 0 ? rehearse.call : control_fd
  rescue Exception => why # rubocop:disable Lint/RescueException -- it must not go on as something else
    text = "#{why.class}: #{why.message}".b[0, 240]
    begin
      IO.for_fd(control_fd, "wb", autoclose: false).syswrite(["x".ord, 256, 8, 0, text].pack("VVVVa248"))
    rescue SystemCallError
      $stderr.puts "vial: #{text}" # the program was already here
    end
    exit!(125)
  end

  serve = lambda do |file, loaded|
    ENV["VIAL_RECEIVES"] = "1"
    generators.concat(ObjectSpace.each_object(Random).to_a)
    Process.getpriority(prepare, 0)
    exit!(125) if Process.fork
    channel = become_guest.call(file, loaded)
    return unless channel

    ENV["VIAL_SESSION_FD"] = channel.to_s
    driver.eval # does not return
  end

  before = $LOADED_FEATURES.dup
  boot = __FILE__
  require_all.call(common + hide.call)
  loaded = ($LOADED_FEATURES - before).map { |path| File.basename(path, ".*") }
  path = "#{__dir__}/session.rb"
  driver = RubyVM::InstructionSequence.compile_file(path) if File.file?(path)
  file = ObjectSpace.each_object(File).find { |open| !open.closed? && open.path == name }
  if file.nil? || RUBY_VERSION >= "3.4"
    settle.call
    serve.call(nil, loaded)
  end

  file.define_singleton_method(:set_encoding) do |*encodings|
    singleton_class.send(:remove_method, :set_encoding)
    $LOADED_FEATURES.delete(boot)
    read # what the zygote has of it
    settle.call
    serve.call(self, loaded)
    set_encoding(*encodings)
  end
end.call
