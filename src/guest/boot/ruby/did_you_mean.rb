# did_you_mean - makes an ordinary Ruby a zygote, and each fork of it an ordinary Ruby again.
#
# Ruby loads a library of this name at its start, before it reads its program; RUBYLIB leads here
# first, and from here to the real one.  It has the program open by then and has looked at its first
# byte: the zygote's is a file with nothing but a byte order mark, and a guest's is put in its place.
# Its fork() is not libc's (guest/preload.c): in the zygote it never returns; in a guest,
# inside its sandbox, it returns.  getpriority() is ours as well (guest/call.h): it waits for the
# program's files and words.
lambda do
  wait, words = 0x76696101, 1001
  program = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == "main.rb" }
  wanted = ENV["VIAL_PRELOAD"].to_s.split(",")
  %w[LD_PRELOAD RUBYLIB VIAL_PRELOAD].each { |name| ENV.delete(name) }
  $LOAD_PATH.delete(__dir__)
  load $LOAD_PATH.map { |dir| "#{dir}/did_you_mean.rb" }.find { |path| File.exist?(path) }
  (%w[bigdecimal date digest json ostruct pp securerandom set stringio strscan time tempfile] + wanted)
    .each do |name|
      require name
    rescue LoadError
      nil # not every Ruby has all of its library
    end

  GC.start
  GC.compact if GC.respond_to?(:compact) rescue nil
  ENV["VIAL_RECEIVES"] = "1"
  Process.fork
  ENV.delete("VIAL_RECEIVES")

  if Process.getpriority(wait, 0) & 1 != 0
    File.open("/proc/self/fd/#{words}", "rb", &:read).split("\0").each do |item|
      kind, text = item[0], item[1..].force_encoding(Encoding.default_external)
      case kind
      when "a" then ARGV << text
      when "e" then ENV.store(*text.split("=", 2))
      end
    end
    IO.for_fd(words).close
  end
  program.reopen("main.rb") if File.exist?("main.rb")
end.call
